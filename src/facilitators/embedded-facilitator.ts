import { messageOf } from '../ledger/fault.js';
import { setMaxListeners } from 'node:events';
import type { Log } from '../net/log.js';
import { withAbortAfter } from '../net/deadline.js';
import {
  feeFault,
  feeOf,
  hasLimitFirst,
  payloadFault,
  SIGNATURES,
  usesFeePayer,
  type FeeFault,
} from '../rails/solana/fee-limits.js';
import type { KeyPair } from '../rails/solana/key-pair.js';
import { isSane, MessageFault, readTransaction, type SolanaTransaction } from '../rails/solana/message.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { SignatureWatch } from '../rails/solana/signature-watch.js';
import { FacilitatorUnreachable, plain, type Facilitator, type FacilitatorRequest } from './facilitator.js';
import type { SettleResult, SignResult, VerifyResult } from '../rails/rail.js';
import type { FeePayerGuard } from './fee-payer-guard.js';
import { FundsInFlight, type SignedTransfer } from './funds-in-flight.js';
import type { ReferenceVerdict, Simulate } from './reference-verdict.js';
import { sendUntilLanded, signatureOf } from './send-until-landed.js';
import { nameOf, sourceAccountOf, TransactionChecker } from '../rails/solana/transaction.js';

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
  /** The time between two sends of an unconfirmed transaction. */
  resendMs: number;
  /** The time between two checks of the transaction's status. */
  lookMs: number;
};

/** Together, verifying, working, signing and settling take less time than the lease of a claim lasts. */
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
 * The server's own facilitator (x402 v2, scheme `exact` on SVM): it pays the fees with the operator's key and needs no third party. It checks
 * payments against its own stricter limits, then with the reference implementation. MPP transactions have a different order, which the reference
 * implementation would refuse, so only the facilitator's own limits apply to them. Signing and sending are separate, so that the ledger has the
 * signed transaction before the chain can: after a crash, any server can resolve the payment from these bytes.
 */
export function embeddedFacilitator(parts: EmbeddedParts): Required<Facilitator> {
  const timing = { ...TIMING, ...parts.timing };
  const closing = new AbortController();
  // Every call under way adds a listener, so Node.js's warning is switched off.
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
  'too many transfers by this payer failed on the chain after they had passed the simulation; try again in an hour';

/** Begins with x402's reason for a refusal before signing (see `REFUSALS_BEFORE_SIGNING`). */
const SPENT =
  'insufficient_funds: other payments by this payer are under way, and nothing is left for this one';

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
      (isBuiltForX402(request) ? verdict : ownVerdict)(
        request,
        async transaction => (await chain.simulate(transaction, signal)).error,
      ),
    );
    return found.kind === 'refused' ? { kind: 'refused', reason: plain(found.reason) } : found;
  } catch (error) {
    return { kind: 'unavailable', detail: messageOf(error) };
  }
}

function isBuiltForX402({ transaction }: FacilitatorRequest): boolean {
  return hasLimitFirst(read(transaction));
}

const checker = new TransactionChecker();

/**
 * Checks everything except the memo, which the caller has already compared with its challenge. Then asks the chain whether it would accept the
 * transaction.
 */
async function ownVerdict(
  { transaction, requirements }: FacilitatorRequest,
  simulate: Simulate,
): Promise<VerifyResult> {
  const { asset, payTo, amount, extra } = requirements;
  const expected = { asset, payTo, amount: BigInt(amount) };
  const check = await checker.check(transaction, expected, { feePayer: String(extra.feePayer) });
  if (!check.ok) return { kind: 'refused', reason: `invalid_exact_svm_payload_transaction: ${check.error}` };
  const error = await simulate(transaction);
  if (error === null) return { kind: 'valid' };
  return {
    kind: 'refused',
    reason: `invalid_exact_svm_transaction_simulation_failed: Simulation failed: ${error}`,
  };
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

/** Stricter than the reference implementation: requires two signatures and low fees, and lets nothing but the fees be taken from the fee payer. */
function faultOf(base64: string, feePayer: string): FeeFault | undefined {
  let transaction: SolanaTransaction;
  try {
    transaction = read(base64);
  } catch (error) {
    if (!(error instanceof MessageFault)) throw error;
    return payloadFault('transaction_could_not_be_decoded', error.message);
  }
  const fees = feeFault(transaction, { signatures: SIGNATURES, anyOrder: true });
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

/** The second signer of a transaction: the owner of the money. */
function payerOf(base64: string): string {
  return nameOf(read(base64).keys[1]);
}

function read(base64: string): SolanaTransaction {
  return readTransaction(Buffer.from(base64, 'base64'));
}

/**
 * Sends the signed transaction repeatedly until it is confirmed or has expired. Every other result is reported as unknown, even if the
 * transaction failed on the chain, because only `finalized` proves a failure. Can be repeated with the same bytes at any time and on any server.
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
