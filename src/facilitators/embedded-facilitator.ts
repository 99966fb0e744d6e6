import { messageOf } from '../ledger/fault.js';
import { setMaxListeners } from 'node:events';
import type { Log } from '../net/log.js';
import { pause, withAbortAfter, withEither } from '../net/deadline.js';
import { base58 } from '@scure/base';
import { feeFault, feeOf, payloadFault, usesFeePayer, type FeeFault } from '../rails/solana/fee-limits.js';
import type { KeyPair } from '../rails/solana/key-pair.js';
import { isSane, MessageFault, readTransaction, type SolanaTransaction } from '../rails/solana/message.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { SignatureWatch, type Landing } from '../rails/solana/signature-watch.js';
import { FacilitatorUnreachable, plain, type Facilitator, type FacilitatorRequest } from './facilitator.js';
import type { SettleResult, SignResult, VerifyResult } from '../rails/rail.js';
import type { FeePayerGuard } from './fee-payer-guard.js';
import { FundsInFlight, type SignedTransfer } from './funds-in-flight.js';
import type { ReferenceVerdict } from './reference-verdict.js';
import { nameOf, sourceAccountOf } from '../rails/solana/transaction.js';

/** The name of this facilitator in FACILITATOR_URL and in the ledger. */
export const EMBEDDED = 'embedded';

export type FacilitatorChain = Pick<
  SolanaChain,
  'simulate' | 'send' | 'signatureStatuses' | 'blockhashLives' | 'account'
>;

/** In ms. */
export type EmbeddedTiming = {
  verifyMs: number;
  signMs: number;
  settleMs: number;
  /** Between two sends of a transaction that is not confirmed yet. */
  resendMs: number;
  /** Between two looks at its status. */
  lookMs: number;
};

/** Verify, work, sign and settle together take less than the lease of a claim. */
const TIMING: EmbeddedTiming = {
  verifyMs: 10_000,
  signMs: 5_000,
  settleMs: 45_000,
  resendMs: 2_000,
  lookMs: 400,
};

export type EmbeddedParts = {
  chain: FacilitatorChain;
  feePayer: KeyPair;
  guard: FeePayerGuard;
  verdict: ReferenceVerdict;
  log: Log;
  timing?: Partial<EmbeddedTiming>;
};

/**
 * Our own facilitator (x402 v2, scheme `exact` on SVM): it pays the fees with the operator's key and needs no third party. The reference
 * implementation judges a payment, after limits of our own that are stricter. Signing and sending are apart, so that the ledger has the
 * signed transaction before the chain can have it: what happened in between is decided by these bytes, after a crash and at any server.
 */
export function embeddedFacilitator(parts: EmbeddedParts): Required<Facilitator> {
  const timing = { ...TIMING, ...parts.timing };
  const closing = new AbortController();
  // Every call under way listens to it.
  setMaxListeners(0, closing.signal);
  const all: Embedded = {
    ...parts,
    timing,
    watch: new SignatureWatch(parts.chain, timing.lookMs),
    funds: new FundsInFlight(parts.chain),
    closing: closing.signal,
  };
  return {
    async supported() {
      const refusal = parts.guard.refusal();
      if (refusal !== undefined) throw new FacilitatorUnreachable(refusal);
      return { feePayer: parts.feePayer.address };
    },
    verify: request => judge(all, request, timing.verifyMs),
    sign: request => sign(all, request),
    settle: request => settle(all, request),
    async close() {
      closing.abort(new Error('the server is shutting down'));
      all.watch.close();
      parts.guard.stop();
    },
  };
}

const COSTLY =
  'too many transfers of this payer failed on the chain after they had passed the simulation; try again in an hour';

/** Begins as a refusal that precedes signing. */
const SPENT =
  'insufficient_funds: other payments of this payer are under way, and nothing is left for this one';

type Embedded = Omit<EmbeddedParts, 'timing'> & {
  timing: EmbeddedTiming;
  watch: SignatureWatch;
  funds: FundsInFlight;
  closing: AbortSignal;
};

async function judge(
  { chain, feePayer, guard, verdict, closing }: Embedded,
  request: FacilitatorRequest,
  ms: number,
): Promise<VerifyResult> {
  const fault = faultOf(request.transaction, feePayer.address);
  if (fault) return { kind: 'refused', reason: `${fault.reason}: ${fault.message}` };
  if (!guard.allows(payerOf(request.transaction))) return { kind: 'refused', reason: COSTLY };
  const refusal = guard.refusal();
  if (refusal !== undefined) return { kind: 'unavailable', detail: refusal };
  try {
    const found = await withAbortAfter(ms, closing, signal =>
      verdict(request, async transaction => (await chain.simulate(transaction, signal)).error),
    );
    return found.kind === 'refused' ? { kind: 'refused', reason: plain(found.reason) } : found;
  } catch (error) {
    return { kind: 'unavailable', detail: messageOf(error) };
  }
}

async function sign(all: Embedded, request: FacilitatorRequest): Promise<SignResult> {
  const { feePayer, guard, funds, timing, closing } = all;
  const verdict = await judge(all, request, timing.signMs);
  if (verdict.kind !== 'valid') return verdict;
  const signed = feePayer.signAsFeePayer(request.transaction);
  const transfer = transferOf(request, signed.signature);
  try {
    const covered = await withAbortAfter(timing.signMs, closing, signal => funds.reserve(transfer, signal));
    if (!covered) return { kind: 'refused', reason: SPENT };
  } catch (error) {
    return { kind: 'unavailable', detail: messageOf(error) };
  }
  const refusal = guard.reserve(signed.signature, feeOf(read(request.transaction)));
  const withdraw = (): void => {
    funds.over(transfer);
    guard.withdraw(signed.signature);
  };
  if (refusal === undefined) return { kind: 'signed', ...signed, withdraw };
  funds.over(transfer);
  return { kind: 'unavailable', detail: refusal };
}

/** Stricter than the reference: two signatures, little to pay for, and the fee payer loses the fee and nothing else. */
function faultOf(base64: string, feePayer: string): FeeFault | undefined {
  let transaction: SolanaTransaction;
  try {
    transaction = read(base64);
  } catch (error) {
    if (!(error instanceof MessageFault)) throw error;
    return payloadFault('transaction_could_not_be_decoded', error.message);
  }
  const fees = feeFault(transaction);
  if (fees) return fees;
  if (!isSane(transaction)) return payloadFault('transaction', 'an index is out of range');
  if (nameOf(transaction.keys[0]) !== feePayer)
    return payloadFault('transaction', `the fee payer must be ${feePayer}`);
  if (usesFeePayer(transaction))
    return payloadFault(
      'transaction_fee_payer_in_instruction',
      'the fee payer must not appear in any instruction',
    );
  return undefined;
}

function transferOf({ transaction, requirements }: FacilitatorRequest, signature: string): SignedTransfer {
  return { signature, account: sourceAccountOf(transaction), amount: BigInt(requirements.amount) };
}

/** The second signer of a transaction: whose money moves. */
function payerOf(base64: string): string {
  return nameOf(read(base64).keys[1]);
}

function read(base64: string): SolanaTransaction {
  return readTransaction(Buffer.from(base64, 'base64'));
}

/**
 * Sends the signed transaction until it is confirmed, or can no longer be. Whatever else happens is unknown: also a transaction that
 * failed on the chain, because only `finalized` proves that. May be repeated with the same bytes at any time and at any server.
 */
async function settle(all: Embedded, request: FacilitatorRequest): Promise<SettleResult> {
  const { guard, funds, timing, closing } = all;
  const { transaction } = request;
  const signature = signatureOf(transaction);
  if (signature === undefined)
    return { kind: 'unknown', reason: 'the fee payer has not signed the stored transaction', signature: '' };
  const unknown = (reason: string): SettleResult => ({ kind: 'unknown', reason, signature });
  guard.sent(signature, feeOf(read(transaction)));
  const transfer = transferOf(request, signature);
  funds.sent(transfer);
  try {
    const landing = await withAbortAfter(timing.settleMs, closing, signal =>
      sendUntilLanded(all, { transaction, signature }, signal),
    );
    guard.landed(signature);
    funds.over(transfer);
    if (!landing.failed) return { kind: 'settled', signature };
    guard.lostBy(payerOf(transaction));
    return unknown('the transaction failed on the chain');
  } catch (error) {
    return unknown(messageOf(error));
  }
}

type Signed = { transaction: string; signature: string };

async function sendUntilLanded(all: Embedded, signed: Signed, signal: AbortSignal): Promise<Landing> {
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

/** An RPC server may lose what it accepted, so that it is sent again until it landed or never can. */
async function resendUntilDead(all: Embedded, signed: Signed, signal: AbortSignal): Promise<Landing> {
  const { chain, timing } = all;
  const blockhash = nameOf(read(signed.transaction).blockhash);
  for (;;) {
    await pause(timing.resendMs, signal);
    const lives = await chain.blockhashLives(blockhash, signal).catch(() => true);
    if (!lives) return lastLook(all, signed, signal);
    await send(all, signed, signal);
  }
}

/** It may have landed in the last block that took it, after the last look. */
async function lastLook({ chain }: Embedded, { signature }: Signed, signal: AbortSignal): Promise<Landing> {
  const [status] = await chain.signatureStatuses([signature], signal);
  if (!status || status.finality === 'processed')
    throw new Error('the blockhash expired before the transaction was confirmed');
  return { failed: status.failed };
}

/** Acceptance proves nothing, and neither does its lack: a server may have passed the transaction on and failed to say so. */
async function send({ chain, log }: Embedded, signed: Signed, signal: AbortSignal): Promise<void> {
  try {
    await chain.send(signed.transaction, signal);
  } catch (error) {
    if (!signal.aborted)
      log.warn(
        { error, signature: signed.signature },
        'no RPC server accepted a transaction; it is sent again',
      );
  }
}

const SIGNATURE_BYTES = 64;

/** The fee payer's signature, base58; undefined if its slot is empty. */
function signatureOf(base64: string): string | undefined {
  const slot = Buffer.from(base64, 'base64').subarray(1, 1 + SIGNATURE_BYTES);
  return slot.some(byte => byte !== 0) ? base58.encode(slot) : undefined;
}
