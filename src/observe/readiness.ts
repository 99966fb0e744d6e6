import { messageOf } from '../ledger/fault.js';

/** Resolves to the reason why nothing can be sold, as a message for the operator, or to undefined. */
export type ReadinessCheck = () => Promise<string | undefined> | string | undefined;

export type Readiness = {
  ready: boolean;
  /** Why nothing can be sold. */
  reasons: string[];
};

/** A result is reused for this time, in ms, so that frequent polls do not cause frequent writes. */
const FRESH_MS = 1_000;

/**
 * Whether calls can be sold now. A check that rejects counts as a reason; each must have its own time limit. @param checks run in parallel
 */
export function readinessOf(
  checks: readonly ReadinessCheck[],
  now: () => number = Date.now,
): () => Promise<Readiness> {
  let last: { at: number; readiness: Promise<Readiness> } | undefined;

  async function check(): Promise<Readiness> {
    const found = await Promise.all(
      checks.map(async each => {
        try {
          return await each();
        } catch (error) {
          return messageOf(error);
        }
      }),
    );
    const reasons = found.filter(reason => reason !== undefined);
    return { ready: reasons.length === 0, reasons };
  }

  return () => {
    if (!last || now() - last.at >= FRESH_MS) last = { at: now(), readiness: check() };
    return last.readiness;
  };
}
