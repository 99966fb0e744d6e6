import type { Keypair } from '@solana/web3.js';
import { inProgress, type Success } from '../../src/payments/outcome.js';
import { jsonAnswer, type Sent } from './test-server.js';
import { pause } from './faults.js';
import { GIVEN_UP, storyOf, targetOf, type Attempt, type Record } from './schedule-record.js';
import type { Schedule } from './schedule.js';
import { BRAND, SUMMARIZE } from './test-chain.js';

/**
 * How a payment is sent. `copies`: to several servers at once. `hidden`: the buyer gives up, and a proxy keeps its connection open.
 * `hangUp`: it gives up, and the server notices a little later.
 */
type Way = 'once' | 'copies' | 'hidden' | 'hangUp';
const WAYS: [number, Way][] = [
  [10, 'once'],
  [4, 'copies'],
  [3, 'hidden'],
  [3, 'hangUp'],
];
const COPIES = 3;
/** A buyer gives up so long (ms, at most) after it is known to wait. */
const PATIENCE_MS = 250;
/** Between a hang-up, after which the buyer signs anew at once, and the server's notice: committed within HANG_UP_MARGIN_MS (250 ms). */
const NOTICED_MS = { least: 50, most: 150 };
/** The same where the buyer first sends its payment again. */
const NOTICED_LATE_MS = { least: 50, most: 400 };
const REPLAYED = 0.4;

/** What one sending tells its buyer. `told`: a server that knew the payment has sent it away, or refused it. */
type SendResult = { sent: Sent | typeof GIVEN_UP; told: boolean };

/** The buyers of a schedule, and a stranger who reads the chain. */
export class BuyerSide {
  readonly #schedule: Schedule;
  /** What goes on behind hang-ups. */
  readonly #left: Promise<void>[] = [];

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  /** Sends the same payment again, or signs anew after a 503, a refusal, a cut or a hang-up, until it has its answer. */
  async purchase(n: number, payer: Keypair): Promise<void> {
    const { random, records, violations, reader } = this.#schedule;
    const record = newRecord(n, payer);
    records.push(record);
    await pause(random.roll('begin', n) * 1_000);
    let attempt = this.#schedule.sign(record);
    // A hidden hang-up and then a new signature look like two calls on purpose: such a buyer first sends its payment again.
    let hidden = false;
    for (const end = Date.now() + 150_000; Date.now() < end; await pause(120)) {
      const way = random.pick(WAYS, 'way', n, ++record.sends);
      const anew = random.roll('anew', n, record.sends) < 0.5;
      const sending = this.#send(record, attempt, way, anew && !hidden);
      const { sent, told } = await sending;
      record.last = sent;
      this.#trace(record, `${way} ${attempt.id.slice(0, 8)}: ${shown(sent)}`);
      if (sent.kind === 'answer' && sent.answer.status === 200) return this.#answered(record, sent);
      if (sent.kind === 'cut') await this.#schedule.cleared();
      if (way === 'hidden' && sent === GIVEN_UP) hidden = true;
      else if (told) hidden = false;
      const mayAnew = !hidden && sent.kind !== 'answer';
      if (sent.kind !== 'refused' && !(anew && mayAnew)) continue;
      attempt = this.#schedule.sign(record);
      this.#trace(record, `signed ${attempt.id.slice(0, 8)} for ${attempt.amount}`);
    }
    violations.push(
      `purchase ${n} never got an answer: ${record.sends} ${JSON.stringify(record.refusals)} ${await storyOf(reader, record)}`,
    );
  }

  /** Resolves when every request has ended, also those whose buyers hung up. */
  async ended(): Promise<void> {
    await Promise.all(this.#left);
  }

  /** A stranger who takes landed payments from the chain, guesses what they are for, and reads the answers. */
  async replayLanded(payers: Keypair[]): Promise<void> {
    const { random, testChain, byId } = this.#schedule;
    const seen = new Set<string>();
    for (; !this.#schedule.over; await pause(30)) {
      for (const id of testChain.landed(payers).keys()) {
        const record = byId.get(id);
        if (!record || seen.has(id)) continue;
        seen.add(id);
        const attempt = record.attempts.findIndex(one => one.id === id);
        if (random.roll('replayed', record.n, attempt) >= REPLAYED) continue;
        const sent = await this.#sendOnce(record, record.attempts[attempt]!, `stranger ${attempt}`);
        this.#trace(record, `a stranger sends ${id.slice(0, 8)}: ${shown(sent)}`);
        if (sent.kind === 'answer' && sent.answer.status === 200) this.#read(record, sent);
      }
    }
  }

  /** The answer reaches the client, or its connection breaks in the last moment. */
  async #answered(record: Record, sent: Sent & { kind: 'answer' }): Promise<void> {
    if (!('sale' in sent)) throw new Error('an answer was sold without a receipt');
    if (this.#schedule.random.roll('written', record.n, record.sends) < 0.8) sent.sale.written();
    else await sent.sale.lost();
  }

  #read(record: Record, sent: Sent & { kind: 'answer' }): void {
    record.bodies.add(sent.answer.body.toString());
    if ('sale' in sent) sent.sale.written();
  }

  async #send(record: Record, attempt: Attempt, way: Way, anewAtOnce: boolean): Promise<SendResult> {
    if (way === 'hidden') return this.#sendHidden(record, attempt);
    if (way === 'hangUp') return this.#hangUp(record, attempt, anewAtOnce ? NOTICED_MS : NOTICED_LATE_MS);
    const { pending } = attempt;
    const sents = await Promise.all(
      Array.from({ length: way === 'copies' ? COPIES : 1 }, (_, copy) =>
        this.#sendOnce(record, attempt, copy),
      ),
    );
    for (const sent of sents) await this.#note(record, attempt, sent, pending);
    const sent =
      sents.find(({ kind }) => kind === 'answer') ??
      sents.find(({ kind }) => kind !== 'refused') ??
      sents[0]!;
    return { sent, told: sents.some(({ kind }) => kind === 'unavailable' || kind === 'refused') };
  }

  #sendOnce(
    record: Record,
    attempt: Attempt,
    copy: string | number,
    gone = new AbortController().signal,
  ): Promise<Sent> {
    const { n, sends, text, operation } = record;
    const work = (): Promise<Success> => this.#work(record, attempt.id);
    return this.#schedule
      .testServer(n, sends, copy)
      .receive({ header: attempt.header, operation, text }, { work, gone });
  }

  /** The server goes on, and writes its answer where nobody reads it. */
  async #sendHidden(record: Record, attempt: Attempt): Promise<SendResult> {
    const { pending } = attempt;
    const sending = this.#sendOnce(record, attempt, 'hidden');
    const sent = await this.#orGivenUp(record, attempt, sending);
    if (sent.kind !== 'given up')
      return this.#note(record, attempt, sent, pending).then(() => resultOf(sent));
    record.failures += 1;
    this.#afterwards(sending, late => {
      this.#trace(record, `nobody reads of ${attempt.id.slice(0, 8)}: ${shown(late)}`);
      if (late.kind === 'answer' && late.answer.status === 200) this.#read(record, late);
    });
    return { sent, told: false };
  }

  #afterwards(sending: Promise<Sent>, end: (late: Sent) => void | Promise<void>): void {
    this.#left.push(sending.then(end));
  }

  /** The server notices before it writes: what it wrote to a connection that is gone, it would know as lost. */
  async #hangUp(record: Record, attempt: Attempt, { least, most }: typeof NOTICED_MS): Promise<SendResult> {
    const { pending } = attempt;
    const gone = new AbortController();
    const sending = this.#sendOnce(record, attempt, 'hang-up', gone.signal);
    const sent = await this.#orGivenUp(record, attempt, sending);
    if (sent.kind !== 'given up')
      return this.#note(record, attempt, sent, pending).then(() => resultOf(sent));
    record.failures += 1;
    const roll = this.#schedule.random.roll('noticed', record.n, record.sends);
    setTimeout(() => gone.abort(), least + roll * (most - least));
    this.#afterwards(sending, async late => {
      this.#trace(record, `lost of ${attempt.id.slice(0, 8)}: ${shown(late)}`);
      if (late.kind === 'answer' && 'sale' in late) await late.sale.lost();
    });
    return { sent, told: false };
  }

  /** Gives up some time after the ledger knows that this request waits: one that is on its way may come in after its successor. */
  async #orGivenUp(
    record: Record,
    attempt: Attempt,
    sending: Promise<Sent>,
  ): Promise<Sent | typeof GIVEN_UP> {
    const { reader, random } = this.#schedule;
    const callers = async (): Promise<number> =>
      (await reader.find(attempt.id).catch(() => undefined))?.callers ?? 0;
    const before = await callers();
    let over = false;
    const ended = sending.finally(() => (over = true));
    while (!over && (await callers()) <= before) await pause(10);
    const patience = pause(random.roll('patience', record.n, record.sends) * PATIENCE_MS);
    return Promise.race([ended, patience.then(() => GIVEN_UP)]);
  }

  /** @param pending whether the buyer knew already when it sent this that the settlement is open */
  async #note(record: Record, attempt: Attempt, sent: Sent, pending: boolean): Promise<void> {
    if (sent.kind === 'answer' && sent.answer.status === 200) record.bodies.add(sent.answer.body.toString());
    if (sent.kind === 'unavailable' && sent.receipt?.errorReason === 'settlement_pending')
      attempt.pending = true;
    // The newest caller waited as long as a call is held: as if it had hung up, the run ends without it.
    if (sent.kind === 'unavailable' && sent.error === inProgress().error) record.failures += 1;
    if (sent.kind !== 'refused') return;
    record.refusals.push(sent.error);
    const row = pending ? await targetOf(this.#schedule.reader, attempt.id) : undefined;
    if (row && row.state !== 'released')
      this.#schedule.violations.push(
        `a 402 after an open settlement without proof: ${sent.error} (${row.state})`,
      );
  }

  async #work(record: Record, id: string): Promise<Success> {
    const run = this.#schedule.ran(id);
    await pause(this.#schedule.random.roll('work', record.n, run) * 60);
    // Another run is another answer, so that one that replaced an answer that was handed out is noticed.
    return jsonAnswer({ summary: `${record.text}, ${id}, run ${run}` });
  }

  #trace({ trace }: Record, what: string): void {
    trace.push(`${Date.now()} ${what}`);
  }
}

function newRecord(n: number, payer: Keypair): Record {
  return {
    n,
    payer,
    text: `purchase ${n}`,
    operation: n % 5 === 4 ? BRAND : SUMMARIZE,
    attempts: [],
    sends: 0,
    bodies: new Set(),
    refusals: [],
    failures: 0,
    trace: [],
  };
}

function resultOf(sent: Sent): SendResult {
  return { sent, told: sent.kind === 'unavailable' || sent.kind === 'refused' };
}

function shown(sent: Sent | typeof GIVEN_UP): string {
  if (sent.kind === 'answer') return `answer ${sent.answer.status}`;
  return 'error' in sent ? `${sent.kind}, ${sent.error}` : sent.kind;
}
