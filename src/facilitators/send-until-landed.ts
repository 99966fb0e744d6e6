import { base58 } from '@scure/base';
import type { Log } from '../net/log.js';
import { pause, withEither } from '../net/deadline.js';
import { readTransaction } from '../rails/solana/message.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import type { Landing, SignatureWatch } from '../rails/solana/signature-watch.js';
import { nameOf } from '../rails/solana/transaction.js';

export type Sending = {
  chain: Pick<SolanaChain, 'send' | 'signatureStatuses' | 'blockhashLives'>;
  watch: SignatureWatch;
  /** `resendMs`: the time in ms between two sends of a transaction that is not confirmed yet. */
  timing: { resendMs: number };
  log: Log;
};

export type Signed = { transaction: string; signature: string };

/**
 * Sends a signed transaction until it is confirmed, or can no longer land.
 * @throws Error with the reason, if it is unknown whether it landed or will land
 */
export async function sendUntilLanded(all: Sending, signed: Signed, signal: AbortSignal): Promise<Landing> {
  const over = new AbortController();
  return withEither(signal, over.signal, async either => {
    try {
      await send(all, signed, either);
      return await Promise.race([
        all.watch.landing(signed.signature, either),
        resendUntilDead(all, signed, either),
      ]);
    } finally {
      over.abort(new Error('the settlement is over'));
    }
  });
}

/** An RPC server may lose an accepted transaction, so it is sent again until it has landed or has expired. */
async function resendUntilDead(all: Sending, signed: Signed, signal: AbortSignal): Promise<Landing> {
  const { chain, timing } = all;
  const blockhash = nameOf(readTransaction(Buffer.from(signed.transaction, 'base64')).blockhash);
  for (;;) {
    await pause(timing.resendMs, signal);
    const lives = await chain.blockhashLives(blockhash, signal).catch(() => true);
    if (!lives) return lastLook(all, signed, signal);
    await send(all, signed, signal);
  }
}

/** One last check: the transaction may have landed in the last possible block. */
async function lastLook({ chain }: Sending, { signature }: Signed, signal: AbortSignal): Promise<Landing> {
  const [status] = await chain.signatureStatuses([signature], signal);
  if (!status || status.finality === 'processed')
    throw new Error('the blockhash expired before the transaction was confirmed');
  return { failed: status.failed };
}

/** Acceptance proves nothing, and neither does an error: a server may have forwarded the transaction before failing. */
async function send({ chain, log }: Sending, signed: Signed, signal: AbortSignal): Promise<void> {
  try {
    await chain.send(signed.transaction, signal);
  } catch (error) {
    if (!signal.aborted)
      log.warn(
        { error, signature: signed.signature },
        'no RPC server accepted a transaction; it will be sent again',
      );
  }
}

const SIGNATURE_BYTES = 64;

/** The signature of the fee payer in base58, which identifies the transaction. Undefined if its slot is empty. */
export function signatureOf(base64: string): string | undefined {
  const slot = Buffer.from(base64, 'base64').subarray(1, 1 + SIGNATURE_BYTES);
  return slot.some(byte => byte !== 0) ? base58.encode(slot) : undefined;
}
