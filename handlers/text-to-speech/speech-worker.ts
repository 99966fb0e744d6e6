/** Runs in the speech workers: everything that takes more than a millisecond of CPU. */
import { ConsoleStdout, File, OpenFile, PreopenDirectory, WASI } from '@bjorn3/browser_wasi_shim';
import { workerData } from 'node:worker_threads';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import type { Job } from 'coinslot';
import { collectGarbage } from './collect-garbage.js';
import { fliteReading } from './flite-reading.js';
import { phrases, type Phrase } from './phrases.js';
import { MAX_SPEECH_SECONDS, speakingSeconds, tooLongMessage } from './speaking-time.js';
import { spokenText, SpeechTooLong } from './spoken-text.js';
import { isEnglish, requireSpeakable, Unspeakable } from './unspeakable.js';
import { bandwidthOf } from './voices.js';
import { masterWav, readWav, WavFault, type Sound } from './wav.js';
import { webAssembly, type WasmModule } from './webassembly.js';

export type WorkerData = { flite?: WasmModule };

/** `voice` is flite's own name; `maxSeconds` limits the length of the speech. */
export type SpeakTask = { text: string; voice: string; rateHz: number; maxSeconds: number };

/** The WAV file for the answer, and the highest frequency that its sound can contain. */
export type Sounded = { wav: Uint8Array; bandwidthHz: number };

/**
 * The result, or why there is none. `invalid`: the text can't be spoken, and `detail` is the message for the caller. `failed`: the engine
 * or the upstream failed.
 */
export type Outcome<Result> = { result: Result } | { fault: 'invalid' | 'failed'; detail: string };

/** The text cannot be spoken; the message is for the caller. */
class TextFault extends Error {}

/** One instance of the engine holds a whole phrase in memory, and longer phrases do not sound better. */
const PHRASE_CHARACTERS = 300;
const TOO_LONG = `text would take more than the limit of ${MAX_SPEECH_SECONDS} seconds to say; shorten it, or split it into several calls.`;

/** Anything quieter (as a fraction of full scale) is the engine's lead-in or tail. */
const QUIET = 0.006;
/** Kept around the words, so that soft consonants are not cut. */
const MARGIN_MS = 40;
const LEAD_IN_MS = 100;

/** Uses a new instance for every phrase: its memory starts empty, so no text can affect another. */
function runFlite(module: WasmModule, voice: string, text: string): Uint8Array {
  const output = new File([]);
  const files = new Map([
    ['in.txt', new File(new TextEncoder().encode(text))],
    ['out.wav', output],
  ]);
  let complaint = '';
  const hear = new ConsoleStdout(bytes => {
    if (complaint.length < 500) complaint += Buffer.from(bytes).toString('latin1');
  });
  const args = ['flite', '-voice', voice, '-f', 'in.txt', '-o', 'out.wav'];
  const fds = [new OpenFile(new File([])), hear, hear, new PreopenDirectory('/', files)];
  const wasi = new WASI(args, [], fds, { debug: false });
  const instance = new webAssembly.Instance(module, { wasi_snapshot_preview1: wasi.wasiImport });
  const status = wasi.start(instance as unknown as Parameters<WASI['start']>[0]);
  if (status !== 0) throw new WavFault(`flite ended with status ${status}: ${complaint}`);
  return output.data;
}

function trim(samples: Float32Array, rateHz: number): Float32Array {
  const loud = (sample: number) => Math.abs(sample) > QUIET;
  const first = samples.findIndex(loud);
  if (first < 0) return samples.subarray(0, 0);
  const margin = Math.round((MARGIN_MS * rateHz) / 1_000);
  return samples.subarray(Math.max(0, first - margin), samples.findLastIndex(loud) + 1 + margin);
}

/** The samples as 16 bit PCM, the engine's own format: nothing is lost, and a long speech takes half the memory. */
function packed(samples: Float32Array): Int16Array {
  return Int16Array.from(samples, sample => Math.round(sample * 32_768));
}

function join(parts: Int16Array[]): Int16Array {
  const joined = new Int16Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function silence(ms: number, rateHz: number): Int16Array {
  return new Int16Array(Math.round((ms * rateHz) / 1_000));
}

/** Whether the speech is, or clearly will be, too long; the rest is then not synthesized. */
function isTooLong(samples: number, share: number, limit: number): boolean {
  return samples > limit || (share >= 0.25 && samples / share > 1.5 * limit);
}

function requireTime(spoken: string): string {
  if (!/[\p{L}\p{N}]/u.test(spoken))
    throw new TextFault('text contains nothing that can be spoken; send words or numbers.');
  const seconds = speakingSeconds(spoken);
  if (seconds > MAX_SPEECH_SECONDS) throw new TextFault(tooLongMessage(seconds));
  return spoken;
}

function prepare(text: string): Phrase[] {
  return phrases(requireTime(fliteReading(spokenText(text))), PHRASE_CHARACTERS);
}

function say({ task, stop }: Job<SpeakTask>): Int16Array {
  const module = (workerData as WorkerData).flite;
  if (!module) throw new WavFault('the worker was started without an engine');
  const parts = [silence(LEAD_IN_MS, task.rateHz)];
  const prepared = prepare(task.text);
  const characters = prepared.reduce((sum, { text }) => sum + text.length, 0);
  let total = 0;
  let said = 0;
  for (const phrase of prepared) {
    if (Atomics.load(stop, 0) === 1) throw new WavFault('the speech was cancelled');
    const sound = readWav(runFlite(module, task.voice, phrase.text));
    // Without this, three or four instances of 22 MB each would wait for V8 to collect them.
    collectGarbage();
    // For an unknown voice, flite uses an 8 kHz voice and reports no error.
    if (sound.rateHz !== task.rateHz) throw new WavFault(`${task.voice} spoke at ${sound.rateHz} Hz`);
    const words = trim(sound.samples, task.rateHz);
    const pause = silence(phrase.pauseMs, task.rateHz);
    total += words.length + pause.length;
    said += phrase.text.length;
    if (isTooLong(total, said / characters, task.maxSeconds * task.rateHz)) throw new TextFault(TOO_LONG);
    if (words.length > 0) parts.push(packed(words), pause);
  }
  return join(parts);
}

function outcome<Result>(work: () => Result): Outcome<Result> {
  try {
    return { result: work() };
  } catch (error) {
    if (error instanceof TextFault || error instanceof Unspeakable)
      return { fault: 'invalid', detail: error.message };
    if (error instanceof SpeechTooLong) return { fault: 'invalid', detail: TOO_LONG };
    if (!(error instanceof Error)) return { fault: 'failed', detail: String(error) };
    return { fault: 'failed', detail: `${error.name}: ${error.message}` };
  }
}

/** The file is moved, not copied, to the main thread. */
function moved(made: Outcome<Sounded>): unknown {
  if (!('result' in made)) return made;
  return move({ [transferableSymbol]: [made.result.wav.buffer], [valueSymbol]: made });
}

function mastered(sound: Sound): Sounded {
  return { wav: masterWav(sound), bandwidthHz: bandwidthOf(sound.rateHz) };
}

/** Synthesizes a text with flite. Resolves to `Outcome<Sounded>`. */
export function speak(job: Job<SpeakTask>): unknown {
  return moved(outcome(() => mastered({ samples: say(job), rateHz: job.task.rateHz })));
}

/** Converts the WAV of an upstream to the format of the answer. Resolves to `Outcome<Sounded>`. */
export function convert({ task }: Job<{ wav: Uint8Array }>): unknown {
  return moved(outcome(() => mastered(readWav(task.wav))));
}

/** Prepares a text for an upstream's voice of `language`. English is rewritten as words; for other languages, only the letters are checked. */
export function prepareText({ task }: Job<{ text: string; language: string }>): Outcome<string> {
  return outcome(() => {
    if (isEnglish(task.language)) return requireTime(spokenText(task.text));
    requireSpeakable(task.text, task.language);
    return requireTime(task.text);
  });
}
