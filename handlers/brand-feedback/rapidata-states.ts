import { UpstreamFailure } from 'coinslot';
import type { CostWarning, Job } from './rapidata-jobs.js';

/** After the account ran short of funds, no order is sold for this long, to give the operator time to act. */
const NO_SALES_MS = 10 * 60_000;
const MAX_JOBS = 50;

const REVIEWS: Readonly<Record<string, string>> = {
  ContentFlagged: 'its content was flagged',
  UnsupportedContentType: 'its content can’t be checked',
  CheckErrored: 'its content check failed',
  ClassificationTimedOut: 'its content check took too long',
};

/** Problems of jobs that only people can solve, as messages for the operator. */
export class Hindrances {
  readonly #jobs = new Map<string, string>();
  #fundsLowAt = -Infinity;
  #funds = '';

  /** Looks at the state of a job: `ManualApproval` and `SpendLimited` do not end by themselves. */
  see({ id, state, reviewReason }: Job): void {
    this.#jobs.delete(id);
    if (state === 'ManualApproval') {
      const why = REVIEWS[reviewReason ?? ''];
      this.#jobs.set(
        id,
        `Rapidata is reviewing job ${id} before people see it${why ? `, because ${why}` : ''}; this can take hours. Approve it in Rapidata if you can`,
      );
    }
    if (state === 'SpendLimited') {
      this.#jobs.set(id, `job ${id} stopped because the Rapidata account has no funds left: top it up`);
      this.#fundsLowAt = Date.now();
    }
    for (const oldest of [...this.#jobs.keys()].slice(0, -MAX_JOBS)) this.#jobs.delete(oldest);
  }

  /** Records whether the answer to a job's creation warned about the account's balance. */
  warn(warning: CostWarning | undefined): void {
    this.#fundsLowAt = warning ? Date.now() : -Infinity;
    this.#funds = '';
    if (!warning) return;
    const { estimatedCost, availableBalance, shortfall } = warning;
    this.#funds = `the last job costs about ${dollars(estimatedCost)} and the Rapidata account has ${dollars(availableBalance)}: top it up by at least ${dollars(shortfall)}, or the job stops before all have answered`;
  }

  /** Drops the problem of a job that was stopped. */
  forget(id: string): void {
    this.#jobs.delete(id);
  }

  /** @throws UpstreamFailure `unavailable` while the account is short of funds: an order sold now could not be worked on */
  checkFunds(): void {
    const left = this.#fundsLowAt + NO_SALES_MS - Date.now();
    if (left > 0)
      throw new UpstreamFailure(
        'unavailable',
        'The marketplace is not available at present; try again later.',
        {
          retryAfterSeconds: Math.ceil(left / 1_000),
        },
      );
  }

  /** The problems, for the health of the adapter; empty if there are none. */
  get words(): string {
    const funds = this.#fundsLowAt + NO_SALES_MS > Date.now() ? 'no orders are accepted for the moment' : '';
    return [...[...this.#jobs.values()].slice(-3), this.#funds, funds].filter(Boolean).join('; ');
  }
}

/** Rounded up to whole cents. */
function dollars(amount: number): string {
  return `$${(Math.ceil(Number((amount * 100).toFixed(6))) / 100).toFixed(2)}`;
}
