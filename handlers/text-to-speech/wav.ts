import { resampledLength, resampledPieces, type Samples } from './resample.js';
import { OUTPUT_RATE_HZ } from './voices.js';

/** Thrown for unreadable audio; the message names the fault. */
export class WavFault extends Error {}

/** Mono; floats are in [-1, 1]. */
export type Sound<Form extends Samples = Samples> = { samples: Form; rateHz: number };

type Layout = { channels: number; rateHz: number; bits: number; float: boolean };

const PCM = 1;
const IEEE_FLOAT = 3;
const EXTENSIBLE = 0xfffe;
const MIN_RATE_HZ = 4_000;
const MAX_RATE_HZ = 192_000;
const MAX_CHANNELS = 8;
/** 12 minutes of sound at 22.05 kHz, 5.8 minutes at 48 kHz; 64 MB as floats. */
const MAX_SAMPLES = 16_777_216;
/** Streaming writers don't know the size yet and write 0, 0xFFFFFFFF, 0x7FFFFFFF, or one of these minus the size of a header. */
const PLACEHOLDER_FROM = 0x7ffff000;
/** As a fraction of full scale. Sounds with higher peaks are scaled down, so that the filters of players do not clip. */
const PEAK_LIMIT = 0.97;
/** −54 dB. What an engine outputs for text with nothing to speak is quieter than this; a single spoken letter is 30 dB louder. */
const SILENCE_RMS = 0.002;

function readLayout(bytes: Buffer, at: number, size: number): Layout {
  if (size < 16 || at + size > bytes.length) throw new WavFault('the fmt chunk is cut off');
  const declared = bytes.readUInt16LE(at);
  const format = declared === EXTENSIBLE && size >= 26 ? bytes.readUInt16LE(at + 24) : declared;
  const layout = {
    channels: bytes.readUInt16LE(at + 2),
    rateHz: bytes.readUInt32LE(at + 4),
    bits: bytes.readUInt16LE(at + 14),
    float: format === IEEE_FLOAT,
  };
  const depths = format === PCM ? [8, 16, 24, 32] : format === IEEE_FLOAT ? [32, 64] : [];
  if (!depths.includes(layout.bits))
    throw new WavFault(`format ${format} with ${layout.bits} bits is not supported`);
  if (layout.channels < 1 || layout.channels > MAX_CHANNELS)
    throw new WavFault(`${layout.channels} channels`);
  if (layout.rateHz < MIN_RATE_HZ || layout.rateHz > MAX_RATE_HZ) throw new WavFault(`${layout.rateHz} Hz`);
  return layout;
}

/** The bytes of the data chunk. An impossible size is a placeholder; a size beyond the end means that the file was cut off. */
function readData(bytes: Buffer, at: number, size: number): Buffer {
  if (size === 0 || size >= PLACEHOLDER_FROM) return bytes.subarray(at);
  if (at + size > bytes.length) throw new WavFault(`cut off after ${bytes.length - at} of ${size} bytes`);
  return bytes.subarray(at, at + size);
}

function sampleReader(data: Buffer, { bits, float }: Layout): (at: number) => number {
  if (float) {
    const read = bits === 64 ? (at: number) => data.readDoubleLE(at) : (at: number) => data.readFloatLE(at);
    return at => {
      const value = read(at);
      return Number.isNaN(value) ? 0 : Math.min(Math.max(value, -1), 1);
    };
  }
  // 8 bit WAV is unsigned, all other formats are signed.
  if (bits === 8) return at => (data.readUInt8(at) - 128) / 128;
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  if (bits === 16) return at => view.getInt16(at, true) / 32_768;
  return at => data.readIntLE(at, bits / 8) / 2 ** (bits - 1);
}

function mixDown(data: Buffer, layout: Layout): Float32Array {
  const width = layout.bits / 8;
  const frame = width * layout.channels;
  const read = sampleReader(data, layout);
  const count = Math.floor(data.length / frame);
  if (count > MAX_SAMPLES) throw new WavFault(`${count} samples are too many`);
  const samples = new Float32Array(count);
  for (let n = 0; n < samples.length; n++) {
    let sum = 0;
    for (let channel = 0; channel < layout.channels; channel++) sum += read(n * frame + channel * width);
    samples[n] = sum / layout.channels;
  }
  return samples;
}

/**
 * Reads a RIFF/WAVE file of 8, 16, 24 or 32 bit PCM or 32 or 64 bit float, up to 8 channels, 4 to 192 kHz, as mono. Checks
 * chunk sizes against the length of the file.
 * @throws WavFault
 */
export function readWav(file: Uint8Array): Sound<Float32Array> {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (
    bytes.length < 12 ||
    bytes.toString('latin1', 0, 4) !== 'RIFF' ||
    bytes.toString('latin1', 8, 12) !== 'WAVE'
  )
    throw new WavFault('not a RIFF/WAVE file');
  let layout: Layout | undefined;
  for (let at = 12; at + 8 <= bytes.length;) {
    const id = bytes.toString('latin1', at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    if (id === 'fmt ') layout = readLayout(bytes, at + 8, size);
    if (id === 'data') {
      if (!layout) throw new WavFault('data before fmt');
      return { samples: mixDown(readData(bytes, at + 8, size), layout), rateHz: layout.rateHz };
    }
    at += 8 + size + (size % 2);
  }
  throw new WavFault('no data chunk');
}

/** Peak and root mean square, as fractions of full scale. */
export function loudness(samples: Float32Array): { peak: number; rms: number } {
  let peak = 0;
  let energy = 0;
  for (let n = 0; n < samples.length; n++) {
    const sample = samples[n] as number;
    peak = Math.max(peak, Math.abs(sample));
    energy += sample * sample;
  }
  return { peak, rms: samples.length === 0 ? 0 : Math.sqrt(energy / samples.length) };
}

function writeHeader(bytes: Buffer, rateHz: number): void {
  bytes.write('RIFF', 0, 'latin1');
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.write('WAVEfmt ', 8, 'latin1');
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(PCM, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(rateHz, 24);
  bytes.writeUInt32LE(rateHz * 2, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36, 'latin1');
  bytes.writeUInt32LE(bytes.length - 44, 40);
}

/**
 * Writes the samples, multiplied by `gain`, after the header.
 * @returns peak and root mean square before the multiplication
 */
function writeSamples(
  file: Uint8Array,
  { samples, rateHz }: Sound,
  gain: number,
): { peak: number; rms: number } {
  // Buffer's own writeInt16LE takes ten times as long.
  const bytes = new DataView(file.buffer);
  const scale = gain * 32_768;
  let peak = 0;
  let energy = 0;
  let count = 0;
  for (const { at, samples: piece } of resampledPieces(samples, rateHz, OUTPUT_RATE_HZ)) {
    const loud = loudness(piece);
    peak = Math.max(peak, loud.peak);
    energy += loud.rms * loud.rms * piece.length;
    count += piece.length;
    for (let n = 0; n < piece.length; n++)
      bytes.setInt16(44 + 2 * (at + n), Math.round((piece[n] as number) * scale), true);
  }
  return { peak, rms: count === 0 ? 0 : Math.sqrt(energy / count) };
}

/**
 * Makes the file of the answer: mono, 22 050 Hz, 16 bit, never clipped (a sound that is too loud is scaled as a whole). It is written
 * as it is converted, so that there is no second copy of the sound. The array owns its memory, so it can be moved between threads.
 * @throws WavFault for silence and for rates that can't be converted
 */
export function masterWav(sound: Sound): Uint8Array {
  const file = new Uint8Array(44 + 2 * resampledLength(sound.samples.length, sound.rateHz, OUTPUT_RATE_HZ));
  writeHeader(Buffer.from(file.buffer), OUTPUT_RATE_HZ);
  let loud: { peak: number; rms: number };
  try {
    loud = writeSamples(file, sound, 1);
  } catch (error) {
    throw new WavFault(error instanceof Error ? error.message : 'not convertible');
  }
  if (loud.rms < SILENCE_RMS) throw new WavFault('silence');
  if (loud.peak > PEAK_LIMIT) writeSamples(file, sound, PEAK_LIMIT / loud.peak);
  return file;
}
