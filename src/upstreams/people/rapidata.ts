import { DeadlineExceeded, pause, withDeadline, withEither } from '../../net/deadline.js';
import { UpstreamFailure } from '../../net/failure.js';
import { checkAsked, checkCapacity, createClosing, shuttingDown, REPLY_POLL_MS } from './panel-people.js';
import type { People, Question, ReplyStore } from './people.js';
import { failureOf, type Json, RapidataApi, type RapidataApiOptions, RapidataFault } from './rapidata-api.js';
import { type Job, parseDollars, RapidataJobs, tooDear } from './rapidata-jobs.js';
import { readResults } from './rapidata-results.js';
import { ReplyWaiter } from './reply-waiter.js';

export type RapidataOptions = RapidataApiOptions & {
  replyStore: ReplyStore;
  /** Most that one attempt at a question may cost, in dollars, as a decimal string. */
  budget: string;
  /** Whom to ask. Default `global`, the audience that is always there. */
  audienceId?: string;
  /** Default 50. */
  maxOpen?: number;
  /** How often a job is looked at. Default 5 000 ms. */
  pollMs?: number;
  /** How long a job may take to appear in the list after it was created. Default 30 000 ms. */
  settleMs?: number;
  /** How long a quote may take. Default 60 000 ms. */
  quoteMs?: number;
  /** Kept free before the deadline to stop the job and fetch what has come. Default 20 000 ms. */
  graceMs?: number;
};

/** One job that was, or is about to be, published for a question. */
type Round = {
  /** Made of the question's id, attempt and round: whoever looks for the job finds it by this. */
  name: string;
  asked: number;
  definitionId?: string;
  /** Millionths of a dollar. */
  quote?: string;
  /** ms since 1970: written before the job is created, so that a crash then is known about. */
  publishedAt?: number;
  jobId?: string;
  done?: boolean;
};

type Intent = { provider: 'rapidata'; attempt: number; rounds: Round[] };

/** People have 25 s for a task (Rapidata's guide to instructions): nobody reads more than this in it. */
const MAX_ASKED = 500;
/** Rejected, under-age, empty and double replies are made up for by asking again, this often in all. */
const MAX_ROUNDS = 3;
const PRICE_TTL_MS = 3_600_000;
const ALIVE_TTL_MS = 30_000;
/** Results are fetched this often even when the progress does not move. */
const LOOKS_PER_FETCH = 6;
const FETCH_MS = 10_000;
/** Nobody has paid yet when we are asked whether we are ready, and nobody should wait long for it. */
const READY_MS = 10_000;

/**
 * People of the Rapidata marketplace, asked through its Job API: a free-text job per question. The job's name is fixed and on
 * disk before it is created, and looked for before it is created again, so that a crash does not buy twice. The quote is held
 * against the budget before anything is published. The job is paused at the deadline and as soon as there are enough replies.
 * Source: `openapi/schemas/` of RapidataAI/rapidata-python-sdk and docs.rapidata.ai.
 * @throws RangeError when the budget is not an amount.
 */
export function createRapidataPeople(options: RapidataOptions): People {
  const api = new RapidataApi(options);
  const people = new RapidataPeople(
    options,
    new RapidataJobs(api, options.audienceId ?? 'global', options.pollMs ?? 5_000),
  );
  const closing = createClosing();
  return {
    name: 'rapidata',
    ready: (wanted, about) => people.ready(wanted, about, closing.signal),
    ask: (question, signal) => withEither(signal, closing.signal, both => people.ask(question, both)),
    health: async () => people.health(),
    close: async () => {
      closing.abort(shuttingDown());
      await api.close();
    },
  };
}

class RapidataPeople {
  readonly #options: RapidataOptions;
  readonly #replyStore: ReplyStore;
  readonly #jobs: RapidataJobs;
  readonly #watch: ReplyWaiter;
  readonly #budget: bigint;
  readonly #pollMs: number;
  #price: { perResponse: bigint; readAt: number } | undefined;
  #pricing: Promise<bigint> | undefined;
  #aliveAt = 0;
  #trouble = '';
  readonly #unpaused = new Set<string>();

  constructor(options: RapidataOptions, jobs: RapidataJobs) {
    this.#options = options;
    this.#replyStore = options.replyStore;
    this.#jobs = jobs;
    this.#budget = parseDollars(options.budget);
    this.#pollMs = options.pollMs ?? 5_000;
    this.#watch = new ReplyWaiter(options.replyStore, Math.min(REPLY_POLL_MS, this.#pollMs));
  }

  /** @param closing ends what goes on when the caller has gone: a price that is on its way serves the next one */
  async ready(
    wanted: number,
    about: { brand: string; question: string } | undefined,
    closing: AbortSignal,
  ): Promise<void> {
    checkAsked(about, MAX_ASKED);
    await checkCapacity(this.#replyStore, this.#options.maxOpen ?? 50);
    try {
      await withDeadline(READY_MS, closing, async inTime => {
        const perResponse = await this.#currentPrice(closing);
        if (perResponse * BigInt(wanted) > this.#budget) throw tooDear(wanted);
        if (Date.now() - this.#aliveAt > ALIVE_TTL_MS) await this.#jobs.probe(inTime);
      });
      this.#well();
    } catch (error) {
      const late = error instanceof DeadlineExceeded;
      throw this.#unavailable(late ? new RapidataFault(0, 'no price and no answer in time') : error);
    }
  }

  health(): { status: 'ok' | 'degraded'; detail?: string } {
    const unpaused = [...this.#unpaused].slice(0, 5).join(', ');
    const detail = unpaused ? `pause these jobs by hand: ${unpaused}` : this.#trouble;
    return detail ? { status: 'degraded', detail } : { status: 'ok' };
  }

  async ask(question: Question, signal: AbortSignal): Promise<void> {
    const left = question.deadline - Date.now();
    if (left <= 0 || (await this.#missing(question)) <= 0) return this.#windUp(question, signal);
    const stopAt = question.deadline - Math.min(this.#options.graceMs ?? 20_000, left / 4);
    const intent = await this.#intentOf(question, signal);
    for (let missing = await this.#missing(question); missing > 0; missing = await this.#missing(question)) {
      const round = await this.#nextRound(question, intent, missing);
      if (!round) break;
      const job = await this.#published(question, intent, round, stopAt, signal);
      const ended = job && (await this.#collect(question, job, stopAt, signal));
      if (ended !== 'done') {
        await this.#stop(question, round, signal);
        if (!job && (await this.#missing(question)) === question.wanted) throw unreached();
        break;
      }
      round.done = true;
      await this.#save(question, intent);
    }
    // Nothing more will be bought; the operator may still have people who answer on the panel.
    await this.#watch.until(question, signal);
  }

  async #missing(question: Question): Promise<number> {
    return question.wanted - (await this.#replyStore.replies(question.id)).length;
  }

  /** The question was answered or too old when we got it: what a crashed predecessor left running is stopped. */
  async #windUp(question: Question, signal: AbortSignal): Promise<void> {
    const known = readIntent(await this.#replyStore.intent(question.id));
    for (const round of known?.rounds ?? []) if (!round.done) await this.#stop(question, round, signal);
  }

  async #intentOf(question: Question, signal: AbortSignal): Promise<Intent> {
    const known = readIntent(await this.#replyStore.intent(question.id));
    if (known?.attempt === question.attempt) return known;
    // An earlier attempt ended at its deadline. What it bought counts; what it left running does not run on.
    for (const round of known?.rounds ?? []) if (!round.done) await this.#stop(question, round, signal);
    return { provider: 'rapidata', attempt: question.attempt, rounds: [] };
  }

  async #save(question: Question, intent: Intent): Promise<void> {
    await this.#replyStore.saveIntent(question.id, JSON.stringify(intent));
  }

  async #nextRound(question: Question, intent: Intent, missing: number): Promise<Round | undefined> {
    const last = intent.rounds.at(-1);
    if (last && !last.done) return last;
    if (intent.rounds.length >= MAX_ROUNDS) return undefined;
    const spent = intent.rounds.reduce((sum, { quote }) => sum + BigInt(quote ?? '0'), 0n);
    if (last && spent + (this.#price?.perResponse ?? 0n) * BigInt(missing) > this.#budget) return undefined;
    const round: Round = {
      name: `coinslot-${question.id}-${question.attempt}-${intent.rounds.length + 1}`,
      asked: missing,
    };
    intent.rounds.push(round);
    await this.#save(question, intent);
    return round;
  }

  /** The job of a round, created unless it exists; undefined when the marketplace was out of reach until `stopAt`. */
  async #published(
    question: Question,
    intent: Intent,
    round: Round,
    stopAt: number,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    for (;;) {
      try {
        round.jobId ??= await this.#publish(question, intent, round, signal);
        await this.#save(question, intent);
        this.#well();
        return round.jobId;
      } catch (error) {
        if (!(error instanceof RapidataFault)) throw error;
        this.#trouble = error.message;
        if (!error.passing && error.status !== 409) throw failureOf(error);
      }
      const left = stopAt - Date.now();
      if (left <= 0) return undefined;
      await pause(Math.min(this.#pollMs, left), signal);
    }
  }

  async #publish(question: Question, intent: Intent, round: Round, signal: AbortSignal): Promise<string> {
    const existing = await this.#find(round, signal);
    if (existing) return existing;
    if (!round.definitionId) {
      const asked = clip(question.question, MAX_ASKED);
      const brand = clip(question.brand, MAX_ASKED);
      round.definitionId = await this.#jobs.define(
        round.name,
        brand,
        `${clip(brand, 100)}: ${asked}`,
        round.asked,
        signal,
      );
      await this.#save(question, intent);
    }
    const quote = await this.#jobs.quote(round.definitionId, this.#options.quoteMs ?? 60_000, signal);
    this.#price = { perResponse: quote.perResponse, readAt: Date.now() };
    const others = intent.rounds.filter(other => other !== round);
    const spent = others.reduce((sum, other) => sum + BigInt(other.quote ?? '0'), 0n);
    if (spent + quote.total > this.#budget) throw overBudget(round.asked);
    round.quote = quote.total.toString();
    round.publishedAt = Date.now();
    await this.#save(question, intent);
    return this.#jobs.create(round.name, round.definitionId, signal);
  }

  /** Looks for the job by its name. One that may have been created just now is given time to appear in the list. */
  async #find(round: Round, signal: AbortSignal): Promise<string | undefined> {
    if (round.publishedAt === undefined) return undefined;
    let found = await this.#jobs.named(round.name, signal);
    const settled = round.publishedAt + (this.#options.settleMs ?? 30_000);
    while (found.length === 0 && Date.now() < settled) {
      await pause(Math.min(this.#pollMs, Math.max(settled - Date.now(), 1)), signal);
      found = await this.#jobs.named(round.name, signal);
    }
    const [job, ...doubles] = found;
    for (const double of doubles) await this.#pause(double, signal);
    return job;
  }

  /** Takes over replies until the job is `done`, there are `enough`, or it is `late`. */
  async #collect(
    question: Question,
    jobId: string,
    stopAt: number,
    signal: AbortSignal,
  ): Promise<'done' | 'enough' | 'late'> {
    let seen = -1;
    for (let look = 0; ; look++) {
      try {
        const job = await this.#jobs.get(jobId, signal);
        this.#well();
        if (job.state === 'Completed') {
          await this.#take(question, await this.#jobs.results(jobId, signal));
          return (await this.#missing(question)) > 0 ? 'done' : 'enough';
        }
        if (job.state === 'Failed')
          throw new UpstreamFailure('failed', 'The marketplace could not put the question to people.');
        const progress = await this.#progress(jobId, signal);
        if (progress !== seen || look % LOOKS_PER_FETCH === 0) await this.#takeSoFar(question, job, signal);
        seen = progress;
      } catch (error) {
        if (!(error instanceof RapidataFault)) throw error;
        this.#trouble = error.message;
        if (!error.passing && error.status !== 409) throw failureOf(error);
      }
      if ((await this.#missing(question)) <= 0) return 'enough';
      const left = stopAt - Date.now();
      if (left <= 0) return 'late';
      await pause(Math.min(this.#pollMs, left), signal);
    }
  }

  /** How far a job is; -1 when that can't be told, which ends nothing. */
  async #progress(jobId: string, signal: AbortSignal): Promise<number> {
    try {
      return await this.#jobs.progress(jobId, signal);
    } catch (error) {
      if (!(error instanceof RapidataFault)) throw error;
      this.#trouble = error.message;
      return -1;
    }
  }

  /** What has come so far. That it can't be had ends nothing: the job goes on and has results when it is completed. */
  async #takeSoFar(question: Question, job: Job, signal: AbortSignal): Promise<void> {
    try {
      const file = await this.#jobs.resultsSoFar(job.pipelineId, FETCH_MS, signal);
      if (file) await this.#take(question, file);
    } catch (error) {
      if (!(error instanceof RapidataFault)) throw error;
      this.#trouble = error.message;
    }
  }

  async #take(question: Question, file: Json): Promise<void> {
    for (const reply of readResults(question.id, file)) {
      const added = await this.#replyStore.add(question.id, reply);
      if (added === 'full' || added === 'closed') return;
    }
  }

  /** Ends the spending of a round and fetches what it brought. Never throws for the marketplace's sake. */
  async #stop(question: Question, round: Round, signal: AbortSignal): Promise<void> {
    try {
      const jobId = round.jobId ?? (await this.#find(round, signal));
      if (!jobId) return;
      await this.#pause(jobId, signal);
      const job = await this.#jobs.get(jobId, signal);
      if (job.state === 'Completed') await this.#take(question, await this.#jobs.results(jobId, signal));
      else await this.#takeSoFar(question, job, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RapidataFault)) throw error;
      this.#trouble = error.message;
    }
  }

  async #pause(jobId: string, signal: AbortSignal): Promise<void> {
    this.#unpaused.add(jobId);
    await this.#jobs.pause(jobId, signal);
    this.#unpaused.delete(jobId);
  }

  #currentPrice(signal: AbortSignal): Promise<bigint> {
    if (this.#price && Date.now() - this.#price.readAt < PRICE_TTL_MS)
      return Promise.resolve(this.#price.perResponse);
    if (!this.#pricing) {
      this.#pricing = this.#askPrice(signal).finally(() => (this.#pricing = undefined));
      // Whoever waits for it learns of its failure; perhaps nobody does any more.
      this.#pricing.catch(() => {});
    }
    return this.#pricing;
  }

  /** The price of one reply, by the quote for a definition that is never published. */
  async #askPrice(signal: AbortSignal): Promise<bigint> {
    const definition = await this.#jobs.define(
      'coinslot-price',
      'Price',
      'What do you think of it?',
      1,
      signal,
    );
    const { perResponse } = await this.#jobs.quote(definition, this.#options.quoteMs ?? 60_000, signal);
    this.#price = { perResponse, readAt: Date.now() };
    return perResponse;
  }

  #well(): void {
    this.#aliveAt = Date.now();
    this.#trouble = '';
  }

  #unavailable(error: unknown): unknown {
    if (!(error instanceof RapidataFault)) return error;
    this.#trouble = error.message;
    return new UpstreamFailure(
      'unavailable',
      'The marketplace can not be reached at the moment; try again.',
      {
        cause: error,
        retryAfterSeconds: Math.max(error.retryAfterSeconds ?? 30, 1),
      },
    );
  }
}

function clip(text: string, max: number): string {
  const line = text.replace(/[\s\p{C}]+/gu, ' ').trim();
  const characters = [...line];
  return characters.length <= max ? line : `${characters.slice(0, max - 1).join('')}…`;
}

function overBudget(asked: number): UpstreamFailure {
  const message = `Asking ${asked} people costs more than the marketplace budget; nobody was asked.`;
  return new UpstreamFailure('failed', message);
}

function unreached(): UpstreamFailure {
  return new UpstreamFailure(
    'failed',
    'The marketplace could not be reached before the deadline; nobody was asked.',
  );
}

/** Undefined for what another provider, or nobody, has written. */
function readIntent(text: string | null): Intent | undefined {
  if (text === null) return undefined;
  try {
    const value = JSON.parse(text) as Partial<Intent> | null;
    return value?.provider === 'rapidata' && typeof value.attempt === 'number' && Array.isArray(value.rounds)
      ? (value as Intent)
      : undefined;
  } catch {
    return undefined;
  }
}
