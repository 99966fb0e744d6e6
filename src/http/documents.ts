import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gunzip, gzip } from 'node:zlib';
import type { Json } from '../contract/json.js';
import { hasHeader } from '../net/raw-headers.js';
import { JSON_TYPE } from './run-handler.js';

/** One encoding of a document: its bytes, a strong ETag, and the complete headers of 200 and 304. */
type Encoded = { body: Buffer; etag: string; headers: string[]; unchanged: string[] };
type Coding = 'plain' | 'gzip' | 'br';

/**
 * The bytes of a document in each of its encodings. They are made at the first request, not while the server
 * starts.
 */
type Bytes = { plain: MakesBytes; gzip?: MakesBytes; br?: MakesBytes };
type MakesBytes = () => Buffer | Promise<Buffer>;

/** Static documents: those of operations by operationId, those outside the contract by path. */
export type StaticDocuments = ReadonlyMap<string, StaticDocument>;

/** Smaller documents fit into one packet as they are. */
const COMPRESSED_FROM_BYTES = 1024;
/** Images are compressed already. */
const COMPRESSIBLE = /^(text\/|application\/json|image\/svg)/;
/** The best level that takes only milliseconds, because the first caller waits for it. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
const GZIP = { level: 9 };
const [toGzip, toBrotli, fromGzip] = [promisify(gzip), promisify(brotliCompress), promisify(gunzip)];

/** How a document is served: its media type, the headers that a page of another origin may read, and its own headers. */
type Served = { type: string; exposed: string; more: Record<string, string> };

/** A free document that stays the same while the server runs. If worthwhile, it is compressed once, in a thread. */
export class StaticDocument {
  readonly #bytes: Bytes;
  readonly #served: Served;
  readonly #encoded = new Map<Coding, Promise<Encoded>>();

  constructor(bytes: Bytes, served: Served) {
    this.#bytes = bytes;
    this.#served = served;
  }

  has(coding: Coding): boolean {
    return this.#bytes[coding] !== undefined;
  }

  encoded(coding: Coding): Promise<Encoded> {
    let encoded = this.#encoded.get(coding);
    if (encoded) return encoded;
    encoded = this.#encode(coding);
    this.#encoded.set(coding, encoded);
    // A failure is not cached, so that the next request tries again.
    encoded.catch(() => this.#encoded.delete(coding));
    return encoded;
  }

  async #encode(coding: Coding): Promise<Encoded> {
    const { type, exposed, more } = this.#served;
    const { Vary, ...others } = more;
    const vary = [...(Vary ? [Vary] : []), ...(this.has('gzip') ? ['Accept-Encoding'] : [])].join(', ');
    const body = await (this.#bytes[coding] ?? this.#bytes.plain)();
    // Computed over the encoded bytes, since each encoding is a representation of its own (RFC 9110, 8.8.3).
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    const unchanged = [
      ...['Access-Control-Allow-Origin', '*'],
      ...['Access-Control-Expose-Headers', exposed],
      ...['ETag', etag],
      ...['Cache-Control', 'public, max-age=60'],
      ...(vary ? ['Vary', vary] : []),
      ...Object.entries(others).flat(),
    ];
    const encoding = coding === 'plain' ? [] : ['Content-Encoding', coding];
    const headers = [
      ...unchanged,
      ...['Content-Type', type, ...encoding],
      ...['Content-Length', String(body.length)],
    ];
    return { body, etag, headers, unchanged };
  }
}

/** @param exposed the headers that a page of another origin may read */
export function documentOf(value: Json, exposed: string, more: Record<string, string> = {}): StaticDocument {
  return fileOf(JSON.stringify(value), JSON_TYPE, exposed, more);
}

/**
 * A document of any type.
 * @param exposed the headers that a page of another origin may read
 * @param more additional headers of each answer; if `Vary` is among them, `Accept-Encoding` is added to it
 */
export function fileOf(
  content: string,
  type: string,
  exposed: string,
  more: Record<string, string> = {},
): StaticDocument {
  const bytes = Buffer.from(content);
  const plain = () => bytes;
  const served = { type, exposed, more };
  if (!COMPRESSIBLE.test(type) || bytes.length <= COMPRESSED_FROM_BYTES)
    return new StaticDocument({ plain }, served);
  return new StaticDocument(
    { plain, gzip: () => toGzip(bytes, GZIP), br: () => toBrotli(bytes, BROTLI) },
    served,
  );
}

/** Like `fileOf`, for a text that is made at the first request. */
export function textOf(
  make: () => Promise<string>,
  type: string,
  exposed: string,
  more: Record<string, string> = {},
): StaticDocument {
  let made: Promise<Buffer> | undefined;
  const plain = (): Promise<Buffer> => {
    made ??= make().then(text => Buffer.from(text));
    made.catch(() => (made = undefined));
    return made;
  };
  const gzip = async (): Promise<Buffer> => toGzip(await plain(), GZIP);
  const br = async (): Promise<Buffer> => toBrotli(await plain(), BROTLI);
  return new StaticDocument({ plain, gzip, br }, { type, exposed, more });
}

/** An image that is made on the first request. */
export function imageOf(
  draw: () => Buffer,
  type: string,
  exposed: string,
  more: Record<string, string> = {},
): StaticDocument {
  return new StaticDocument({ plain: draw }, { type, exposed, more });
}

/** Like `fileOf`, for a document stored as gzip. */
export function zippedFileOf(
  zipped: Buffer,
  type: string,
  exposed: string,
  more: Record<string, string> = {},
): StaticDocument {
  return new StaticDocument({ plain: () => fromGzip(zipped), gzip: () => zipped }, { type, exposed, more });
}

/** Answers GET and HEAD with a document, in an encoding that the caller accepts. */
export async function sendDocument(
  request: IncomingMessage,
  response: ServerResponse,
  document: StaticDocument,
): Promise<void> {
  const encoded = await document.encoded(negotiated(request, document));
  const current = isCurrent(request, encoded.etag);
  response.writeHead(current ? 304 : 200, current ? encoded.unchanged : encoded.headers);
  if (current || request.method === 'HEAD') response.end();
  else response.end(encoded.body);
}

/**
 * The smallest encoding that `Accept-Encoding` allows (RFC 9110). An encoding with weight 0 is not allowed.
 */
function negotiated(request: IncomingMessage, document: StaticDocument): Coding {
  if (!document.has('gzip') || !hasHeader(request.rawHeaders, 'accept-encoding')) return 'plain';
  const named = String(request.headers['accept-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .filter(each => !/;\s*q=0(\.0*)?\s*$/.test(each))
    .map(each => each.split(';', 1)[0]?.trim());
  if (document.has('br') && named.includes('br')) return 'br';
  return named.includes('gzip') || named.includes('x-gzip') ? 'gzip' : 'plain';
}

/** Ignores `Cache-Control: no-cache`, which some fetch clients add to every conditional request. */
function isCurrent(request: IncomingMessage, etag: string): boolean {
  if (!hasHeader(request.rawHeaders, 'if-none-match')) return false;
  const tags = request.headers['if-none-match']?.split(',') ?? [];
  return tags.some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}
