import type { Question } from './replies.js';

/** What happens to an order that fewer than half of the people answered: it is delivered as it is, or stays owed until the operator refunds it. */
export type PartialRule = 'deliver' | 'owe';

/** People who can be asked what they think of a brand. */
export type People = {
  /** Short name of the adapter, for logs and health. */
  name: string;
  /**
   * Checked before the payment.
   * @throws UpstreamFailure `unavailable` if nobody can be asked now: no respondent present, too many open questions, marketplace
   *   down, or budget too low; `invalid` if the question in `about` cannot be asked, for example because it is too long.
   */
  ready(wanted: number, about?: { brand: string; question: string }): Promise<void>;
  /**
   * Resolves when all wanted replies are stored or the deadline has passed. Can be called again for the same question after a
   * crash, by the same or another process, but not concurrently.
   * @throws UpstreamFailure if the provider fails permanently; the signal's reason if it aborts. Nothing is undone in either case.
   */
  ask(question: Question, signal: AbortSignal): Promise<void>;
  health(): Promise<{ status: 'ok' | 'degraded'; detail?: string }>;
  close(): Promise<void>;
};
