import { DeadlineExceeded, pause, UpstreamFailure, withDeadline, withEither } from 'coinslot';
import { MARK_REQUEST } from './opinion-mark.js';
import type { People } from './people.js';
import { checkAsked, checkCapacity, createClosing, shuttingDown, REPLY_POLL_MS } from './panel-people.js';
import { failureOf, RapidataApi, type RapidataApiOptions, RapidataFault } from './rapidata-api.js';
import { type Intent, readIntent, type Round, spentOn } from './rapidata-intent.js';
import { parseDollars, RapidataJobs, tooExpensive } from './rapidata-jobs.js';
import { ReplyPrice } from './rapidata-price.js';
import { readResponses } from './rapidata-results.js';
import { Hindrances } from './rapidata-states.js';
import { ReplyWaiter } from './reply-waiter.js';
import type { Question, ReplyStore } from './replies.js';

export type RapidataOptions = RapidataApiOptions & {
  replyStore: ReplyStore;
  /** The most that one attempt at a question may cost, in dollars, as a decimal string. */
  budget: string;
  /** Id of a Rapidata audience. Default `global`, which always exists. */
  audienceId?: string;
  /** The most questions that may be open at a time. Default 50. */
  maxOpen?: number;
  /** How often the state of a job is read. Default 5 000 ms. */
  pollMs?: number;
  /** How long a new job may take to appear in the list of jobs. Default 30 000 ms. */
  settleMs?: number;
  /** How long a quote may take. Default 60 000 ms. */
  quoteMs?: number;
  /** Time reserved before the deadline for pausing the job and fetching its replies. Default 20 000 ms. */
  graceMs?: number;
};

/**
 * The longest question, in characters. Respondents have 25 s per task (Rapidata's guide to instructions), which is too short to read
 * more.
 */
const MAX_ASKED = 500;
/** The most jobs per attempt. Further jobs replace replies that were empty, duplicates, or given by minors. */
const MAX_ROUNDS = 3;
const ALIVE_TTL_MS = 30_000;
/** Results are fetched at every sixth poll even if the job reports no progress. */
const POLLS_PER_FETCH = 6;
/** Readiness is checked before the payment, so a caller should not wait long for it. */
const READY_MS = 10_000;

/**
 * Asks people on the Rapidata marketplace through its Job API, with one free-text job per question. The name of a job is stored
 * before the job is created, and is looked up before the job is created again: a crash can't cause a second purchase. The quote is compared
 * with the budget before a job is published. The job is paused at the deadline, or as soon as there are enough replies.
 * Source: `openapi/schemas/` of RapidataAI/rapidata-python-sdk and docs.rapidata.ai.
 * @throws RangeError if the budget is not an amount.
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
  readonly #price: ReplyPrice;
  readonly #watch: ReplyWaiter;
  readonly #budget: bigint;
  readonly #pollMs: number;
  readonly #quoteMs: number;
  #aliveAt = 0;
  #trouble = '';
  readonly #hindrances = new Hindrances();
  readonly #unpaused = new Set<string>();

  constructor(options: RapidataOptions, jobs: RapidataJobs) {
    this.#options = options;
    this.#replyStore = options.replyStore;
    this.#jobs = jobs;
    this.#quoteMs = options.quoteMs ?? 60_000;
    this.#price = new ReplyPrice(jobs, this.#quoteMs);
    this.#budget = parseDollars(options.budget);
    this.#pollMs = options.pollMs ?? 5_000;
    this.#watch = new ReplyWaiter(options.replyStore, Math.min(REPLY_POLL_MS, this.#pollMs));
  }

  /** @param closing cancels the price request. A caller that leaves does not cancel it, because the next caller can use the price */
  async ready(
    wanted: number,
    about: { brand: string; question: string } | undefined,
    closing: AbortSignal,
  ): Promise<void> {
    checkAsked(about, MAX_ASKED);
    this.#hindrances.checkFunds();
    await checkCapacity(this.#replyStore, this.#options.maxOpen ?? 50);
    try {
      await withDeadline(READY_MS, closing, async inTime => {
        const perResponse = await this.#price.current(closing);
        if (perResponse * BigInt(wanted) > this.#budget) throw tooExpensive(wanted);
        if (Date.now() - this.#aliveAt > ALIVE_TTL_MS) await this.#jobs.probe(inTime);
      });
      this.#well();
    } catch (error) {
      const late = error instanceof DeadlineExceeded;
      throw this.#failure(late ? new RapidataFault('late', 'no price and no answer in time') : error);
    }
  }

  health(): { status: 'ok' | 'degraded'; detail?: string } {
    const unpaused = [...this.#unpaused].slice(0, 5).join(', ');
    const detail = unpaused
      ? `could not pause these jobs; pause them in Rapidata: ${unpaused}`
      : this.#hindrances.words || this.#trouble;
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
    // No more replies will be bought, but people on the panel may still answer.
    await this.#watch.until(question, signal);
  }

  async #missing(question: Question): Promise<number> {
    return question.wanted - (await this.#replyStore.replies(question.id)).length;
  }

  /** For a question that has all its replies or is past its deadline: stops the jobs that a crashed process left running. */
  async #windUp(question: Question, signal: AbortSignal): Promise<void> {
    const known = readIntent(await this.#replyStore.intent(question.id));
    for (const round of known?.rounds ?? []) if (!round.done) await this.#stop(question, round, signal);
  }

  async #intentOf(question: Question, signal: AbortSignal): Promise<Intent> {
    const known = readIntent(await this.#replyStore.intent(question.id));
    if (known?.attempt === question.attempt) return known;
    // An earlier attempt ended at its deadline. Its replies count, and its unfinished jobs are stopped.
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
    const spent = spentOn(intent.rounds);
    if (last && spent + (this.#price.known ?? 0n) * BigInt(missing) > this.#budget) return undefined;
    const round: Round = {
      name: `coinslot-${question.id}-${question.attempt}-${intent.rounds.length + 1}`,
      asked: missing,
    };
    intent.rounds.push(round);
    await this.#save(question, intent);
    return round;
  }

  /** Id of the round's job, which is created unless it exists; undefined if the marketplace was unreachable until `stopAt`. */
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
        `${clip(brand, 100)}: ${asked} ${MARK_REQUEST}`,
        round.asked,
        signal,
      );
      await this.#save(question, intent);
    }
    const quote = await this.#jobs.quote(round.definitionId, this.#quoteMs, signal);
    this.#price.record(quote.perResponse);
    const spent = spentOn(intent.rounds.filter(other => other !== round));
    if (spent + quote.total > this.#budget) throw overBudget(round.asked);
    round.quote = quote.total.toString();
    round.publishedAt = Date.now();
    await this.#save(question, intent);
    const { jobId, warning } = await this.#jobs.create(round.name, round.definitionId, signal);
    this.#hindrances.warn(warning);
    return jobId;
  }

  /** Finds the job by its name. A job that may just have been created gets time to appear in the list. Duplicates are paused. */
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

  /** Stores replies until the job is `done`, there are `enough` replies, or it is too `late`. */
  async #collect(
    question: Question,
    jobId: string,
    stopAt: number,
    signal: AbortSignal,
  ): Promise<'done' | 'enough' | 'late'> {
    let seen = -1;
    for (let poll = 0; ; poll++) {
      try {
        const job = await this.#jobs.get(jobId, signal);
        this.#well();
        this.#hindrances.see(job);
        if (job.state === 'Completed') {
          await this.#take(question, jobId, signal);
          return (await this.#missing(question)) > 0 ? 'done' : 'enough';
        }
        if (job.state === 'Failed')
          throw new UpstreamFailure('failed', 'The marketplace could not ask the question.');
        const progress = await this.#progress(jobId, signal);
        if (progress !== seen || poll % POLLS_PER_FETCH === 0) await this.#take(question, jobId, signal);
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

  /** Progress in percent; -1 if it cannot be read, which does not end the job. */
  async #progress(jobId: string, signal: AbortSignal): Promise<number> {
    try {
      return await this.#jobs.progress(jobId, signal);
    } catch (error) {
      if (!(error instanceof RapidataFault)) throw error;
      this.#trouble = error.message;
      return -1;
    }
  }

  async #take(question: Question, jobId: string, signal: AbortSignal): Promise<void> {
    for (const reply of readResponses(question.id, await this.#jobs.responses(jobId, signal))) {
      const added = await this.#replyStore.add(question.id, reply);
      if (added === 'full' || added === 'closed') return;
    }
  }

  /** Pauses the job of a round and stores its replies. Failures of the marketplace are recorded, not thrown. */
  async #stop(question: Question, round: Round, signal: AbortSignal): Promise<void> {
    try {
      const jobId = round.jobId ?? (await this.#find(round, signal));
      if (!jobId) return;
      await this.#pause(jobId, signal);
      await this.#take(question, jobId, signal);
      this.#hindrances.forget(jobId);
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

  #well(): void {
    this.#aliveAt = Date.now();
    this.#trouble = '';
  }

  #failure(error: unknown): unknown {
    if (!(error instanceof RapidataFault)) return error;
    this.#trouble = error.message;
    return failureOf(error);
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
