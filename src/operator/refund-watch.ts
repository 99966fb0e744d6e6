import type { LedgerReader, Repayment } from '../ledger/store.js';
import { withAbortAfter } from '../net/deadline.js';
import type { Log } from '../net/log.js';
import { ChainHeights } from '../rails/solana/chain-heights.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { findRefundTransfer } from './ask-refund.js';
import { fateOfRefund, isWritten, type FateChain, type WrittenRefund } from './refund-fate.js';

const INTERVAL_MS = 15_000;
const LOOK_MS = 10_000;
/** The maximum number of refunds per round; the next round continues after them. */
const PAGE = 20;
/** A process that has not signed its reserved refund after this time is assumed to have been killed. */
const UNSIGNED_MS = 15 * 60_000;

/** `servers`: the RPC servers of `chain`, each with its own client. */
type Options = {
  ledger: Pick<
    LedgerReader,
    'openRepayments' | 'landRepayment' | 'failRepayment' | 'cancelRepayment' | 'getMeta' | 'setMeta'
  >;
  chain: Pick<SolanaChain, 'signaturesFor' | 'transaction' | 'send'>;
  servers: readonly FateChain[];
  mint: string;
  log: Log;
  now?: () => number;
};

/**
 * Looks for the transfers that pay the links of refunds, and resends signed refunds until they have landed or
 * are proven never to land. This needs no key. Every server may do it, because a transfer counts only once.
 */
export class RefundWatch {
  readonly #options: Options;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #last: Repayment | undefined;
  #round: Promise<void> | undefined;
  readonly #heights: ChainHeights;

  constructor(options: Options) {
    this.#options = options;
    this.#heights = new ChainHeights(options.ledger);
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), INTERVAL_MS);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort(new Error('the server is shutting down'));
    await this.#round;
  }

  /** Runs one round. Rounds never overlap. Never rejects. */
  look(): Promise<void> {
    this.#round ??= this.#lookAtPage()
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#round = undefined;
      });
    return this.#round;
  }

  async #lookAtPage(): Promise<void> {
    const page = await this.#options.ledger.openRepayments(this.#last, PAGE);
    this.#last = page.length === PAGE ? page.at(-1) : undefined;
    // A refund whose check fails, for example because too many transfers name its link, must not hold up the others.
    for (const repayment of page)
      await this.#goOn(repayment).catch((error: unknown) => this.#failed(error, repayment.id));
  }

  async #goOn(repayment: Repayment): Promise<void> {
    if (repayment.way === 'wallet') return this.#lookFor(repayment);
    if (isWritten(repayment)) return this.#settle(repayment);
    const { ledger, now = Date.now } = this.#options;
    if (now() - repayment.createdAt > UNSIGNED_MS)
      await ledger.cancelRepayment(repayment.id, 'the process that started it never signed it');
  }

  async #settle(refund: WrittenRefund): Promise<void> {
    const { ledger, chain, servers, log } = this.#options;
    const { id, payment, evidence, signature: transaction } = refund;
    await this.#heights.refresh();
    await withAbortAfter(LOOK_MS, this.#stop.signal, async signal => {
      const fate = await fateOfRefund(servers, refund, this.#heights, signal);
      if (fate.kind === 'open') return chain.send(evidence, signal);
      if (fate.kind === 'landed') {
        const outcome = await ledger.landRepayment(id, fate.landed);
        log.info({ payment, refund: id, transaction, outcome }, 'a refund has landed');
      } else {
        await ledger.failRepayment(id, transaction, fate.why);
        log.warn({ payment, refund: id, transaction }, `a refund did not move any money: ${fate.why}`);
      }
    });
  }

  #failed(error: unknown, refund?: string): void {
    if (!this.#stop.signal.aborted)
      this.#options.log.warn({ error, refund }, 'could not look for refunds on chain');
  }

  async #lookFor(repayment: Repayment): Promise<void> {
    const { ledger, chain, mint, log } = this.#options;
    const landed = await withAbortAfter(LOOK_MS, this.#stop.signal, signal =>
      findRefundTransfer(chain, mint, repayment, signal),
    );
    if (!landed) return;
    const { id: refund, payment } = repayment;
    const outcome = await ledger.landRepayment(refund, landed);
    log.info({ payment, refund, transaction: landed.signature, outcome }, 'a refund has landed');
  }
}
