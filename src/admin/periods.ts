export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** A length of time that the operator page can show, in hours or in UTC days. */
export type Period = { name: string; title: string; unit: 'hour' | 'day'; unitMs: number; units: number };

export const PERIODS = [
  { name: '24h', title: '24 hours', unit: 'hour', unitMs: HOUR_MS, units: 24 },
  { name: '7d', title: '7 days', unit: 'day', unitMs: DAY_MS, units: 7 },
  { name: '30d', title: '30 days', unit: 'day', unitMs: DAY_MS, units: 30 },
  { name: '90d', title: '90 days', unit: 'day', unitMs: DAY_MS, units: 90 },
] as const satisfies readonly Period[];

export const LONGEST = PERIODS[3];
export const SHORTEST = PERIODS[0];
const USUAL = PERIODS[2];

/** The period with that name, or 30 days. */
export function periodNamed(name: unknown): Period {
  return PERIODS.find(each => each.name === name) ?? USUAL;
}

/** The units of a period, including the current one. */
export function unitsOf({ unitMs, units }: Period, now: number): { first: number; last: number } {
  const last = Math.floor(now / unitMs);
  return { first: last - units + 1, last };
}

/** The name of an hour or a day: `2026-06-30 14:00` or `2026-06-30`, UTC. */
export function unitName({ unit, unitMs }: Period, index: number): string {
  const iso = new Date(index * unitMs).toISOString();
  return unit === 'hour' ? `${iso.slice(0, 10)} ${iso.slice(11, 16)}` : iso.slice(0, 10);
}
