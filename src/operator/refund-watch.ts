import type { LedgerReader, Repayment } from '../ledger/store.js';
import { withAbortAfter } from '../net/deadline.js';
import type { Log } from '../net/log.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { findRefundTransfer } from './ask-refund.js';

const INTERVAL_MS = 15_000;
const LOOK_MS = 10_000;
/** In a round: the next one goes on where it ended. */
const PAGE = 20;

type Options = {
  ledger: Pick<LedgerReader, 'openRepayments' | 'landRepayment'>;
  chain: Pick<SolanaChain, 'signaturesFor' | 'transaction'>;
  mint: string;
  log: Log;
};

/** Looks for the transfers that pay the links of refunds. Every server may do so: a transfer counts once. */
export class RefundWatch {
  readonly #options: Options;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #last: Repayment | undefined;
  #round: Promise<void> | undefined;

  constructor(options: Options) {
    this.#options = options;
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
    // One that cannot be looked for, such as one whose link too many transfers name, must not keep the others waiting.
    for (const repayment of page)
      if (repayment.way === 'wallet')
        await this.#lookFor(repayment).catch((error: unknown) => this.#failed(error, repayment.id));
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
