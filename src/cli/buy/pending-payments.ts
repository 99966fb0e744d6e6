import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SignedPayment } from '../../wallet/sign-payment.js';

/**
 * Signed payments without a known outcome, one file each. A payment is saved before it is sent: after an interruption, the
 * buyer continues with the same payment instead of paying twice.
 */
export class PendingPayments {
  readonly #folder: string;

  constructor(stateDir: string) {
    this.#folder = join(stateDir, 'pending-payments');
  }

  /** The saved payment for exactly this call of this payer. */
  find(call: PendingCall): SignedPayment | undefined {
    try {
      return JSON.parse(readFileSync(this.file(call), 'utf8')) as SignedPayment;
    } catch {
      return undefined;
    }
  }

  save(call: PendingCall, payment: SignedPayment): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const file = this.file(call);
    writeFileSync(`${file}.new`, JSON.stringify(payment), { mode: 0o600, flush: true });
    renameSync(`${file}.new`, file);
  }

  forget(call: PendingCall): void {
    rmSync(this.file(call), { force: true });
  }

  /** Where the payment of a call is saved. */
  file({ url, body, keypair }: PendingCall): string {
    const name = createHash('sha256').update(`${url}\n${body}\n`).update(keypair).digest('hex').slice(0, 32);
    return join(this.#folder, `${name}.json`);
  }
}

export type PendingCall = { url: string; body: string; keypair: Uint8Array };
