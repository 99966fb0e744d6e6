import { isObject } from './references.js';

const PERIODS = { hour: 3_600_000, day: 24 * 3_600_000 } as const;
const KEYS = ['calls', 'per', 'by', 'all'];
const MAX_CALLS = 1_000_000;
/** How many callers can use all their free calls, unless the contract limits the total. */
const CALLERS = 1_000;
const FREE = 'x-free: { calls: 5, per: day, by: address }';

/** Free calls of a paid operation: `calls` for each caller in each `per`, and `all` for all callers together. */
export type FreeQuota = { calls: number; per: keyof typeof PERIODS; by: 'address' | 'wallet'; all: number };

/** Reads `x-free`, or reports everything that is wrong with it. */
export function readQuota(
  free: unknown,
  flow: 'authorization' | 'upfront',
  fault: (key: string | undefined, message: string) => void,
): FreeQuota | undefined {
  if (free === undefined) return undefined;
  if (!isObject(free)) return void fault(undefined, `must be an object: ${FREE}`);
  const { calls, per, by } = free;
  let sound = true;
  const refuse = (key: string | undefined, message: string): void => {
    sound = false;
    fault(key, message);
  };
  for (const key of Object.keys(free))
    if (!KEYS.includes(key))
      refuse(undefined, `unknown key '${key}': x-free may have only ${KEYS.join(', ')}`);
  const all = free['all'] ?? (isCount(calls) ? Math.min(CALLERS * calls, MAX_CALLS) : MAX_CALLS);
  if (!isCount(calls)) refuse('calls', `must be a whole number from 1 to ${MAX_CALLS}`);
  if (!isCount(all)) refuse('all', `must be a whole number from 1 to ${MAX_CALLS}`);
  if (!isPeriod(per)) refuse('per', `must be ${Object.keys(PERIODS).join(' or ')}`);
  if (by !== 'address' && by !== 'wallet') refuse('by', 'must be address or wallet');
  if (flow === 'upfront')
    refuse(undefined, 'needs flow: authorization, because an order needs a payment: leave x-free out');
  return sound ? ({ calls, per, by, all } as FreeQuota) : undefined;
}

/** The end of the period that contains this moment, in ms since 1970. Days are UTC days. */
export function endOfPeriod({ per }: Pick<FreeQuota, 'per'>, now: number): number {
  const ms = PERIODS[per];
  return (Math.floor(now / ms) + 1) * ms;
}

/** A sentence for display: `The first 5 calls a day from an address are free.` */
export function quotaText({ calls, per, by }: FreeQuota): string {
  const some = calls === 1 ? 'call' : `${calls} calls`;
  const period = per === 'hour' ? 'an hour' : 'a day';
  const whose = by === 'address' ? 'from an address' : 'from a wallet that signs in';
  return `The first ${some} ${period} ${whose} ${calls === 1 ? 'is' : 'are'} free.`;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= MAX_CALLS;
}

function isPeriod(value: unknown): value is FreeQuota['per'] {
  return typeof value === 'string' && Object.hasOwn(PERIODS, value);
}
