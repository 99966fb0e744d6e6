import { type HttpAnswer, UpstreamFailure, withDeadline } from 'coinslot';
import { type PiperOptions, type PiperServer, refusal, toFailure } from './piper-server.js';
import { bandwidthOf, OUTPUT_RATE_HZ, type Voice, type VoiceList } from './voices.js';

const MAX_VOICES_BYTES = 8_000_000;
const MAX_VOICES = 500;
const VOICES_DEADLINE_MS = 4_000;
const FRESH_MS = 2_000;
/** Id of the only voice of a server that cannot list its voices. */
const UNNAMED_VOICE = 'en_US-default-medium';
const MODEL_CARD = 'see the MODEL_CARD of the voice in rhasspy/piper-voices';

/** `named` is false for a server that cannot list its voices. */
type Catalogue = { list: VoiceList; named: boolean; readAt: number };

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.length > 0 && value.length <= 100 ? value : undefined;
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function bandwidth(rateHz: unknown): { bandwidthHz?: number } {
  return Number.isInteger(rateHz) && (rateHz as number) > 0
    ? { bandwidthHz: bandwidthOf(rateHz as number) }
    : {};
}

/** Piper's ids are `<language>_<REGION>-<name>-<quality>`; the configuration next to the model has the same data in fields. */
function describe(id: string, config: unknown): Voice {
  const [locale = '', ...rest] = id.split('-');
  const language = text(field(field(config, 'language'), 'code')) ?? locale;
  return {
    id,
    name: text(field(config, 'dataset')) ?? (rest.slice(0, -1).join('-') || id),
    language: language.replace('_', '-'),
    quality: text(field(field(config, 'audio'), 'quality')) ?? rest.at(-1) ?? 'medium',
    sampleRateHz: OUTPUT_RATE_HZ,
    ...bandwidth(field(field(config, 'audio'), 'sample_rate')),
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
    throw new UpstreamFailure('failed', 'The speech server did not send a list of voices; try again later.');
  const ids = Object.keys(map).filter(text).sort().slice(0, MAX_VOICES);
  const voices = ids.map(id => describe(id, field(map, id)));
  return { list: { default: pickDefault(ids, wanted), voices }, named: true, readAt: now };
}

/** Caches the list of voices of a server. While the server cannot be reached, the last known list stays valid. */
export class PiperVoices {
  readonly #server: PiperServer;
  readonly #wanted: string | undefined;
  readonly #ttlMs: number;
  #known: Catalogue | undefined;
  #reading: Promise<Catalogue> | undefined;
  #retryAt = 0;

  constructor(server: PiperServer, options: PiperOptions) {
    this.#server = server;
    this.#wanted = options.defaultVoice;
    this.#ttlMs = options.voicesTtlMs ?? 60_000;
  }

  async get(): Promise<Catalogue> {
    const known = this.#known;
    const now = Date.now();
    if (known && (now - known.readAt < this.#ttlMs || now < this.#retryAt)) return known;
    try {
      return await this.refresh();
    } catch (error) {
      // Without this pause, every call would wait for an unreachable server.
      this.#retryAt = Date.now() + 5_000;
      if (known) return known;
      throw error;
    }
  }

  /** Reads the list from the server, unless it was read less than 2 s ago. Concurrent calls share one request. */
  refresh(): Promise<Catalogue> {
    if (this.#known && Date.now() - this.#known.readAt < FRESH_MS) return Promise.resolve(this.#known);
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<Catalogue> {
    // Several callers may wait for this request, so no caller can cancel it.
    const answer = await withDeadline(VOICES_DEADLINE_MS, new AbortController().signal, signal =>
      this.#server.get('/voices', signal),
    ).catch((error: unknown) => {
      throw toFailure(error);
    });
    this.#known = readCatalogue(answer, this.#wanted, Date.now());
    return this.#known;
  }
}
