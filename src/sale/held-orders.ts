const MAX_HELD_PER_ORDER = 4;
const MAX_HELD = 1_000;

/** Bounds how many callers of this server wait for orders: 4 per order, 1 000 in all. */
export class HeldOrders {
  readonly #byOrder = new Map<string, number>();
  #all = 0;

  /** @returns false if there is no room; otherwise `release` must be called once */
  hold(id: string): boolean {
    const held = this.#byOrder.get(id) ?? 0;
    if (held >= MAX_HELD_PER_ORDER || this.#all >= MAX_HELD) return false;
    this.#byOrder.set(id, held + 1);
    this.#all += 1;
    return true;
  }

  release(id: string): void {
    this.#all -= 1;
    const left = (this.#byOrder.get(id) ?? 1) - 1;
    if (left > 0) this.#byOrder.set(id, left);
    else this.#byOrder.delete(id);
  }
}
