import type { IncomingMessage } from 'node:http';
import accepts from 'accepts';

/** Whether this is a GET or HEAD of `/` by a browser. Other clients get the index of the contract. */
export function asksForLanding(request: IncomingMessage): boolean {
  return /^\/(\?|$)/.test(request.url ?? '') && asksForPage(request);
}

/**
 * Whether this is a GET or HEAD by a browser: `Accept` names HTML and prefers it to JSON. Programs, which
 * accept anything, get JSON.
 */
export function asksForPage(request: IncomingMessage): boolean {
  const { method } = request;
  if (method !== 'GET' && method !== 'HEAD') return false;
  const { accept = '' } = request.headers;
  return (
    /text\/html/i.test(accept) && accepts(request).type(['application/json', 'text/html']) === 'text/html'
  );
}
