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
 * How many times one row is another. Rounds stand beside each other in time, so each is compared with its own, and the median of these
 * ratios is what counts: load from elsewhere hits both.
 * @param {Table} of @param {string} one @param {string} other @returns {number | undefined}
 */
export function ratio(of, one, other) {
  const [above, below] = [of.rows.get(one), of.rows.get(other)];
  if (!above || !below) return undefined;
  const pairs = Math.min(above.length, below.length);
  return median(Array.from({ length: pairs }, (_, round) => above[round] / below[round]));
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
