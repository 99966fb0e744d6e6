import process from 'node:process';

/**
 * The length of a run: `full`, `quick` (QUICK=1) or `smoke` (SMOKE=1). A smoke run does one short round of everything; it measures nothing, but shows
 * that every scenario works.
 */

/** @type {'full' | 'quick' | 'smoke'} */
export const PACE = process.env.SMOKE === '1' ? 'smoke' : process.env.QUICK === '1' ? 'quick' : 'full';

const SMOKE_SHARE = 20;

/** @param {number} full @param {number} quick @returns {number} */
export function rounds(full, quick) {
  return { full, quick, smoke: 1 }[PACE];
}

/**
 * For how many ms calls are made; undefined in a smoke run, where each connection makes a few calls instead (`measure.js`).
 * @param {number} full @param {number} quick @returns {number | undefined}
 */
export function seconds(full, quick) {
  return { full, quick, smoke: undefined }[PACE];
}

/** A number of calls, rows or payers. @param {number} full @param {number} quick @returns {number} */
export function amount(full, quick) {
  return { full, quick, smoke: Math.ceil(quick / SMOKE_SHARE) }[PACE];
}
