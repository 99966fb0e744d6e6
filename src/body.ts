import getRawBody from 'raw-body';
import type { IncomingMessage } from 'node:http';
import { BodyFault, parseJsonObject, requireJsonType } from './json-body.js';

export { BodyFault };
/** Too many bodies are being read at once: 503. */
export class BodiesFull extends Error {}

const MAX_BYTES = 2 * 1024 * 1024;
/** Bodies that may be read at once; each may take 30 s to arrive. */
const MAX_READING = 512;

let reading = 0;

/**
 * Reads a JSON object from a request: at most 2 MB, in UTF-8, and as `parseJsonObject` demands it.
 * @throws BodyFault, BodiesFull
 */
export async function readJsonObject(request: IncomingMessage): Promise<object> {
  const { 'content-type': type, 'content-encoding': encoding, 'content-length': length } = request.headers;
  requireJsonType(type);
  if (encoding !== undefined && encoding !== 'identity')
    throw new BodyFault('the body must not be compressed');
  if (reading >= MAX_READING) throw new BodiesFull();
  reading += 1;
  try {
    const bytes = await getRawBody(request, { length: length ?? null, limit: MAX_BYTES });
    return parseJsonObject(bytes);
  } catch (error) {
    if (error instanceof BodyFault) throw error;
    const tooLarge = (error as { type?: string }).type === 'entity.too.large';
    throw new BodyFault(tooLarge ? 'the body is larger than 2 MB' : 'the body did not arrive whole');
  } finally {
    reading -= 1;
  }
}
