import type { Charge } from '../sale/charge.js';

/** Sends one progress notification of a call. */
export type Notify = (progress: { progress: number; total?: number; message: string }) => Promise<void>;

/** Well below the time after which hosts end a silent call. */
const EVERY_MS = 5_000;
/** MCP requires each number to be greater than the one before, even if no further part has been finished. */
const STEP = 0.001;

/**
 * Reports a call's progress to its caller until `answer` resolves: finished parts if its work has parts, otherwise seconds.
 * @param payment returns the id of the call's payment once it is known
 */
export async function withProgress<T>(
  answer: Promise<T>,
  charge: Pick<Charge, 'progressOf'>,
  payment: () => string | undefined,
  notify: Notify | undefined,
  everyMs = EVERY_MS,
): Promise<T> {
  if (!notify) return answer;
  let last = 0;
  let seconds = 0;
  const tell = async (): Promise<void> => {
    seconds += everyMs / 1_000;
    const id = payment();
    const order = id === undefined ? undefined : await charge.progressOf(id);
    last = Math.max(order ? order.done : seconds, last + STEP);
    await notify(
      order
        ? { progress: last, total: order.wanted, message: `${order.done} of ${order.wanted} done` }
        : { progress: last, message: 'in progress' },
    );
  };
  const timer = setInterval(() => void tell().catch(() => {}), everyMs);
  try {
    return await answer;
  } finally {
    clearInterval(timer);
  }
}
