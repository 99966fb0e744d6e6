import type { IncomingMessage } from 'node:http';
import { ByteBudget, type Reservation, type BudgetOwner } from './byte-budget.js';
import { BodyFault, parseJsonObject, requireJsonType } from './json-body.js';

export { BodyFault };
/** Thrown if there is no memory left for a body: 503. The connection must be closed, because the rest of the body may never arrive. */
export class BodiesFull extends Error {}

const MEGABYTE = 1024 * 1024;
const MAX_HELD_BYTES = 64 * MEGABYTE;
/** Each body counts as at least this many bytes. Each further block of this size counts as progress. */
const SMALLEST_BYTES = 4 * 1024;
const PROGRESS_BYTES = 16 * 1024;

/** Reads all request bodies within one byte budget, so that slow senders cannot block others. */
export class BodyReader {
  readonly #budget: ByteBudget;

  constructor(budget = new ByteBudget(MAX_HELD_BYTES)) {
    this.#budget = budget;
  }

  /**
   * Reads a JSON object in UTF-8 from a request; see `parseJsonObject` for its limits.
   * @param maxBytes of the body
   * @throws BodyFault, BodiesFull
   */
  async readJsonObject(request: IncomingMessage, maxBytes: number, owner: BudgetOwner): Promise<object> {
    requireJsonType(request.headers['content-type']);
    return this.read(request, maxBytes, owner, parseJsonObject);
  }

  /**
   * Reads the body of a request.
   * @param parse turns the bytes into a value; the bytes count against the budget until it returns
   * @throws BodyFault, BodiesFull, and what `parse` throws
   */
  async read<T>(
    request: IncomingMessage,
    maxBytes: number,
    owner: BudgetOwner,
    parse: (bytes: Buffer) => T | Promise<T>,
  ): Promise<T> {
    const { 'content-encoding': encoding, 'content-length': length } = request.headers;
    if (encoding !== undefined && encoding !== 'identity')
      throw new BodyFault('the body must not be compressed');
    if (Number(length) > maxBytes) throw tooLarge(maxBytes);
    let evict = (): void => {};
    const hold = this.#budget.open(owner, () => evict());
    try {
      const body = new Collected(maxBytes, hold, Number(length));
      return await parse(await collect(request, body, stop => (evict = stop)));
    } finally {
      hold.close();
    }
  }
}

function tooLarge(maxBytes: number): BodyFault {
  const limit = maxBytes >= MEGABYTE ? `${maxBytes / MEGABYTE} MB` : `${Math.floor(maxBytes / 1024)} KB`;
  return new BodyFault(`the body is larger than ${limit}`);
}

/** `stoppable` receives a function that stops reading with BodiesFull; the rest of the body is then left unread. */
function collect(
  request: IncomingMessage,
  into: Collected,
  stoppable: (stop: () => void) => void,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done = (error?: Error): void => {
      request.off('data', add).off('end', done).off('close', broken).pause();
      if (error) reject(error);
      else resolve(into.bytes());
    };
    const add = (chunk: Buffer): void => {
      try {
        into.add(chunk);
      } catch (error) {
        done(error as Error);
      }
    };
    const broken = (): void => done(new BodyFault('the body arrived incomplete'));
    if (request.destroyed) return broken();
    request.on('data', add).once('end', done).once('close', broken);
    stoppable(() => done(new BodiesFull()));
  });
}

/** One growing buffer. A list of chunks would take a hundred bytes of memory for each one-byte chunk. */
class Collected {
  readonly #maxBytes: number;
  readonly #hold: Reservation;
  #buffer: Buffer;
  #length = 0;
  #progress = 0;

  /**
   * @param announced the Content-Length, or NaN
   * @throws BodiesFull
   */
  constructor(maxBytes: number, hold: Reservation, announced: number) {
    this.#maxBytes = maxBytes;
    this.#hold = hold;
    if (!hold.grow(SMALLEST_BYTES)) throw new BodiesFull();
    this.#buffer = Buffer.allocUnsafe(announced <= SMALLEST_BYTES ? announced : 0);
  }

  /** @throws BodyFault, BodiesFull */
  add(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) throw tooLarge(this.#maxBytes);
    if (length > this.#buffer.length) this.#enlarge(length);
    chunk.copy(this.#buffer, this.#length);
    this.#length = length;
    if (length - this.#progress < PROGRESS_BYTES) return;
    this.#progress = length;
    this.#hold.progress();
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #enlarge(length: number): void {
    const size = Math.min(this.#maxBytes, Math.max(length, 2 * this.#buffer.length, SMALLEST_BYTES));
    const more = size - Math.max(this.#buffer.length, SMALLEST_BYTES);
    if (more > 0 && !this.#hold.grow(more)) throw new BodiesFull();
    const larger = Buffer.allocUnsafeSlow(size);
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}
