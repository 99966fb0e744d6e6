import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { fromBase58, toBase58 } from './base58.js';

const NONCE_BYTES = 10;
const SLOT_BYTES = 6;
const SEALED_BYTES = NONCE_BYTES + SLOT_BYTES;

/**
 * Creates and recognizes blockhashes without storing them: 10 random bytes, the slot, and a seal over both (HMAC-SHA256, 16 bytes). So
 * every caller gets its own hash, two equal purchases differ, and a payment signed before the chain was killed still lands after the
 * chain has resumed. One hash of each slot is reproducible: that of the slot's block.
 */
export class Blockhashes {
  readonly #secret: Uint8Array;

  constructor(secret: Uint8Array) {
    this.#secret = secret;
  }

  issue(slot: number): string {
    return this.#sealed(slot, randomBytes(NONCE_BYTES));
  }

  /** The hash of a slot's block, which is always the same. */
  ofBlock(slot: number): string {
    return this.#sealed(slot, createHmac('sha256', this.#secret).update(`block ${slot}`).digest());
  }

  /** The slot for which a hash was issued; null if this chain did not issue it. */
  slotOf(blockhash: string): number | null {
    const bytes = fromBase58(blockhash, 44);
    if (bytes?.length !== 32) return null;
    const head = Buffer.from(bytes.subarray(0, SEALED_BYTES));
    if (!timingSafeEqual(this.#seal(head), bytes.subarray(SEALED_BYTES))) return null;
    return head.readUIntBE(NONCE_BYTES, SLOT_BYTES);
  }

  #sealed(slot: number, nonce: Uint8Array): string {
    const head = Buffer.alloc(SEALED_BYTES);
    head.set(nonce.subarray(0, NONCE_BYTES));
    head.writeUIntBE(slot, NONCE_BYTES, SLOT_BYTES);
    return toBase58(Buffer.concat([head, this.#seal(head)]));
  }

  #seal(head: Uint8Array): Uint8Array {
    return createHmac('sha256', this.#secret).update(head).digest().subarray(0, 16);
  }
}
