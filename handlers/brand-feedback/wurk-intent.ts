import type { KeptPayment } from 'coinslot';
import type { WurkJob } from './wurk-api.js';

/** One task that was, or is about to be, bought for a question. */
export type Task = {
  /** Number of replies requested. */
  asked: number;
  path: string;
  /** The payment for the task, stored before it is sent. */
  payment?: KeptPayment;
  /** Set if the payment was not settled and never will be. */
  dead?: true;
  /** Set once the task is bought. Contains the secret for reading the submissions. */
  job?: WurkJob;
};

/** The stored tasks of a question from all attempts, because people may still reply to any task that was paid for. */
export type WurkIntent = { provider: 'wurk'; tasks: Task[] };

/** Undefined if there is no stored intent, or if another provider wrote it. */
export function readWurkIntent(text: string | null): WurkIntent | undefined {
  if (text === null) return undefined;
  try {
    const value = JSON.parse(text) as Partial<WurkIntent> | null;
    return value?.provider === 'wurk' && Array.isArray(value.tasks) ? (value as WurkIntent) : undefined;
  } catch {
    return undefined;
  }
}

/** The amount that was or may have been paid, in atomic units of USDC. */
export function paidFor(tasks: readonly Task[]): bigint {
  return tasks.reduce((sum, { payment, dead }) => sum + (payment && !dead ? BigInt(payment.amount) : 0n), 0n);
}
