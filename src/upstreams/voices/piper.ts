import { circuitBreaker, BrokenCircuitError, CircuitState, ConsecutiveBreaker, handleWhen } from 'cockatiel';
import { HttpClient, NoAnswer, type HttpAnswer, type HttpRequest } from '../../net/http-client.js';
import { readRetryAfter, UpstreamFailure } from '../../net/failure.js';
import { DeadlineExceeded, withDeadline } from '../../net/deadline.js';
import { FairQueue } from '../fair-queue.js';
import { MAX_SPEECH_SECONDS, speakingSeconds, tooLongMessage } from './speaking-time.js';
import { requireLength } from './spoken-text.js';
import {
  OUTPUT_RATE_HZ,
  QUEUE_FULL,
  type Speaker,
  type SpeakerHealth,
  type Speech,
  type Voice,
  type VoiceList,
} from './voices.js';
import { SpeechWorkers } from './speech-workers.js';

export type PiperOptions = {
  /** Base address of Piper's HTTP server, for instance `http://127.0.0.1:5000`; a path prefix is kept. */
  url: string;
  /** Voice for calls that name none; else the best US English voice of medium quality that the server has. */
  defaultVoice?: string;
  /** For waiting, synthesis and conversion together. Default 18 000 ms. */
  deadlineMs?: number;
  /** Requests at a time. Default 4. */
  connections?: number;
  /** Calls that may wait for a connection; one more is refused. Default 16. */
  maxWaiting?: number;
  /** Default 64 MB. */
  maxBodyBytes?: number;
  /** How long the list of voices is believed. Default 60 000 ms. */
  voicesTtlMs?: number;
  /** Failures in a row that open the circuit (5) and how long it stays open (10 000 ms). */
  breaker?: { failures?: number; restMs?: number };
};

/**
 * How a server takes its text. Piper has had three interfaces: JSON at `/synthesize`, before that the same JSON at `/`, and
 * first plain text at `/`, which would read JSON out aloud; the last one has no list of voices.
 */
type Dialect = { path: '/synthesize' | '/'; body: 'json' | 'text' };

const SYNTHESIZE: Dialect = { path: '/synthesize', body: 'json' };
const ROOT_JSON: Dialect = { path: '/', body: 'json' };
const ROOT_TEXT: Dialect = { path: '/', body: 'text' };

const MAX_VOICES_BYTES = 8_000_000;
const MAX_VOICES = 500;
const VOICES_DEADLINE_MS = 4_000;
const FRESH_MS = 2_000;
const CONVERT_THREADS = 1;
/** Used where the server can't name its one voice. */
const UNNAMED_VOICE = 'en_US-default-medium';
const MODEL_CARD = 'see the MODEL_CARD of the voice in rhasspy/piper-voices';
const DEADLINE_MS = 18_000;

/** `named` is false for a server that can't say which voices it has. */
type Catalogue = { list: VoiceList; named: boolean; readAt: number };

function toFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  const options = { cause: error };
  const kind = error instanceof NoAnswer ? error.kind : undefined;
  if (kind === 'late' || error instanceof DeadlineExceeded)
    return new UpstreamFailure(
      'failed',
      'The speech server did not answer in time; try again or send less text.',
      options,
    );
  if (kind === 'unreachable')
    return new UpstreamFailure('unavailable', 'The speech server can not be reached; try again.', {
      ...options,
      retryAfterSeconds: 10,
    });
  if (kind === 'too large')
    return new UpstreamFailure('failed', 'The speech server sent too much; send less text.', options);
  return new UpstreamFailure('failed', 'The speech server broke off its answer; try again.', options);
}

function refusal(answer: HttpAnswer): UpstreamFailure {
  const { status } = answer;
  const cause = new Error(`status ${status}`);
  if (status !== 429 && status !== 503)
    return new UpstreamFailure('failed', 'The speech server refused the text or failed; try again.', {
      cause,
    });
  const retryAfterSeconds = readRetryAfter(answer.header('retry-after')) ?? 5;
  return new UpstreamFailure('unavailable', 'The speech server is busy; try again.', {
    cause,
    retryAfterSeconds,
  });
}

/** True for answers that say the server is in trouble, not the request. */
function isOutage(status: number): boolean {
  return status >= 500 || status === 429;
}

type Question = Omit<HttpRequest, 'ms'> & { signal: AbortSignal };

/** Connections and circuit of one server. */
class Endpoint {
  readonly #client: HttpClient;
  readonly #deadlineMs: number;
  readonly #restSeconds: number;
  readonly #circuit;

  constructor(options: PiperOptions) {
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS;
    this.#client = new HttpClient(options.url, {
      connections: (options.connections ?? 4) + 1,
      maxAnswerBytes: options.maxBodyBytes ?? 64_000_000,
      connectMs: 3_000,
      resend: true,
    });
    const restMs = options.breaker?.restMs ?? 10_000;
    this.#restSeconds = Math.ceil(restMs / 1_000);
    this.#circuit = circuitBreaker(
      // A caller who left says nothing about the server, except that a probe of it proved nothing.
      handleWhen(
        error => error instanceof UpstreamFailure || this.#circuit.state === CircuitState.HalfOpen,
      ).orWhenResult(answer => isOutage((answer as HttpAnswer).status)),
      { breaker: new ConsecutiveBreaker(options.breaker?.failures ?? 5), halfOpenAfter: restMs },
    );
  }

  get open(): boolean {
    return this.#circuit.state === CircuitState.Open;
  }

  get(path: string, signal: AbortSignal): Promise<HttpAnswer> {
    return this.#guarded({ method: 'GET', path, signal });
  }

  post(dialect: Dialect, text: string, voice: string | undefined, signal: AbortSignal): Promise<HttpAnswer> {
    const json = dialect.body === 'json';
    return this.#guarded({
      method: 'POST',
      path: dialect.path,
      headers: {
        'content-type': json ? 'application/json' : 'text/plain; charset=utf-8',
        accept: 'audio/wav',
      },
      body: json ? JSON.stringify(voice === undefined ? { text } : { text, voice }) : text,
      signal,
    });
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** Resolves to an answer of any status; the circuit counts those that `isOutage`. */
  async #guarded(request: Question): Promise<HttpAnswer> {
    // While one request probes a recovering server, the others don't queue up behind it.
    if (this.#circuit.state === CircuitState.HalfOpen) throw this.#resting();
    try {
      return await this.#circuit.execute(() => this.#request(request));
    } catch (error) {
      if (error instanceof BrokenCircuitError) throw this.#resting(error);
      throw error;
    }
  }

  async #request(request: Question): Promise<HttpAnswer> {
    const { signal } = request;
    try {
      return await this.#client.request({ ...request, ms: this.#deadlineMs });
    } catch (error) {
      const reason: unknown = signal.aborted ? signal.reason : error;
      if (signal.aborted && !(reason instanceof DeadlineExceeded)) throw reason;
      throw toFailure(reason);
    }
  }

  #resting(cause?: unknown): UpstreamFailure {
    return new UpstreamFailure('unavailable', 'The speech server fails at present; try again.', {
      cause,
      retryAfterSeconds: this.#restSeconds,
    });
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.length > 0 && value.length <= 100 ? value : undefined;
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** Piper's ids are `<language>_<REGION>-<name>-<quality>`; the configuration beside the model says the same in fields. */
function describe(id: string, config: unknown): Voice {
  const [locale = '', ...rest] = id.split('-');
  const language = text(field(field(config, 'language'), 'code')) ?? locale;
  return {
    id,
    name: text(field(config, 'dataset')) ?? (rest.slice(0, -1).join('-') || id),
    language: language.replace('_', '-'),
    quality: text(field(field(config, 'audio'), 'quality')) ?? rest.at(-1) ?? 'medium',
    sampleRateHz: OUTPUT_RATE_HZ,
    license: MODEL_CARD,
  };
}

function pickDefault(ids: string[], wanted: string | undefined): string {
  const preferences = [/^en_US-lessac-medium$/, /^en_US-.+-medium$/, /^en_US-/, /^en_/, /^/];
  if (wanted !== undefined && ids.includes(wanted)) return wanted;
  for (const preference of preferences) {
    const id = ids.find(candidate => preference.test(candidate));
    if (id !== undefined) return id;
  }
  throw new UpstreamFailure('failed', 'The speech server has no voice; try again later.');
}

function readCatalogue(answer: HttpAnswer, wanted: string | undefined, now: number): Catalogue {
  if (answer.status === 404 || answer.status === 405) {
    const voice = describe(wanted ?? UNNAMED_VOICE, undefined);
    return { list: { default: voice.id, voices: [voice] }, named: false, readAt: now };
  }
  if (answer.status !== 200) throw refusal(answer);
  let map: unknown;
  try {
    map = answer.body.length > MAX_VOICES_BYTES ? undefined : JSON.parse(answer.text);
  } catch {
    map = undefined;
  }
  if (typeof map !== 'object' || map === null || Array.isArray(map))
    throw new UpstreamFailure('failed', 'The speech server sent no list of voices; try again later.');
  const ids = Object.keys(map).filter(text).sort().slice(0, MAX_VOICES);
  const voices = ids.map(id => describe(id, field(map, id)));
  return { list: { default: pickDefault(ids, wanted), voices }, named: true, readAt: now };
}

/** Remembers the voices of a server. While it can't be asked, the last known list holds. */
class Catalogues {
  readonly #endpoint: Endpoint;
  readonly #wanted: string | undefined;
  readonly #ttlMs: number;
  #known: Catalogue | undefined;
  #asking: Promise<Catalogue> | undefined;
  #retryAt = 0;

  constructor(endpoint: Endpoint, options: PiperOptions) {
    this.#endpoint = endpoint;
    this.#wanted = options.defaultVoice;
    this.#ttlMs = options.voicesTtlMs ?? 60_000;
  }

  async get(): Promise<Catalogue> {
    const known = this.#known;
    const now = Date.now();
    if (known && (now - known.readAt < this.#ttlMs || now < this.#retryAt)) return known;
    try {
      return await this.ask();
    } catch (error) {
      // Not asked again at once: every call would wait for a dead server.
      this.#retryAt = Date.now() + 5_000;
      if (known) return known;
      throw error;
    }
  }

  /** Asks the server, unless it was asked just now, together with whoever is asking already. */
  ask(): Promise<Catalogue> {
    if (this.#known && Date.now() - this.#known.readAt < FRESH_MS) return Promise.resolve(this.#known);
    this.#asking ??= this.#read().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #read(): Promise<Catalogue> {
    // Shared by many callers, so none of them can cancel it.
    const answer = await withDeadline(VOICES_DEADLINE_MS, new AbortController().signal, signal =>
      this.#endpoint.get('/voices', signal),
    ).catch((error: unknown) => {
      throw toFailure(error);
    });
    this.#known = readCatalogue(answer, this.#wanted, Date.now());
    return this.#known;
  }
}

/** True when the server does not speak the dialect. A 500 proves nothing: JSON sent next might be read out aloud. */
function isMisunderstood(status: number, dialect: Dialect): boolean {
  if (status === 404 || status === 405) return true;
  return dialect.body === 'text' && (status === 400 || status === 415 || status === 422);
}

/** Sends text in the dialect that the server understands, and remembers which one that was. */
class Synthesis {
  readonly #endpoint: Endpoint;
  #dialect: Dialect | undefined;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** `voice` is left out for a server that has no list of voices. */
  async run(
    spoken: string,
    voice: string | undefined,
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const named = voice !== undefined;
    const older = named ? [ROOT_JSON] : [ROOT_TEXT, ROOT_JSON];
    let answer: HttpAnswer | undefined;
    for (const dialect of this.#dialect ? [this.#dialect] : [SYNTHESIZE, ...older]) {
      answer = await this.#endpoint.post(dialect, spoken, voice, signal);
      if (answer.status === 200) {
        this.#dialect = dialect;
        return new Uint8Array(answer.body);
      }
      if (!isMisunderstood(answer.status, dialect)) break;
      // Remembered, but the server was replaced by one of another generation: the next call tries all again.
      this.#dialect = undefined;
    }
    throw answer
      ? refusal(answer)
      : new UpstreamFailure('failed', 'The speech server was not asked; try again.');
  }
}

function checkText(spoken: string): void {
  requireLength(spoken);
  if (!/[\p{L}\p{N}]/u.test(spoken))
    throw new UpstreamFailure('invalid', 'text holds nothing that can be spoken; send words or numbers.');
  const seconds = speakingSeconds(spoken);
  if (seconds > MAX_SPEECH_SECONDS) throw new UpstreamFailure('invalid', tooLongMessage(seconds));
}

async function chooseVoice(
  catalogues: Catalogues,
  voiceId: string | undefined,
): Promise<{ id: string; named: boolean }> {
  const { list, named } = await catalogues.get();
  const id = voiceId ?? list.default;
  // An unknown voice would be spoken by the server's default voice, without a word.
  if (!list.voices.some(voice => voice.id === id))
    throw new UpstreamFailure(
      'invalid',
      'voice_id is not a voice we have; the list of voices names them all.',
    );
  return { id, named };
}

async function probe(endpoint: Endpoint, catalogues: Catalogues): Promise<SpeakerHealth> {
  if (endpoint.open)
    return { status: 'degraded', detail: 'circuit open: the speech server failed repeatedly' };
  const startedAt = performance.now();
  try {
    await catalogues.ask();
    return { status: 'ok', latencyMs: Math.round(performance.now() - startedAt) };
  } catch (error) {
    return { status: 'degraded', detail: error instanceof Error ? error.message : 'no answer' };
  }
}

/** Speaks through Piper's HTTP server (OHF-Voice/piper1-gpl, or its predecessor rhasspy/piper). */
export function createPiperSpeaker(options: PiperOptions): Speaker {
  const endpoint = new Endpoint(options);
  const catalogues = new Catalogues(endpoint, options);
  const synthesis = new Synthesis(endpoint);
  const connections = options.connections ?? 4;
  const maxWaiting = options.maxWaiting ?? 16;
  const asking = new FairQueue({ slots: connections, maxWaiting, fullMessage: QUEUE_FULL });
  const workers = new SpeechWorkers(CONVERT_THREADS, async () => ({}));
  const converting = new FairQueue({
    slots: CONVERT_THREADS,
    maxWaiting: connections + maxWaiting,
    fullMessage: QUEUE_FULL,
  });

  async function work(
    spoken: string,
    voiceId: string | undefined,
    signal: AbortSignal,
    caller: string | undefined,
  ): Promise<Speech> {
    const { id, named } = await chooseVoice(catalogues, voiceId);
    const raw = await asking.run(() => synthesis.run(spoken, named ? id : undefined, signal), signal, caller);
    const wav = await converting.run(() => workers.convert(raw, signal), signal, caller);
    return { wav, voiceId: id };
  }

  return {
    name: 'piper',
    mock: false,
    voices: async () => (await catalogues.get()).list,
    async speak(spoken, voiceId, signal, caller) {
      checkText(spoken);
      try {
        return await withDeadline(options.deadlineMs ?? DEADLINE_MS, signal, inTime =>
          work(spoken, voiceId, inTime, caller),
        );
      } catch (error) {
        throw error instanceof DeadlineExceeded ? toFailure(error) : error;
      }
    },
    health: () => probe(endpoint, catalogues),
    async close() {
      const reason = new UpstreamFailure('unavailable', 'The speech engine is shutting down; try again.');
      asking.close(reason);
      converting.close(reason);
      await Promise.all([endpoint.close(), workers.close()]);
    },
  };
}
