import { LRUCache } from 'lru-cache';
import type { Log } from '../net/log.js';

/** Within this time, in ms, a repeated fault is counted instead of logged. */
const WINDOW_MS = 60_000;
const MAX_FAULTS = 256;
const MAX_PAYMENTS = 100;

type Level = 'debug' | 'warn' | 'error';
type Repeats = { level: Level; message: string; count: number; payments: Set<string>; timer: NodeJS.Timeout };

/**
 * A log that counts repeated faults: the first is logged at once; those that follow with the same message and the same error within a
 * minute are one line at its end, with their number and payments. Lines without an error are all logged.
 */
export function withoutRepeats(log: Log, windowMs = WINDOW_MS): Log & { flush(): void } {
  const faults = new LRUCache<string, Repeats>({ max: MAX_FAULTS, dispose: end });

  function end({ level, message, count, payments, timer }: Repeats): void {
    clearTimeout(timer);
    if (count === 0) return;
    const about = payments.size === 0 ? {} : { payments: [...payments] };
    log[level]?.({ count, ...about }, `${message} (${count} more within ${windowMs / 1000} s)`);
  }

  function write(level: Level, fields: object, message: string): void {
    const { error, payment } = fields as { error?: unknown; payment?: unknown };
    if (error === undefined || error === null) return log[level]?.(fields, message);
    const key = `${message}\n${error instanceof Error ? error.message : JSON.stringify(error)}`;
    const repeats = faults.get(key);
    if (!repeats) {
      const timer = setTimeout(() => faults.delete(key), windowMs).unref();
      faults.set(key, { level, message, count: 0, payments: new Set(), timer });
      return log[level]?.(fields, message);
    }
    repeats.count += 1;
    if (typeof payment === 'string' && repeats.payments.size < MAX_PAYMENTS) repeats.payments.add(payment);
  }

  return {
    debug: (fields, message) => write('debug', fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => write('warn', fields, message),
    error: (fields, message) => write('error', fields, message),
    flush: () => faults.clear(),
  };
}
