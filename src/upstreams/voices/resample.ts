/**
 * Band-limited sample rate conversion: a polyphase filter whose prototype is a Kaiser-windowed sinc
 * (J. O. Smith, "Digital Audio Resampling"; J. F. Kaiser 1974). With rates L/M in lowest terms, output sample n lies at input
 * position n·M/L, so there are exactly L different filters and no position is ever rounded.
 */

/** Taps on both sides together, at the lower of the two rates. */
const TAPS = 64;
/** Window shape: beta 9 leaves about 90 dB between pass band and images. */
const KAISER_BETA = 9;
const STOP_BAND_DB = 90;
/** Width of the transition band as a fraction of the lower rate (Kaiser's formula). */
const TRANSITION = (STOP_BAND_DB - 7.95) / (14.36 * TAPS);
/** 16 MB of coefficients; odd pairs of rates with no common divisor would need far more. */
const MAX_COEFFICIENTS = 4_194_304;

type Filter = { up: number; down: number; taps: number; phases: Float32Array };

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** Modified Bessel function of the first kind, order zero, by its power series. */
function besselI0(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-12; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function kaiser(position: number): number {
  return Math.abs(position) >= 1
    ? 0
    : besselI0(KAISER_BETA * Math.sqrt(1 - position * position)) / besselI0(KAISER_BETA);
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

function design(from: number, to: number): Filter {
  const divisor = greatestCommonDivisor(from, to);
  const up = to / divisor;
  const down = from / divisor;
  const scale = Math.min(1, to / from);
  const half = Math.ceil(TAPS / 2 / scale);
  const taps = 2 * half;
  if (up * taps > MAX_COEFFICIENTS)
    throw new RangeError(`no filter for ${from} Hz to ${to} Hz: too few common divisors`);
  // The stop band begins at the lower Nyquist frequency, so the cutoff (cycles per input sample) lies half a transition below.
  const cutoff = scale * (0.5 - TRANSITION / 2);
  const phases = new Float32Array(up * taps);
  for (let phase = 0; phase < up; phase++) {
    const tap = (k: number) => {
      const distance = k - half + 1 - phase / up;
      return sinc(2 * cutoff * distance) * kaiser(distance / half);
    };
    let sum = 0;
    for (let k = 0; k < taps; k++) sum += tap(k);
    // Every phase passes a constant unchanged; otherwise the gain would ripple from sample to sample.
    for (let k = 0; k < taps; k++) phases[phase * taps + k] = tap(k) / sum;
  }
  return { up, down, taps, phases };
}

let last: { from: number; to: number; filter: Filter } | undefined;

function filterFor(from: number, to: number): Filter {
  if (last?.from !== from || last.to !== to) last = { from, to, filter: design(from, to) };
  return last.filter;
}

/**
 * Converts mono samples between two whole rates in Hz; the result has `ceil(length · to / from)` samples and is in phase with
 * the input. Samples beyond the ends count as silence. Throws `RangeError` for a pair of rates that shares too few divisors.
 */
export function resample(input: Float32Array, from: number, to: number): Float32Array {
  if (from === to) return input;
  const { up, down, taps, phases } = filterFor(from, to);
  const padded = new Float32Array(input.length + 2 * taps);
  padded.set(input, taps);
  const output = new Float32Array(Math.ceil((input.length * up) / down));
  let start = taps - taps / 2 + 1;
  let phase = 0;
  for (let n = 0; n < output.length; n++) {
    const row = phase * taps;
    let sum = 0;
    for (let k = 0; k < taps; k++) sum += (padded[start + k] as number) * (phases[row + k] as number);
    output[n] = sum;
    phase += down;
    start += Math.floor(phase / up);
    phase %= up;
  }
  return output;
}
