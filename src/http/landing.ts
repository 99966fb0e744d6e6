import type { IncomingMessage, ServerResponse } from 'node:http';
import accepts from 'accepts';
import { sendDocument, type StaticDocument } from './documents.js';

/** Answers GET and HEAD of `/` for browsers. @returns whether it did: everyone else gets the index of the contract */
export function serveLanding(
  request: IncomingMessage,
  response: ServerResponse,
  landing: StaticDocument | undefined,
): boolean {
  const { method, url = '' } = request;
  if (!landing || (method !== 'GET' && method !== 'HEAD') || !/^\/(\?|$)/.test(url)) return false;
  if (!prefersHtml(request)) return false;
  sendDocument(request, response, landing);
  return true;
}

/** Whether `Accept` names HTML and prefers it to JSON. Where anything is welcome, as for most programs, it is JSON. */
function prefersHtml(request: IncomingMessage): boolean {
  const { accept = '' } = request.headers;
  return (
    /text\/html/i.test(accept) && accepts(request).type(['application/json', 'text/html']) === 'text/html'
  );
}
