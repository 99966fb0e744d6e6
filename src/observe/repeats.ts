import { LRUCache } from 'lru-cache';
import type { Log } from '../net/log.js';

/** Within this time, in ms, a repeated fault is counted instead of logged. */
const WINDOW_MS = 60_000;
const MAX_FAULTS = 256;
const MAX_PAYMENTS = 100;
const MAX_PAYERS = 20;

type Level = 'debug' | 'warn' | 'error';
type Repeats = {
  level: Level;
  message: string;
  count: number;
  payments: Set<string>;
  payers: Set<string>;
  timer: NodeJS.Timeout;
};

/**
 * A log that counts repeated faults: the first is logged immediately; repeats with the same message and error within a minute are merged
 * into one line at its end, with their number, payments and payers. Lines without an error are all logged.
 */
export function withoutRepeats(log: Log, windowMs = WINDOW_MS): Log & { flush(): void } {
  const faults = new LRUCache<string, Repeats>({ max: MAX_FAULTS, dispose: end });

  function end({ level, message, count, payments, payers, timer }: Repeats): void {
    clearTimeout(timer);
    if (count === 0) return;
    log[level]?.(
      { count, ...listed({ payments, payers }) },
      `${message} (${count} more within ${windowMs / 1000} s)`,
    );
  }

  function write(level: Level, fields: object, message: string): void {
    const { error, payment, payer } = fields as { error?: unknown; payment?: unknown; payer?: unknown };
    if (error === undefined || error === null) return log[level]?.(fields, message);
    const key = `${message}\n${error instanceof Error ? error.message : JSON.stringify(error)}`;
    const repeats = faults.get(key);
    if (!repeats) {
      const timer = setTimeout(() => faults.delete(key), windowMs).unref();
      faults.set(key, { level, message, count: 0, payments: new Set(), payers: new Set(), timer });
      return log[level]?.(fields, message);
    }
    repeats.count += 1;
    if (typeof payment === 'string' && repeats.payments.size < MAX_PAYMENTS) repeats.payments.add(payment);
    if (typeof payer === 'string' && repeats.payers.size < MAX_PAYERS) repeats.payers.add(payer);
  }

  return {
    debug: (fields, message) => write('debug', fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => write('warn', fields, message),
    error: (fields, message) => write('error', fields, message),
    flush: () => faults.clear(),
  };
}

function listed(sets: Record<string, Set<string>>): object {
  const named = Object.entries(sets).filter(([, { size }]) => size > 0);
  return Object.fromEntries(named.map(([name, values]) => [name, [...values]]));
}
