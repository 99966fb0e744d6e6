import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHash } from 'node:crypto';
import type { Json } from '../contract/json.js';
import { hasHeader } from '../payments/headers.js';
import { JSON_TYPE } from './run-handler.js';

/** A free document that stays the same while the server runs: its JSON bytes, a strong ETag, and the complete headers of 200 and 304. */
export type StaticDocument = { body: Buffer; etag: string; headers: string[]; unchanged: string[] };

/** Static documents by path. */
export type StaticDocuments = ReadonlyMap<string, StaticDocument>;

/** @param exposed the headers that a page of another origin may read */
export function documentOf(value: Json, exposed: string): StaticDocument {
  const body = Buffer.from(JSON.stringify(value));
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const unchanged = [
    ...['Access-Control-Allow-Origin', '*'],
    ...['Access-Control-Expose-Headers', exposed],
    ...['ETag', etag],
    ...['Cache-Control', 'public, max-age=60'],
  ];
  const headers = [...unchanged, 'Content-Type', JSON_TYPE, 'Content-Length', String(body.length)];
  return { body, etag, headers, unchanged };
}

/** Answers GET and HEAD of a static document. @returns whether the request was for one */
export function serveDocument(
  request: IncomingMessage,
  response: ServerResponse,
  documents: StaticDocuments,
): boolean {
  const { method, url = '' } = request;
  if (method !== 'GET' && method !== 'HEAD') return false;
  const queryAt = url.indexOf('?');
  const document = documents.get(queryAt < 0 ? url : url.slice(0, queryAt));
  if (!document) return false;
  const current = isCurrent(request, document.etag);
  response.writeHead(current ? 304 : 200, current ? document.unchanged : document.headers);
  if (current || method === 'HEAD') response.end();
  else response.end(document.body);
  return true;
}

/** Ignores `Cache-Control: no-cache`, which some fetch clients add to every conditional request. */
function isCurrent(request: IncomingMessage, etag: string): boolean {
  if (!hasHeader(request.rawHeaders, 'if-none-match')) return false;
  const tags = request.headers['if-none-match']?.split(',') ?? [];
  return tags.some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}
