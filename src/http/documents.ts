import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHash } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Json } from '../contract/json.js';
import { hasHeader } from '../net/raw-headers.js';
import { JSON_TYPE } from './run-handler.js';

/** One encoding of a document: its bytes, a strong ETag, and the complete headers of 200 and 304. */
type Encoded = { body: Buffer; etag: string; headers: string[]; unchanged: string[] };

/** A free document that stays the same while the server runs, compressed in advance where that pays. */
export type StaticDocument = { plain: Encoded; gzip?: Encoded; br?: Encoded };

/** Static documents: those of operations by operationId, and others, beside the contract, by path. */
export type StaticDocuments = ReadonlyMap<string, StaticDocument>;

/** Smaller documents fit into one packet as they are. */
const COMPRESSED_FROM_BYTES = 1024;
/** Images are compressed already. */
const COMPRESSIBLE = /^(text\/|application\/json|image\/svg)/;
/** The best that takes milliseconds: the start waits for it. */
const BROTLI_QUALITY = 9;

/** @param exposed the headers that a page of another origin may read */
export function documentOf(value: Json, exposed: string, more: Record<string, string> = {}): StaticDocument {
  return fileOf(JSON.stringify(value), JSON_TYPE, exposed, more);
}

/**
 * A document of any type.
 * @param exposed the headers that a page of another origin may read
 * @param more headers of each of its answers; a `Vary` here gets `Accept-Encoding` added
 */
export function fileOf(
  content: string | Buffer,
  type: string,
  exposed: string,
  more: Record<string, string> = {},
): StaticDocument {
  const plain = Buffer.from(content as string);
  const compressed = COMPRESSIBLE.test(type) && plain.length > COMPRESSED_FROM_BYTES;
  if (!compressed) return compressedFileOf({ plain }, type, exposed, more);
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  const gzip = gzipSync(plain, { level: 9 });
  return compressedFileOf({ plain, gzip, br: brotliCompressSync(plain, { params }) }, type, exposed, more);
}

/** Like `fileOf`, for a document that is compressed already. */
export function compressedFileOf(
  { plain, gzip, br }: { plain: Buffer; gzip?: Buffer; br?: Buffer },
  type: string,
  exposed: string,
  more: Record<string, string> = {},
): StaticDocument {
  const { Vary, ...others } = more;
  const vary = [...(Vary ? [Vary] : []), ...(gzip ? ['Accept-Encoding'] : [])].join(', ');
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 22);
  const encode = (bytes: Buffer, coding?: string): Encoded => {
    const etag = `"${hash}${coding ? `-${coding}` : ''}"`;
    const unchanged = [
      ...['Access-Control-Allow-Origin', '*'],
      ...['Access-Control-Expose-Headers', exposed],
      ...['ETag', etag],
      ...['Cache-Control', 'public, max-age=60'],
      ...(vary ? ['Vary', vary] : []),
      ...Object.entries(others).flat(),
    ];
    const encoding = coding ? ['Content-Encoding', coding] : [];
    const headers = [
      ...unchanged,
      ...['Content-Type', type, ...encoding],
      ...['Content-Length', String(bytes.length)],
    ];
    return { body: bytes, etag, headers, unchanged };
  };
  return {
    plain: encode(plain),
    ...(gzip ? { gzip: encode(gzip, 'gzip') } : {}),
    ...(br ? { br: encode(br, 'br') } : {}),
  };
}

/** Answers GET and HEAD with a document, in an encoding that the caller accepts. */
export function sendDocument(
  request: IncomingMessage,
  response: ServerResponse,
  document: StaticDocument,
): void {
  const encoded = negotiated(request, document);
  const current = isCurrent(request, encoded.etag);
  response.writeHead(current ? 304 : 200, current ? encoded.unchanged : encoded.headers);
  if (current || request.method === 'HEAD') response.end();
  else response.end(encoded.body);
}

/** The smallest encoding that `Accept-Encoding` names (RFC 9110); one with weight 0 is refused. */
function negotiated(request: IncomingMessage, { plain, gzip, br }: StaticDocument): Encoded {
  if (!gzip || !hasHeader(request.rawHeaders, 'accept-encoding')) return plain;
  const named = String(request.headers['accept-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .filter(each => !/;\s*q=0(\.0*)?\s*$/.test(each))
    .map(each => each.split(';', 1)[0]?.trim());
  if (br && named.includes('br')) return br;
  return named.includes('gzip') || named.includes('x-gzip') ? gzip : plain;
}

/** Ignores `Cache-Control: no-cache`, which some fetch clients add to every conditional request. */
function isCurrent(request: IncomingMessage, etag: string): boolean {
  if (!hasHeader(request.rawHeaders, 'if-none-match')) return false;
  const tags = request.headers['if-none-match']?.split(',') ?? [];
  return tags.some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}
