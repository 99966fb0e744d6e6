import { setMaxListeners } from 'node:events';
import { messageOf } from '../ledger/fault.js';
import type { Log } from '../net/log.js';
import { withAbortAfter } from '../net/deadline.js';
import type { SettleResult, SignResult, VerifyResult } from '../rails/rail.js';
import { SignatureWatch } from '../rails/solana/signature-watch.js';
import { sourceAccountOf } from '../rails/solana/transaction.js';
import type { FacilitatorChain } from './embedded-facilitator.js';
import { plain, type FacilitatorRequest } from './facilitator.js';
import { FundsInFlight, type SignedTransfer } from './funds-in-flight.js';
import { sendUntilLanded, signatureOf } from './send-until-landed.js';

/** In ms; as those of the embedded facilitator. */
export type SenderTiming = { verifyMs: number; settleMs: number; resendMs: number; lookMs: number };

const TIMING: SenderTiming = { verifyMs: 10_000, settleMs: 45_000, resendMs: 2_000, lookMs: 400 };
const SPENT =
  'insufficient_funds: other payments of this payer are under way, and nothing is left for this one';

/** Sends payments whose payers pay the fees themselves. No key of ours is needed. */
export type Sender = {
  verify(request: FacilitatorRequest): Promise<VerifyResult>;
  sign(request: FacilitatorRequest): Promise<SignResult>;
  settle(request: FacilitatorRequest): Promise<SettleResult>;
  close(): void;
};

export function createSender(chain: FacilitatorChain, log: Log, timing = TIMING): Sender {
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  const sending = { chain, log, watch: new SignatureWatch(chain, timing.lookMs), timing };
  const funds = new FundsInFlight(chain);
  const within = <T>(ms: number, ask: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    withAbortAfter(ms, closing.signal, ask);

  /** The local check has compared everything with the offer; what is left to ask is whether the chain would take it. */
  async function verify({ transaction }: FacilitatorRequest): Promise<VerifyResult> {
    try {
      const { error } = await within(timing.verifyMs, signal => chain.simulate(transaction, signal));
      if (error === null) return { kind: 'valid' };
      const reason = plain(`invalid_exact_svm_transaction_simulation_failed: Simulation failed: ${error}`);
      return { kind: 'refused', reason };
    } catch (error) {
      return { kind: 'unavailable', detail: messageOf(error) };
    }
  }

  /**
   * Its payer has signed it: the ledger stores it as it came, before it is sent. Its payer can send it, too, and the chain refuses then what
   * has landed already: its money has moved.
   */
  async function sign(request: FacilitatorRequest): Promise<SignResult> {
    const verdict = await verify(request);
    if (verdict.kind === 'unavailable') return verdict;
    const { transaction } = request;
    const transfer = transferOf(request);
    try {
      if (verdict.kind === 'refused') {
        const [status] = await within(timing.verifyMs, signal =>
          chain.signatureStatuses([transfer.signature], signal),
        );
        if (!status || status.failed) return verdict;
        return { kind: 'signed', transaction, signature: transfer.signature };
      }
      const covered = await within(timing.verifyMs, signal => funds.reserve(transfer, signal));
      if (!covered) return { kind: 'refused', reason: SPENT };
    } catch (error) {
      return { kind: 'unavailable', detail: messageOf(error) };
    }
    const { signature } = transfer;
    return { kind: 'signed', transaction, signature, withdraw: () => funds.over(transfer) };
  }

  /** A transaction that failed on the chain is unknown, too: only `finalized` proves that. */
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
