import { setMaxListeners } from 'node:events';
import { messageOf } from '../ledger/fault.js';
import type { Log } from '../net/log.js';
import { withAbortAfter } from '../net/deadline.js';
import type { SettleResult, SignResult, VerifyResult } from '../rails/rail.js';
import { landedTransfer, type ChainHistory } from '../rails/solana/find-transfer.js';
import { SignatureWatch } from '../rails/solana/signature-watch.js';
import { idOf, sourceAccountOf } from '../rails/solana/transaction.js';
import type { FacilitatorChain } from './embedded-facilitator.js';
import { plain, type FacilitatorRequest } from './facilitator.js';
import { FundsInFlight, type SignedTransfer } from './funds-in-flight.js';
import { sendUntilLanded, signatureOf } from './send-until-landed.js';

/** In ms; see `EmbeddedTiming`. */
export type SenderTiming = { verifyMs: number; settleMs: number; resendMs: number; lookMs: number };

const TIMING: SenderTiming = { verifyMs: 10_000, settleMs: 45_000, resendMs: 2_000, lookMs: 400 };
const SPENT =
  'insufficient_funds: other payments by this payer are under way, and nothing is left for this one';

type SenderChain = FacilitatorChain & Pick<ChainHistory, 'transaction'>;

/** Sends payments whose payers pay the fees. Needs no key. */
export type Sender = {
  verify(request: FacilitatorRequest): Promise<VerifyResult>;
  sign(request: FacilitatorRequest): Promise<SignResult>;
  settle(request: FacilitatorRequest): Promise<SettleResult>;
  close(): void;
};

export function createSender(chain: SenderChain, log: Log, timing = TIMING): Sender {
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  const sending = { chain, log, watch: new SignatureWatch(chain, timing.lookMs), timing };
  const funds = new FundsInFlight(chain);
  const within = <T>(ms: number, ask: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    withAbortAfter(ms, closing.signal, ask);

  const look = (transaction: string): ReturnType<typeof lookAt> =>
    lookAt(chain, transaction, ask => within(timing.verifyMs, ask));
  const verify = ({ transaction }: FacilitatorRequest): Promise<VerifyResult> => look(transaction);

  /** The payer has signed it: the ledger stores it unchanged before it is sent. */
  async function sign(request: FacilitatorRequest): Promise<SignResult> {
    const { transaction } = request;
    const found = await look(transaction);
    if (found.kind !== 'valid') return found;
    const transfer = transferOf(request);
    const { signature } = transfer;
    const signed = { kind: 'signed', transaction, signature } as const;
    if (found.slot !== undefined) return { ...signed, movedAfter: found.slot - 1 };
    try {
      const covered = await within(timing.verifyMs, signal => funds.reserve(transfer, signal));
      if (!covered) return { kind: 'refused', reason: SPENT };
    } catch (error) {
      return { kind: 'unavailable', detail: messageOf(error) };
    }
    return { ...signed, withdraw: () => funds.over(transfer) };
  }

  /** A transaction that failed on the chain is also reported as unknown, because only `finalized` proves a failure. */
  async function settle(request: FacilitatorRequest): Promise<SettleResult> {
    const transfer = transferOf(request);
    const { signature } = transfer;
    funds.sent(transfer);
    try {
      const signed = { transaction: request.transaction, signature };
      const landing = await within(timing.settleMs, signal => sendUntilLanded(sending, signed, signal));
      funds.over(transfer);
      if (!landing.failed) return { kind: 'settled', signature };
      return { kind: 'unknown', reason: 'the transaction failed on the chain', signature };
    } catch (error) {
      return { kind: 'unknown', reason: messageOf(error), signature };
    }
  }

  function close(): void {
    closing.abort(new Error('the server is shutting down'));
    sending.watch.close();
  }

  return { verify, sign, settle, close };
}

function transferOf({ transaction, requirements }: FacilitatorRequest): SignedTransfer {
  const signature = signatureOf(transaction) ?? '';
  return { signature, account: sourceAccountOf(transaction), amount: BigInt(requirements.amount) };
}

/** Asks the chain within a deadline. */
type Ask = <T>(ask: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/**
 * The local check has compared everything with the offer. This asks the chain whether it would accept the transaction or already has it:
 * the payer can also send it, and the chain refuses a transaction that has already landed.
 */
async function lookAt(
  chain: SenderChain,
  transaction: string,
  within: Ask,
): Promise<VerifyResult & { slot?: number }> {
  try {
    const { error } = await within(signal => chain.simulate(transaction, signal));
    if (error === null) return { kind: 'valid' };
    const sent = { id: idOf(transaction), signature: signatureOf(transaction) ?? '' };
    const landed = await within(signal => landedTransfer(chain, sent, signal));
    if (landed && !landed.failed) return { kind: 'valid', moved: true, slot: landed.slot };
    const reason = plain(`invalid_exact_svm_transaction_simulation_failed: Simulation failed: ${error}`);
    return { kind: 'refused', reason };
  } catch (error) {
    return { kind: 'unavailable', detail: messageOf(error) };
  }
}
