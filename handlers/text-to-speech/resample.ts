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
/** 32 MB of coefficients; odd pairs of rates with no common divisor would need far more. */
const MAX_COEFFICIENTS = 4_194_304;

/** Outputs that lie whole periods apart use the same filter: four at a time share each coefficient that is read. */
const LANES = 4;
/** A lane is this many outputs or a few more, so that the window of a block stays in the processor's cache. */
const LANE_SAMPLES = 256;

type Filter = { up: number; down: number; taps: number; phases: Float64Array };

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
    throw new RangeError(`no filter for ${from} Hz to ${to} Hz: their greatest common divisor is too small`);
  // The stop band begins at the lower Nyquist frequency, so the cutoff (cycles per input sample) lies half a transition below.
  const cutoff = scale * (0.5 - TRANSITION / 2);
  const phases = new Float64Array(up * taps);
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

/** Mono samples: fractions of full scale, or 16 bit PCM, which takes half the memory. */
export type Samples = Float32Array | Int16Array;

const FULL_SCALE = 32_768;

/** A piece of the result. Its memory is reused for the next piece. */
type Piece = { at: number; samples: Float32Array };

/** @returns how many samples there are after the conversion */
export function resampledLength(length: number, from: number, to: number): number {
  return Math.ceil((length * to) / from);
}

/**
 * Converts mono samples between two whole rates in Hz, a piece at a time; all pieces together have `resampledLength` samples and are
 * in phase with the input. Samples beyond the ends count as silence. Throws `RangeError` if the greatest common divisor of the rates is too small.
 */
export function* resampledPieces(input: Samples, from: number, to: number): Generator<Piece, void> {
  if (from === to) return yield* inPieces(input);
  const filter = filterFor(from, to);
  const { up, down, taps } = filter;
  const periods = Math.ceil(LANE_SAMPLES / up);
  const block = LANES * periods;
  const length = resampledLength(input.length, from, to);
  const samples = new Float32Array(block * up);
  const window = new Float64Array(block * down + taps);
  for (let period = 0; period * up < length; period += block) {
    copyInto(window, input, period * down - taps / 2 + 1);
    convert(filter, window, samples);
    const at = period * up;
    yield { at, samples: samples.subarray(0, Math.min(samples.length, length - at)) };
  }
}

function* inPieces(input: Samples): Generator<Piece, void> {
  const scale = input instanceof Int16Array ? 1 / FULL_SCALE : 1;
  const samples = new Float32Array(4_096);
  for (let at = 0; at < input.length; at += samples.length) {
    const piece = samples.subarray(0, Math.min(samples.length, input.length - at));
    for (let n = 0; n < piece.length; n++) piece[n] = (input[at + n] as number) * scale;
    yield { at, samples: piece };
  }
}

/** The whole result of `resampledPieces`. */
export function resample(input: Samples, from: number, to: number): Float32Array {
  const output = new Float32Array(resampledLength(input.length, from, to));
  for (const { at, samples } of resampledPieces(input, from, to)) output.set(samples, at);
  return output;
}

/** Fills the window with the samples from position `from` on, which may lie before the first one. */
function copyInto(window: Float64Array, input: Samples, from: number): void {
  const first = Math.max(0, -from);
  const samples = input.subarray(from + first, from + window.length);
  window.fill(0);
  window.set(samples, first);
  if (!(input instanceof Int16Array)) return;
  for (let n = first; n < first + samples.length; n++) window[n] = (window[n] as number) / FULL_SCALE;
}

/** The outputs of one block, all lanes side by side. */
function convert({ up, down, taps, phases }: Filter, window: Float64Array, output: Float32Array): void {
  const outputs = output.length / LANES;
  const inputs = (outputs / up) * down;
  let start = 0;
  let phase = 0;
  for (let n = 0; n < outputs; n++) {
    const row = phase * taps - start;
    let [first, second, third, fourth] = [0, 0, 0, 0];
    for (let k = start; k < start + taps; k++) {
      const weight = phases[row + k] as number;
      first += weight * (window[k] as number);
      second += weight * (window[k + inputs] as number);
      third += weight * (window[k + 2 * inputs] as number);
      fourth += weight * (window[k + 3 * inputs] as number);
    }
    output[n] = first;
    output[n + outputs] = second;
    output[n + 2 * outputs] = third;
    output[n + 3 * outputs] = fourth;
    phase += down;
    start += Math.floor(phase / up);
    phase %= up;
  }
}
