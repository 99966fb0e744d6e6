import { createHash } from 'node:crypto';
import { DeadlineExceeded, pause, type Payer, UpstreamFailure, withDeadline, withEither } from 'coinslot';
import { looksLikeGibberish } from './gibberish.js';
import { MARK_REQUEST, readMark } from './opinion-mark.js';
import type { People } from './people.js';
import { checkAsked, checkCapacity, createClosing, shuttingDown, REPLY_POLL_MS } from './panel-people.js';
import { parseDollars, tooExpensive } from './rapidata-jobs.js';
import { ReplyWaiter } from './reply-waiter.js';
import { tidyReply } from './reply-text.js';
import type { Question, Reply, ReplyStore } from './replies.js';
import { WurkApi, WurkFault, type WurkJob } from './wurk-api.js';
import { paidFor, readWurkIntent, type Task, type WurkIntent } from './wurk-intent.js';

export type WurkOptions = {
  replyStore: ReplyStore;
  payer: Payer;
  url: string;
  /** The reward for a reply, in dollars, as a decimal string. */
  reward: string;
  /** `maxPrice`: the most that one reply may cost, including fees. `budget`: the most that one order may cost over all its attempts. */
  maxPrice: string;
  budget: string;
  /** The maximum number of questions open at a time. Default 50. */
  maxOpen?: number;
  /** How often submissions are read. Default 10 000 ms. */
  pollMs?: number;
  requestMs?: number;
  /** No task is bought if less time than this is left before the deadline: nobody would answer in time. Default 60 000 ms. */
  leastMs?: number;
};

const MAX_ASKED = 700;
/** The maximum number of tasks per order. Further tasks replace replies that were empty, duplicates or held. */
const MAX_TASKS = 4;
const READY_MS = 10_000;
const PRICE_TTL_MS = 300_000;
const SIGN_MS = 30_000;
/** How often the chain is checked for the outcome of a payment that the marketplace has not answered. */
const LOOK_MS = 30_000;

/**
 * Asks people on WURK, which is paid per task with x402 in USDC on Solana, and so needs no account and no key except the wallet's. The
 * payment of a task is in the ledger before it is sent, and is sent again, never replaced, until the marketplace returns the job or the
 * chain shows that the payment is dead. So a crash can't pay twice. A task can't be stopped: replies after the deadline are paid for but
 * lost.
 * @throws RangeError if an amount is invalid.
 */
export function createWurkPeople(options: WurkOptions): People {
  const api = new WurkApi(options.url, options.payer, options.requestMs ?? 20_000);
  const people = new WurkPeople(options, api);
  const closing = createClosing();
  return {
    name: 'wurk',
    ready: (wanted, about) => people.ready(wanted, about, closing.signal),
    ask: (question, signal) => withEither(signal, closing.signal, both => people.ask(question, both)),
    health: async () => people.health(),
    close: async () => {
      closing.abort(shuttingDown());
      await api.close();
    },
  };
}

class WurkPeople {
  readonly #options: WurkOptions;
  readonly #api: WurkApi;
  readonly #replyStore: ReplyStore;
  readonly #payer: Payer;
  readonly #watch: ReplyWaiter;
  readonly #limits: { reward: bigint; maxPrice: bigint; budget: bigint };
  readonly #pollMs: number;
  readonly #fineUntil = new Map<number, number>();
  #trouble = '';
  /** How many submissions each job has brought, and how many were ordered. */
  readonly #progress = new Map<string, { asked: number; brought: number }>();
  /** Settled payments that brought no job, by question. */
  readonly #lost = new Map<string, string>();

  constructor(options: WurkOptions, api: WurkApi) {
    const { replyStore, payer, reward, maxPrice, budget, pollMs = 10_000 } = options;
    this.#options = options;
    this.#api = api;
    this.#replyStore = replyStore;
    this.#payer = payer;
    this.#limits = {
      reward: parseDollars(reward),
      maxPrice: parseDollars(maxPrice),
      budget: parseDollars(budget),
    };
    this.#pollMs = pollMs;
    this.#watch = new ReplyWaiter(replyStore, Math.min(REPLY_POLL_MS, pollMs));
  }

  async ready(
    wanted: number,
    about: { brand: string; question: string } | undefined,
    closing: AbortSignal,
  ): Promise<void> {
    checkAsked(about, MAX_ASKED);
    const { reward, budget } = this.#limits;
    if (reward * BigInt(wanted) > budget) throw tooExpensive(wanted);
    await checkCapacity(this.#replyStore, this.#options.maxOpen ?? 50);
    if ((this.#fineUntil.get(wanted) ?? 0) > Date.now()) return;
    try {
      await withDeadline(READY_MS, closing, async inTime => {
        const path = this.#api.taskPath(
          taskOf('a brand', 'What do you think of it?'),
          wanted,
          this.#options.reward,
        );
        const { amount } = await this.#api.price(path, inTime);
        if (this.#tooDear(amount, wanted, 0n)) throw tooExpensive(wanted);
        await this.#payer.checkFunds(amount);
      });
    } catch (error) {
      if (error instanceof UpstreamFailure) throw error;
      closing.throwIfAborted();
      this.#trouble =
        error instanceof DeadlineExceeded ? 'WURK did not send a price in time' : messageOf(error);
      throw unavailable(error);
    }
    this.#trouble = '';
    if (this.#fineUntil.size > 100) this.#fineUntil.clear();
    this.#fineUntil.set(wanted, Date.now() + PRICE_TTL_MS);
  }

  health(): { status: 'ok' | 'degraded'; detail?: string } {
    const detail = [...[...this.#lost.values()].slice(-3), this.#trouble].filter(Boolean).join('; ');
    return detail ? { status: 'degraded', detail } : { status: 'ok' };
  }

  async ask(question: Question, signal: AbortSignal): Promise<void> {
    const intent: WurkIntent = readWurkIntent(await this.#replyStore.intent(question.id)) ?? {
      provider: 'wurk',
      tasks: [],
    };
    for (;;) {
      for (const task of intent.tasks) if (task.job) await this.#take(question, task, task.job, signal);
      const missing = question.wanted - (await this.#replyStore.replies(question.id)).length;
      if (missing <= 0) return;
      const left = question.deadline - Date.now();
      if (left <= 0) return;
      if (!(await this.#advance(question, intent, missing, signal))) break;
      await pause(Math.max(1, Math.min(this.#pollMs, question.deadline - Date.now())), signal);
    }
    // Nothing more will be bought, but people on the panel may still answer.
    await this.#watch.until(question, signal);
  }

  /**
   * Does the next step for the order: sends a payment that has no job yet, or buys another task once the last one has brought all ordered
   * replies. @returns false if nothing more can come
   */
  async #advance(
    question: Question,
    intent: WurkIntent,
    missing: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const open = intent.tasks.find(({ payment, job, dead }) => payment && !job && !dead);
    if (open) return this.#pay(question, intent, open, signal);
    const last = intent.tasks.filter(({ job }) => job).at(-1);
    if (last?.job && !this.#isUsedUp(last.job.jobId)) return true;
    if (intent.tasks.filter(({ dead }) => !dead).length >= MAX_TASKS) return false;
    if (question.deadline - Date.now() < (this.#options.leastMs ?? 60_000)) return false;
    const task = await this.#sign(question, intent, missing, signal);
    if (task === 'later') return true;
    return task ? this.#pay(question, intent, task, signal) : false;
  }

  /** Signs the payment for a task and stores it. Undefined if the budget does not allow another task. */
  async #sign(
    question: Question,
    intent: WurkIntent,
    asked: number,
    signal: AbortSignal,
  ): Promise<Task | 'later' | undefined> {
    const path = this.#api.taskPath(taskOf(question.brand, question.question), asked, this.#options.reward);
    let task: Task;
    try {
      const priced = await this.#api.price(path, signal);
      if (this.#tooDear(priced.amount, asked, paidFor(intent.tasks))) {
        if (intent.tasks.some(({ dead }) => !dead)) return undefined;
        throw new UpstreamFailure(
          'failed',
          `Asking ${asked} people costs more than the marketplace budget; nobody was asked.`,
        );
      }
      // A payment whose signature takes too long is dropped unsent.
      task = { asked, path, payment: await withDeadline(SIGN_MS, signal, () => priced.sign()) };
    } catch (error) {
      if (error instanceof UpstreamFailure) throw error;
      signal.throwIfAborted();
      this.#trouble = messageOf(error);
      if (error instanceof WurkFault && error.unreachable) return 'later';
      throw unavailable(error);
    }
    intent.tasks.push(task);
    await this.#save(question, intent);
    return task;
  }

  /** Sends the payment for a task. @returns false if it was settled but no job was returned: then only the operator can act */
  async #pay(question: Question, intent: WurkIntent, task: Task, signal: AbortSignal): Promise<boolean> {
    const { payment } = task;
    if (!payment) return true;
    const bought = await this.#api.buy(task.path, payment, signal);
    if (bought.kind === 'job') {
      task.job = bought.job;
      await this.#save(question, intent);
      this.#trouble = '';
      this.#lost.delete(question.id);
      return true;
    }
    this.#trouble = bought.why;
    if (bought.kind === 'later' && Date.now() - payment.signedAt < LOOK_MS) return true;
    const fate = await this.#payer.fate(payment);
    if (fate.kind === 'dead') {
      task.dead = true;
      await this.#save(question, intent);
    }
    if (fate.kind === 'landed') this.#report(question, payment.amount, fate.signature);
    return fate.kind !== 'landed' || bought.kind === 'later';
  }

  #report({ id }: Question, amount: string, transfer: string): void {
    if (this.#lost.size > 100) this.#lost.clear();
    this.#lost.set(
      id,
      `WURK was paid ${Number(amount) / 1e6} USDC for order ${id.slice(0, 16)} (transfer ${transfer}) and returned no job: recover the job with ` +
        `the wallet ${this.#payer.address} at WURK (action=recover); nothing else is paid for this order`,
    );
  }

  #isUsedUp(jobId: string): boolean {
    const progress = this.#progress.get(jobId);
    return progress !== undefined && progress.brought >= progress.asked;
  }

  async #take(question: Question, { asked }: Task, job: WurkJob, signal: AbortSignal): Promise<void> {
    try {
      const found = await this.#api.submissions(job, signal);
      if (this.#progress.size > 1_000) this.#progress.clear();
      this.#progress.set(job.jobId, { asked, brought: found.length });
      for (const { id, text } of found) {
        const reply = replyOf(job.jobId, id, text);
        if (reply && (await this.#replyStore.add(question.id, reply)) === 'closed') return;
      }
      this.#trouble = '';
    } catch (error) {
      if (!(error instanceof WurkFault)) throw error;
      this.#trouble = error.message;
    }
  }

  /** Whether the price exceeds the limit per reply or, together with earlier payments, the budget of the order. */
  #tooDear(amount: bigint, replies: number, paid: bigint): boolean {
    const { maxPrice, budget } = this.#limits;
    return amount > maxPrice * BigInt(replies) || paid + amount > budget;
  }

  async #save(question: Question, intent: WurkIntent): Promise<void> {
    await this.#replyStore.saveIntent(question.id, JSON.stringify(intent));
  }
}

/** The text of a task, as people on the marketplace see it. */
function taskOf(brand: string, question: string): string {
  const line = (text: string): string => text.replace(/[\s\p{C}]+/gu, ' ').trim();
  return `About ${line(brand)}: ${line(question)} ${MARK_REQUEST} Do not write anything that identifies you.`;
}

/** The marketplace gives the id of a submission, but not of its author. */
function replyOf(jobId: string, submission: string, raw: string): Reply | undefined {
  const { text, sentiment } = readMark(tidyReply(raw));
  if (text === '') return undefined;
  const id = createHash('sha256').update(`${jobId} ${submission}`).digest('hex').slice(0, 24);
  const isHeld = looksLikeGibberish(text);
  return { id, text, sentiment, respondent: `wurk-${id}`, isSample: false, isHeld };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function unavailable(cause: unknown): UpstreamFailure {
  return new UpstreamFailure('unavailable', 'The marketplace is not available at present; try again later.', {
    cause,
    retryAfterSeconds: 60,
  });
}
