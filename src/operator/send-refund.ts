import { messageOf } from '../ledger/fault.js';
import type { LedgerReader, Payment, Repayment } from '../ledger/store.js';
import { sendUntilLanded } from '../facilitators/send-until-landed.js';
import { pause } from '../net/deadline.js';
import type { Log } from '../net/log.js';
import type { ChainHeights } from '../rails/solana/chain-heights.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { SignatureWatch } from '../rails/solana/signature-watch.js';
import { findRefundTransfer } from './ask-refund.js';
import { OperatorFault } from './operator-fault.js';
import { fateOfRefund, isWritten, type RefundFate, type WrittenRefund } from './refund-fate.js';
import { pays, signRefund, type RefundWallet } from './refund-transaction.js';

type RefundLedger = Pick<
  LedgerReader,
  | 'find'
  | 'repayment'
  | 'repaymentsOf'
  | 'writeDownRepayment'
  | 'landRepayment'
  | 'failRepayment'
  | 'cancelRepayment'
>;

/** `servers`: the RPC servers of `chain`, each with its own client. */
export type RefundSending = {
  ledger: RefundLedger;
  chain: SolanaChain;
  servers: readonly SolanaChain[];
  mint: string;
  heights: Pick<ChainHeights, 'checkRise'>;
  log: Log;
};

const RESEND_MS = 2_000;
const LOOK_AGAIN_MS = 1_000;

/**
 * Sends a reserved refund once: the signed transaction is stored before it is sent, and no other one is ever sent.
 * @returns the transaction, once it is final and recorded
 * @throws OperatorFault that says what was done and what to do next
 */
export async function sendRefund(
  sending: RefundSending,
  payment: Payment,
  reserved: Repayment,
  wallet: RefundWallet,
  signal: AbortSignal,
): Promise<string> {
  const refund = isWritten(reserved) ? reserved : await writeDown(sending, payment, reserved, wallet, signal);
  if (!pays(refund.evidence, payment, refund, sending.mint))
    throw new OperatorFault(
      `The signed transaction in the ledger for refund ${refund.id} does not pay it. Nothing was sent. Was the ledger edited?`,
    );
  return settle(sending, refund, signal);
}

/** Signs a refund and stores the transaction. If another process stored one first, returns the stored one. */
async function writeDown(
  { ledger, chain, mint }: RefundSending,
  payment: Payment,
  repayment: Repayment,
  wallet: RefundWallet,
  signal: AbortSignal,
): Promise<WrittenRefund> {
  const { id } = repayment;
  const refund = { payment, repayment };
  const stored = await signRefund(chain, mint, refund, wallet, signal).then(
    signed => ledger.writeDownRepayment(id, signed),
    async (error: unknown) => {
      // False if another process stored a transaction in the meantime. That transaction is then sent.
      if (!(await ledger.cancelRepayment(id, messageOf(error)))) return ledger.repayment(id);
      throw error instanceof OperatorFault
        ? new OperatorFault(`${error.message} Nothing was sent.`)
        : new OperatorFault(`The chain can't be read: ${messageOf(error)}. Nothing was sent.`);
    },
  );
  if (stored && isWritten(stored)) return stored;
  throw new OperatorFault(
    `Refund ${id} was cancelled in the meantime: ${stored?.failure ?? 'it is not in the ledger'}. Nothing was sent.`,
  );
}

async function settle(sending: RefundSending, refund: WrittenRefund, signal: AbortSignal): Promise<string> {
  let fate = await lookAt(sending, refund, signal);
  if (fate.kind === 'open') await send(sending, refund, signal);
  while (fate.kind === 'open') {
    fate = await lookAt(sending, refund, signal);
    if (fate.kind === 'open' && signal.aborted) throw unknownYet(refund, fate);
    if (fate.kind === 'open') await pause(LOOK_AGAIN_MS, signal).catch(() => undefined);
  }
  return record(sending.ledger, refund, fate);
}

/** An unreachable server is asked again until the deadline. */
function lookAt(
  { servers, heights }: RefundSending,
  refund: WrittenRefund,
  signal: AbortSignal,
): Promise<RefundFate> {
  return fateOfRefund(servers, refund, heights, signal);
}

/** Resends the transaction until it is confirmed or has expired. The caller then reads the final outcome. */
async function send(
  { chain, log }: RefundSending,
  { evidence, signature }: WrittenRefund,
  signal: AbortSignal,
): Promise<void> {
  const watch = new SignatureWatch(chain);
  const how = { chain, watch, timing: { resendMs: RESEND_MS }, log };
  await sendUntilLanded(how, { transaction: evidence, signature }, signal).catch(() => undefined);
  watch.close();
}

async function record(
  ledger: RefundLedger,
  refund: WrittenRefund,
  fate: Exclude<RefundFate, { kind: 'open' }>,
): Promise<string> {
  const { id, signature } = refund;
  if (fate.kind === 'never') {
    await ledger.failRepayment(id, signature, fate.why);
    throw new OperatorFault(
      `Refund ${id} did not move any money: ${fate.why} (transaction ${signature}). The amount is available again: repeat the command to send it with a new transaction.`,
    );
  }
  const outcome = await ledger.landRepayment(id, fate.landed);
  if (outcome === 'done') return signature;
  throw new OperatorFault(
    `The transaction ${signature} has landed, but the ledger has another transaction for refund ${id} (${outcome}): compare both with the chain.`,
  );
}

function unknownYet({ id, signature }: WrittenRefund, fate: RefundFate): OperatorFault {
  const why = fate.kind === 'open' && fate.trouble ? ` (${messageOf(fate.trouble)})` : '';
  return new OperatorFault(
    `It is not known yet whether refund ${id} has landed${why}: transaction ${signature}. Repeat the command: it sends the same transaction, never another one. A running server also continues with it.`,
  );
}

/**
 * Before another refund is reserved, looks again for earlier ones of the payment that were given up: a cancelled link may have been paid,
 * and a server may have missed a landed transfer.
 * @throws OperatorFault if the chain can't be read
 */
export async function lookForGivenUp(
  { ledger, chain, servers, mint, heights }: Omit<RefundSending, 'log'>,
  payment: Payment,
  signal: AbortSignal,
): Promise<void> {
  const all = await ledger.repaymentsOf(payment.id);
  for (const refund of all.filter(({ state }) => state === 'failed' || state === 'cancelled')) {
    if (isWritten(refund)) {
      const fate = await fateOfRefund(servers, refund, heights, signal);
      if (fate.kind === 'landed') await ledger.landRepayment(refund.id, fate.landed);
      if (fate.kind === 'open') throw unsure(refund, fate.trouble);
    } else if (refund.way === 'wallet') {
      const landed = await findRefundTransfer(chain, mint, refund, signal).catch((error: unknown) => {
        throw unsure(refund, error);
      });
      if (landed) await ledger.landRepayment(refund.id, landed);
    }
  }
}

function unsure({ id }: Repayment, why: unknown): OperatorFault {
  return new OperatorFault(
    `Whether the earlier refund ${id} has landed can't be read from the chain${why ? `: ${messageOf(why)}` : ''}. Nothing was sent.`,
  );
}
