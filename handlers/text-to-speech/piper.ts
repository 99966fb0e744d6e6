import { DeadlineExceeded, FairQueue, type HttpAnswer, UpstreamFailure, withDeadline } from 'coinslot';
import {
  DEADLINE_MS,
  type Dialect,
  type PiperOptions,
  PiperServer,
  refusal,
  ROOT_JSON,
  ROOT_TEXT,
  SYNTHESIZE,
  toFailure,
} from './piper-server.js';
import { PiperVoices } from './piper-voices.js';
import { SpeechWorkers } from './speech-workers.js';
import { SpeakingPace } from './speaking-pace.js';
import { QUEUE_FULL, SAID_TOO_LATE, type Speaker, type SpeakerHealth, type Speech } from './voices.js';

export type { PiperOptions } from './piper-server.js';

const CONVERT_THREADS = 1;

/**
 * True if the status shows that the server does not know the dialect. A 500 does not show that: if the next dialect were tried after it, the
 * server might read JSON aloud.
 */
function isMisunderstood(status: number, dialect: Dialect): boolean {
  if (status === 404 || status === 405) return true;
  return dialect.body === 'text' && (status === 400 || status === 415 || status === 422);
}

/** Sends text in the dialect that the server understands, and remembers that dialect. */
class Synthesis {
  readonly #server: PiperServer;
  #dialect: Dialect | undefined;

  constructor(server: PiperServer) {
    this.#server = server;
  }

  /** `voice` is undefined for a server that has no list of voices. */
  async run(
    spoken: string,
    voice: string | undefined,
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const named = voice !== undefined;
    const older = named ? [ROOT_JSON] : [ROOT_TEXT, ROOT_JSON];
    let answer: HttpAnswer | undefined;
    for (const dialect of this.#dialect ? [this.#dialect] : [SYNTHESIZE, ...older]) {
      answer = await this.#server.post(dialect, spoken, voice, signal);
      if (answer.status === 200) {
        this.#dialect = dialect;
        return new Uint8Array(answer.body);
      }
      if (!isMisunderstood(answer.status, dialect)) break;
      // The server was replaced by another version of Piper: the next call tries all dialects again.
      this.#dialect = undefined;
    }
    throw answer
      ? refusal(answer)
      : new UpstreamFailure('failed', 'No request was sent to the speech server; try again.');
  }
}

function checkText(text: string): void {
  if (!/[\p{L}\p{N}\p{S}]/u.test(text))
    throw new UpstreamFailure('invalid', 'text contains nothing that can be spoken; send words or numbers.');
}

async function chooseVoice(
  voices: PiperVoices,
  voiceId: string | undefined,
): Promise<{ id: string; language: string; named: boolean }> {
  const { list, named } = await voices.get();
  const id = voiceId ?? list.default;
  // For an unknown voice, Piper uses its default voice and reports no error.
  const voice = list.voices.find(known => known.id === id);
  if (!voice)
    throw new UpstreamFailure(
      'invalid',
      'voice_id is not a known voice; choose one from the list of voices.',
    );
  return { id, language: voice.language, named };
}

async function probe(server: PiperServer, voices: PiperVoices): Promise<SpeakerHealth> {
  if (server.open) return { status: 'degraded', detail: 'circuit open: the speech server failed repeatedly' };
  const startedAt = performance.now();
  try {
    await voices.refresh();
    return { status: 'ok', latencyMs: Math.round(performance.now() - startedAt) };
  } catch (error) {
    return { status: 'degraded', detail: error instanceof Error ? error.message : 'no answer' };
  }
}

/** Speaks through Piper's HTTP server (OHF-Voice/piper1-gpl, or its predecessor rhasspy/piper). */
export function createPiperSpeaker(options: PiperOptions): Speaker {
  const server = new PiperServer(options);
  const voices = new PiperVoices(server, options);
  const synthesis = new Synthesis(server);
  const connections = options.connections ?? 4;
  const maxWaiting = options.maxWaiting ?? 16;
  const deadlineMs = options.deadlineMs ?? DEADLINE_MS;
  const pace = new SpeakingPace();
  const asking = new FairQueue({
    slots: connections,
    maxWaiting,
    fullMessage: QUEUE_FULL,
    lateMessage: SAID_TOO_LATE,
  });
  const workers = new SpeechWorkers(CONVERT_THREADS, async () => ({}));
  const converting = new FairQueue({
    slots: CONVERT_THREADS,
    maxWaiting: connections + maxWaiting,
    fullMessage: QUEUE_FULL,
  });

  async function work(
    text: string,
    voiceId: string | undefined,
    signal: AbortSignal,
    caller: string | undefined,
  ): Promise<Speech> {
    const { id, language, named } = await chooseVoice(voices, voiceId);
    const spoken = await converting.run(() => workers.prepareText(text, language, signal), signal, caller);
    const ask = (): Promise<Uint8Array<ArrayBuffer>> => synthesis.run(spoken, named ? id : undefined, signal);
    const raw = await asking.run(
      () => pace.timed(spoken, ask),
      signal,
      caller,
      pace.expect(spoken, deadlineMs),
    );
    const sound = await converting.run(() => workers.convert(raw, signal), signal, caller);
    return { ...sound, voiceId: id };
  }

  return {
    name: 'piper',
    mock: false,
    voices: async () => (await voices.get()).list,
    async speak(text, voiceId, signal, caller) {
      checkText(text);
      try {
        return await withDeadline(deadlineMs, signal, inTime => work(text, voiceId, inTime, caller));
      } catch (error) {
        throw error instanceof DeadlineExceeded ? toFailure(error) : error;
      }
    },
    health: () => probe(server, voices),
    async close() {
      const reason = new UpstreamFailure('unavailable', 'The speech engine is shutting down; try again.');
      asking.close(reason);
      converting.close(reason);
      await Promise.all([server.close(), workers.close()]);
    },
  };
}
