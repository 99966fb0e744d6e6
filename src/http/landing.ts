import type { IncomingMessage } from 'node:http';
import accepts from 'accepts';

/** Whether this is a GET or HEAD of `/` by a browser. Everyone else gets the index of the contract. */
export function asksForLanding(request: IncomingMessage): boolean {
  const { method, url = '' } = request;
  return (method === 'GET' || method === 'HEAD') && /^\/(\?|$)/.test(url) && prefersHtml(request);
}

/** Whether `Accept` names HTML and prefers it to JSON. Where anything is welcome, as for most programs, it is JSON. */
function prefersHtml(request: IncomingMessage): boolean {
  const { accept = '' } = request.headers;
  return (
    /text\/html/i.test(accept) && accepts(request).type(['application/json', 'text/html']) === 'text/html'
  );
}
