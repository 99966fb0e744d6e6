import { Readable } from 'node:stream';
import { ByteBudget, type Reservation, type BudgetOwner } from './byte-budget.js';

const MAX_BYTES = 512 * 1024 * 1024;
/** Longer bodies are sent in pieces of this size, to see whether the caller reads them. */
const PIECE_BYTES = 16 * 1024;

/** An answer on its way to one caller. `close` is called when it has been read or the connection has closed. */
export type Delivery = { body: Buffer | Readable; close(): void };

/**
 * Paid answers being sent, within one byte budget. A payment sent over many connections at once gets one copy
 * of its answer at a time.
 */
export class Deliveries {
  readonly #budget: ByteBudget;
  readonly #shared = new Map<string, { body: Buffer; callers: number }>();

  constructor(budget = new ByteBudget(MAX_BYTES)) {
    this.#budget = budget;
  }

  /**
   * @param cut closes the connection of a caller who reads nothing, if others need the memory
   * @returns undefined if there is no memory left in the budget
   */
  open(owner: BudgetOwner, body: Buffer, cut: () => void): Delivery | undefined {
    const hold = this.reserve(owner, body.length, cut);
    if (!hold) return undefined;
    if (body.length <= PIECE_BYTES) return { body, close: () => hold.close() };
    const { payment } = owner;
    const shared = this.#share(payment, body);
    let open = true;
    const close = (): void => {
      if (!open) return;
      open = false;
      hold.close();
      shared.callers -= 1;
      if (shared.callers === 0 && this.#shared.get(payment) === shared) this.#shared.delete(payment);
    };
    const pieces = Readable.from(piecesOf(shared.body, hold), {
      objectMode: false,
      highWaterMark: PIECE_BYTES,
    });
    return { body: pieces, close };
  }

  /**
   * Reserves memory for an answer that is sent in another form. `cut` and the result are the same as for
   * `open`.
   */
  reserve(owner: BudgetOwner, bytes: number, cut: () => void): Reservation | undefined {
    const hold = this.#budget.open(owner, cut);
    if (hold.grow(bytes)) return hold;
    hold.close();
    return undefined;
  }

  #share(payment: string, body: Buffer): { body: Buffer; callers: number } {
    const before = this.#shared.get(payment);
    const shared =
      before && (before.body === body || before.body.equals(body)) ? before : { body, callers: 0 };
    shared.callers += 1;
    this.#shared.set(payment, shared);
    return shared;
  }
}

function* piecesOf(body: Buffer, hold: Reservation): Generator<Buffer> {
  for (let from = 0; from < body.length; from += PIECE_BYTES) {
    yield body.subarray(from, from + PIECE_BYTES);
    hold.progress();
  }
}
