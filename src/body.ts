import getRawBody from 'raw-body';
import type { IncomingMessage } from 'node:http';

/** The body can't be used: 400, with what to correct. */
export class BodyFault extends Error {}
/** Too many bodies are being read at once: 503. */
export class BodiesFull extends Error {}

const MAX_BYTES = 2 * 1024 * 1024;
/** Names and values in all. No operation has more than a few, and a hundred thousand would cost half a second to parse and sort. */
const MAX_MEMBERS = 1_000;
const MAX_DEPTH = 64;
/** Bodies that may be read at once; each may take 30 s to arrive. */
const MAX_READING = 512;
const JSON_TYPE = /^application\/(?:json|[a-z0-9.+-]+\+json)\s*(?:;|$)/i;

let reading = 0;

/**
 * Reads a JSON object from a request: at most 2 MB, 1 000 members and 64 levels.
 * @throws BodyFault, BodiesFull
 */
export async function readJsonObject(request: IncomingMessage): Promise<object> {
  const { 'content-type': type, 'content-encoding': encoding, 'content-length': length } = request.headers;
  if (!type || !JSON_TYPE.test(type)) {
    throw new BodyFault('the body must be JSON, sent with Content-Type: application/json');
  }
  if (encoding !== undefined && encoding !== 'identity')
    throw new BodyFault('the body must not be compressed');
  if (reading >= MAX_READING) throw new BodiesFull();
  reading += 1;
  try {
    const bytes = await getRawBody(request, { length: length ?? null, limit: MAX_BYTES });
    return parseObject(bytes);
  } catch (error) {
    if (error instanceof BodyFault) throw error;
    const tooLarge = (error as { type?: string }).type === 'entity.too.large';
    throw new BodyFault(tooLarge ? 'the body is larger than 2 MB' : 'the body did not arrive whole');
  } finally {
    reading -= 1;
  }
}

function parseObject(bytes: Buffer): object {
  checkStructure(bytes);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new BodyFault('the body is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new BodyFault('the body must be a JSON object');
  }
  return value;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/** Counts members and levels without parsing: strings are jumped over. Broken JSON is left to the parser. */
function checkStructure(bytes: Buffer): void {
  let members = 0;
  let depth = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === COMMA || byte === COLON) members += 1;
    // [ and { differ in one bit, ] and } likewise.
    else if (byte === 0x5b || byte === 0x7b) depth += 1;
    else if (byte === 0x5d || byte === 0x7d) depth -= 1;
    if (members > 2 * MAX_MEMBERS) throw new BodyFault('the body has too many members');
    if (depth > MAX_DEPTH) throw new BodyFault('the body is nested too deeply');
  }
}

function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return bytes.length;
}
