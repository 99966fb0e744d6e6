/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Figures of several servers, round by round.
 * @typedef {{ title: string, unit: string, better: 'more' | 'less', rows: Map<string, number[]>, notes: string[], plot?: boolean }} Table
 */

/** @param {string} title @param {string} unit @param {'more' | 'less'} better @returns {Table} */
export function table(title, unit, better = 'more') {
  return { title, unit, better, rows: new Map(), notes: [] };
}

/** @param {Table} of @param {string} name @param {number} value */
export function record(of, name, value) {
  of.rows.set(name, [...(of.rows.get(name) ?? []), value]);
}

/**
 * The ratio of two rows: the median of the ratios in each round. The rows are measured right after each other in a round, so that other load on
 * the machine affects both.
 * @param {Table} of @param {string} one @param {string} other @returns {number | undefined}
 */
export function ratio(of, one, other) {
  const [above, below] = [of.rows.get(one), of.rows.get(other)];
  if (!above || !below) return undefined;
  const pairs = Math.min(above.length, below.length);
  return median(Array.from({ length: pairs }, (_, round) => above[round] / below[round]));
}

/** Two-sided 95 % quantiles of Student's t, by degrees of freedom. Above 30 the normal distribution is close enough. */
const STUDENT = [
  12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.1,
  2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04,
];

/**
 * The geometric mean of the ratios in each round, and the ends of its 95 % interval.
 * @param {Table} of @param {string} one @param {string} other @returns {[number, number, number] | undefined} undefined below two rounds
 */
export function interval(of, one, other) {
  const [above = [], below = []] = [of.rows.get(one), of.rows.get(other)];
  const logs = above.slice(0, below.length).map((value, round) => Math.log(value / below[round]));
  const n = logs.length;
  if (n < 2) return undefined;
  const mean = logs.reduce((sum, value) => sum + value, 0) / n;
  const variance = logs.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  const reach = (STUDENT[n - 2] ?? 1.96) * Math.sqrt(variance / n);
  return [Math.exp(mean), Math.exp(mean - reach), Math.exp(mean + reach)];
}

/** The row with the best median among `names` that were measured. @param {Table} of @param {string[]} names */
export function best(of, names) {
  const there = names.filter(name => of.rows.has(name));
  const sign = of.better === 'more' ? -1 : 1;
  return there.sort((a, b) => sign * (median(of.rows.get(a)) - median(of.rows.get(b))))[0];
}

/** A ratio that must hold. @typedef {{ measure: string, value: number | undefined, bound: number, kind: 'least' | 'most' }} Gate */

/** @param {Gate} gate */
export function holds({ value, kind, bound }) {
  return value !== undefined && (kind === 'least' ? value >= bound : value <= bound);
}
