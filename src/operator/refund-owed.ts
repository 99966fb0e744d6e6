import { messageOf } from '../ledger/fault.js';
import type { LedgerReader, Payment, RefundPolicy, Repayment } from '../ledger/store.js';
import { inSol } from '../facilitators/fee-payer-guard.js';
import { withAbortAfter } from '../net/deadline.js';
import type { Log } from '../net/log.js';
import { toDecimal } from '../price/amount.js';
import { ChainHeights } from '../rails/solana/chain-heights.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { receiverAccount } from '../rails/solana/transaction.js';
import { OperatorFault } from './operator-fault.js';
import { isWritten } from './refund-fate.js';
import { usdcOf, type RefundWallet } from './refund-transaction.js';
import { lookForGivenUp, sendRefund } from './send-refund.js';

const INTERVAL_MS = 60_000;
const READ_MS = 10_000;
/** After this time, the refund watch takes over. It needs no key. */
const SEND_MS = 90_000;
/** The wait after a failed refund of a payment: 15 minutes at first, then four times the previous wait, at most a day. */
const AGAIN_MS = { first: 15 * 60_000, factor: 4, most: 86_400_000 };
/** After this many failed tries, only the operator can refund the payment. */
const MAX_TRIES = 8;
/**
 * When the fee payer has less SOL than this above its minimum, the operator should add some. This amount pays
 * the fees of a hundred refunds.
 */
const LOW_LAMPORTS = 1_000_000n;

type OwedLedger = Pick<
  LedgerReader,
  | 'find'
  | 'givenUpOrders'
  | 'startRepayment'
  | 'repayment'
  | 'repaymentsOf'
  | 'writeDownRepayment'
  | 'landRepayment'
  | 'failRepayment'
  | 'cancelRepayment'
  | 'getMeta'
  | 'setMeta'
>;

/**
 * `floor`: the USDC that the wallet keeps, in atomic units. `servers`: the RPC servers of `chain`, each with its own client.
 */
export type OwedOptions = {
  ledger: OwedLedger;
  chain: SolanaChain;
  servers: readonly SolanaChain[];
  mint: string;
  wallet: RefundWallet;
  policy: RefundPolicy;
  floor: bigint;
  log: Log;
  now?: () => number;
  /** How long one refund is resent and looked for on chain. */
  sendMs?: number;
};

/** The wallet's balances, in atomic units of USDC and in lamports. */
type Funds = { usdc: bigint; lamports: bigint };

/**
 * Uses a key that the server holds to refund orders that were paid and then given up. The ledger decides, for all
 * servers together, what is due and how much may be refunded in a day. Each refund is sent in the same way as
 * one that the operator starts.
 */
export class OwedRefunds {
  readonly #options: OwedOptions;
  readonly #heights: ChainHeights;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;
  #funds: Funds | undefined;
  #short = false;
  #saidCap = false;

  constructor(options: OwedOptions) {
    this.#options = options;
    this.#heights = new ChainHeights(options.ledger);
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), INTERVAL_MS).unref();
    void this.look();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort(new Error('the server is shutting down'));
    await this.#round;
  }

  /** The balance of a wallet that the operator should top up, because it can't pay a due refund, a day's refunds up to the cap, or fees. */
  low(): { address: string; left: string } | undefined {
    const { wallet, policy, floor } = this.#options;
    if (!this.#funds) return undefined;
    const { usdc, lamports } = this.#funds;
    const { address } = wallet.keyPair;
    if (this.#short || usdc < floor + policy.dailyCap) return { address, left: `${toDecimal(usdc)} USDC` };
    if (lamports < wallet.floor + LOW_LAMPORTS)
      return { address: wallet.feePayer.address, left: `${inSol(lamports)} SOL` };
    return undefined;
  }

  /** Runs one round. Rounds never overlap. Never rejects. */
  look(): Promise<void> {
    this.#round ??= this.#refundAll()
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#round = undefined;
      });
    return this.#round;
  }

  async #refundAll(): Promise<void> {
    const { ledger, policy } = this.#options;
    this.#short = false;
    await this.#readFunds();
    let last: Payment | undefined;
    do {
      const page = await ledger.givenUpOrders(policy.afterMs, last);
      for (const payment of page) {
        if (this.#stop.signal.aborted) return;
        const over = await this.#refund(payment).catch((error: unknown) => this.#failed(error, payment.id));
        if (over === 'over the cap') return;
      }
      last = page.at(-1);
    } while (last);
    this.#saidCap = false;
  }

  async #readFunds(): Promise<Funds> {
    const { chain, wallet, mint } = this.#options;
    const source = receiverAccount({ asset: mint, payTo: wallet.keyPair.address });
    this.#funds = await withAbortAfter(READ_MS, this.#stop.signal, async signal => ({
      usdc: await usdcOf(chain, source, signal),
      lamports: await chain.balance(wallet.feePayer.address, signal),
    }));
    return this.#funds;
  }

  async #refund(payment: Payment): Promise<'over the cap' | undefined> {
    const { ledger, policy, floor, now = Date.now, sendMs = SEND_MS } = this.#options;
    const amount = payment.amount - payment.repaid;
    const earlier = await ledger.repaymentsOf(payment.id);
    if (earlier.some(goesOnWithoutUs) || now() < nextTryAt(earlier)) return undefined;
    if ((await this.#readFunds()).usdc < floor + amount) {
      this.#short = true;
      return undefined;
    }
    await this.#heights.refresh();
    return withAbortAfter(sendMs, this.#stop.signal, async signal => {
      await lookForGivenUp({ ...this.#options, heights: this.#heights }, payment, signal);
      const request = { payment: payment.id, amount, way: 'key', policy, after: payment.after } as const;
      const started = await ledger.startRepayment(request);
      if (started.kind === 'over the cap') return this.#overTheCap();
      const reserved = 'repayment' in started ? started.repayment : undefined;
      // The refund was started by this server before a crash, or by another server. Whoever signs second sends the transaction that was
      // signed first.
      if (reserved && reserved.cause === 'policy') await this.#send(payment, reserved, signal);
      return undefined;
    });
  }

  async #send(payment: Payment, reserved: Repayment, signal: AbortSignal): Promise<void> {
    const { log, wallet } = this.#options;
    const sending = { ...this.#options, heights: this.#heights };
    const transaction = await sendRefund(sending, payment, reserved, wallet, signal);
    log.info(
      { payment: payment.id, refund: reserved.id, transaction },
      'an order that was given up was refunded',
    );
  }

  #overTheCap(): 'over the cap' {
    const { log, policy } = this.#options;
    const cap = `${toDecimal(policy.dailyCap)} USDC`;
    if (!this.#saidCap) log.warn({ cap }, 'REFUND_DAILY_CAP is reached: refunds of owed orders have to wait');
    this.#saidCap = true;
    return 'over the cap';
  }

  #failed(error: unknown, payment?: string): undefined {
    if (this.#stop.signal.aborted) return undefined;
    const why = error instanceof OperatorFault ? { why: messageOf(error) } : { error };
    this.#options.log.warn({ payment, ...why }, 'an order that was given up could not be refunded');
    return undefined;
  }
}

/** Whether a refund was started by the operator or is already signed. The refund watch then continues it. */
function goesOnWithoutUs(repayment: Repayment): boolean {
  return repayment.decidedAt === null && (repayment.cause === 'operator' || isWritten(repayment));
}

/** The time of the next try for a payment. Computed from the ledger alone, so that a crash does not shorten the wait. */
function nextTryAt(earlier: readonly Repayment[]): number {
  const failed = earlier.filter(
    ({ cause, state }) => cause === 'policy' && (state === 'failed' || state === 'cancelled'),
  );
  const last = failed.at(-1)?.decidedAt;
  if (last === undefined || last === null) return 0;
  if (failed.length >= MAX_TRIES) return Infinity;
  return last + Math.min(AGAIN_MS.first * AGAIN_MS.factor ** (failed.length - 1), AGAIN_MS.most);
}
