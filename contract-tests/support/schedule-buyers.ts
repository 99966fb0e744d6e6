import type { Keypair } from '@solana/web3.js';
import { inProgress, type Success } from '../../src/sale/outcome.js';
import { pickUpThrough } from './door-calls.js';
import type { DoorWork } from './doors.js';
import { CUT, jsonAnswer, type Sent } from './test-server.js';
import { pause } from './faults.js';
import { isMpp } from './mpp-payment.js';
import { GIVEN_UP, storyOf, targetOf, type Attempt, type Record } from './schedule-record.js';
import type { Schedule } from './schedule.js';
import { BRAND, SUMMARIZE } from './test-chain.js';

/**
 * How a payment is sent. `copies`: to several servers concurrently. `hidden`: the buyer gives up, but a proxy
 * keeps its connection open. `hangUp`: the buyer gives up, and the server notices a little later.
 */
type Way = 'once' | 'copies' | 'hidden' | 'hangUp';
const WAYS: [number, Way][] = [
  [10, 'once'],
  [4, 'copies'],
  [3, 'hidden'],
  [3, 'hangUp'],
];
const COPIES = 3;
/** The longest time in ms that a buyer waits before it gives up, once the ledger shows that its request is waiting. */
const PATIENCE_MS = 250;
/**
 * How long the server takes to notice a hang-up after which the buyer signs again immediately. The notice is
 * committed within HANG_UP_MARGIN_MS (250 ms).
 */
const NOTICED_MS = { least: 50, most: 150 };
/** How long the server takes to notice a hang-up if the buyer then sends its old payment once more, and only afterwards signs again. */
const NOTICED_LATE_MS = { least: 50, most: 400 };
const REPLAYED = 0.4;
/** The share of purchases with a payment-identifier, and the share made over HTTP and MCP. */
const IDENTIFIED = 0.4;
const OVER_DOORS = 0.5;
/** How often a buyer sends an older one of its payments, and how often it first tries to fetch its answer by its key. */
const OLDER = 0.2;
const PICKED_UP = 0.3;
/** The answer to a payment whose run ended before it was settled. */
const FACILITATOR_FAILED = /^The (payment )?facilitator .*can't be reached/;
/** How often a handler returns a header that can't be sent, and that header. */
const HEADER_FAULTS = 0.1;
const UNSENDABLE: [number, { [name: string]: string }][] = [
  [1, { 'X Source': 'a' }],
  [1, { 'X-Größe': 'a' }],
  [1, { 'X-Note': 'a\nb' }],
  [1, { Trailer: 'X-Later' }],
];

/** What a buyer learns from one request. `told`: a server that knows the payment refused it or answered 503. */
type SendResult = { sent: Sent | typeof GIVEN_UP; told: boolean };

/** A header with the base64 of a payment, as a buyer or a stranger sends it. */
type Sending = { header: string; copy: string | number; gone?: AbortSignal };

/** The buyers of a schedule, and a stranger who reads the chain. */
export class BuyerSide {
  readonly #schedule: Schedule;
  /** Requests that are still running after their buyers hung up. */
  readonly #left: Promise<void>[] = [];
  /** The runs that were lost because the facilitator failed. */
  readonly #excused = new Set<string>();

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  /** Sends the same payment again, or signs a new one after a 503, a refusal, a cut or a hang-up, until the answer arrives. */
  async purchase(n: number, payer: Keypair): Promise<void> {
    const record = this.#newRecord(n, payer);
    this.#schedule.records.push(record);
    try {
      await this.#bought(record);
    } catch (error) {
      const story = await storyOf(this.#schedule.reader, record);
      throw new Error(`purchase ${n}: ${(error as Error).message}: ${story}`, { cause: error });
    }
  }

  async #bought(record: Record): Promise<void> {
    const { random, violations } = this.#schedule;
    const { n } = record;
    await pause(random.roll('begin', n) * 1_000);
    let attempt = this.#schedule.sign(record);
    // A hidden hang-up followed by another payment looks like two deliberate calls, unless a payment-identifier says that
    // they are one. Without an identifier, such a buyer first sends its old payment again.
    let hidden = false;
    const end = Date.now() + 150_000;
    const mayGoOn = (): boolean => Date.now() < end && !this.#schedule.over;
    for (; mayGoOn(); await pause(120)) {
      const way = random.pick(WAYS, 'way', n, ++record.sends);
      const anew = random.roll('anew', n, record.sends) < 0.5;
      const sending = this.#send(record, attempt, way, anew && !hidden);
      const { sent, told } = await sending;
      record.last = sent;
      this.#trace(record, `${way} ${attempt.id.slice(0, 8)}: ${shown(sent)}`);
      if (sent.kind === 'sold') return this.#answered(record, sent);
      if (sent.kind === 'cut') await this.#schedule.cleared();
      if (record.identifier === undefined) hidden = isHidden(record, way, sent) || (hidden && !told);
      if (await this.#pickUp(record, attempt)) return;
      if (sent.kind === 'refused' || (anew && !hidden && !('answer' in sent))) {
        attempt = this.#schedule.sign(record);
        this.#trace(record, `signed ${attempt.id.slice(0, 8)} for ${attempt.amount}`);
      } else if (!hidden) attempt = this.#orOlder(record, attempt);
    }
    // Uses the current reader, because the first reader's server may have been killed and closed.
    const story = await storyOf(this.#schedule.reader, record);
    violations.push(
      `purchase ${n} never got an answer: ${record.sends} ${JSON.stringify(record.refusals)} ${story}`,
    );
  }

  /** Resolves when every request has ended, including those whose buyers hung up. */
  async ended(): Promise<void> {
    await Promise.all(this.#left);
  }

  /** A stranger who reads landed payments from the chain, guesses which call they paid for, and sends them. */
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
        const { landedHeader: header } = record.attempts[attempt]!;
        const sent = await this.#sendOnce(record, { header, copy: `stranger ${attempt}` });
        this.#trace(record, `a stranger sends ${id.slice(0, 8)}: ${shown(sent)}`);
        if (sent.kind !== 'sold') continue;
        if (record.identifier !== undefined)
          this.#schedule.violations.push(
            `a stranger without its identifier got the answer of purchase ${record.n}`,
          );
        this.#read(record, sent);
      }
    }
  }

  /** Reports that the answer was written or, at times, that the connection broke at the last moment. */
  async #answered(record: Record, sent: Sent & { kind: 'sold' }): Promise<void> {
    if (this.#schedule.random.roll('written', record.n, record.sends) < 0.8) sent.sale.written();
    else await sent.sale.lost();
  }

  #read(record: Record, sent: Sent & { kind: 'sold' }): void {
    record.bodies.add(sent.answer.body.toString());
    sent.sale.written();
  }

  async #send(record: Record, attempt: Attempt, way: Way, anewAtOnce: boolean): Promise<SendResult> {
    if (way === 'hidden') return this.#sendHidden(record, attempt);
    if (way === 'hangUp') return this.#hangUp(record, attempt, anewAtOnce ? NOTICED_MS : NOTICED_LATE_MS);
    const { pending } = attempt;
    const sents = await Promise.all(
      Array.from({ length: way === 'copies' ? COPIES : 1 }, (_, copy) =>
        this.#sendOnce(record, { header: attempt.header, copy }),
      ),
    );
    for (const sent of sents) await this.#note(record, attempt, sent, pending);
    // One copy may get the failure of a run, and another one the answer of the next.
    const sent =
      sents.find(({ kind }) => kind === 'sold') ??
      sents.find(sent => 'answer' in sent) ??
      sents.find(({ kind }) => kind !== 'refused') ??
      sents[0]!;
    return { sent, told: sents.some(({ kind }) => kind === 'unavailable' || kind === 'refused') };
  }

  async #sendOnce(
    record: Record,
    { header, copy, gone = new AbortController().signal }: Sending,
  ): Promise<Sent> {
    const { n, sends, text, operation } = record;
    const testServer = this.#schedule.testServer(n, sends, copy);
    if (!record.overDoors) {
      const id = record.attempts.find(one => [one.header, one.landedHeader].includes(header))!.id;
      const work = (): Promise<Success> => this.#work(record, id);
      return testServer.receive({ header, operation, text }, { work, gone });
    }
    const door = this.#schedule.random.roll('door', n, sends, copy) < 0.5 ? 'http' : 'mcp';
    const { sent, link } = await this.#schedule.callOver(door, testServer, record, header, gone);
    // MPP has receipts only for calls that were sold.
    const receipt = isMpp(header) || ('receipt' in sent && sent.receipt !== undefined);
    if (link !== undefined) record.links.push({ link, receipt });
    return sent;
  }

  /** The signature to send next: this one or, at times, an older one of the same purchase. */
  #orOlder(record: Record, attempt: Attempt): Attempt {
    const { random } = this.#schedule;
    const { n, sends, attempts } = record;
    if (random.roll('older', n, sends) >= OLDER) return attempt;
    return attempts[Math.floor(random.roll('which', n, sends) * attempts.length)]!;
  }

  /**
   * At times fetches a payment's answer by its key. Over a socket, the answer then counts as written and the purchase
   * is over. If it is fetched directly from the charge, with a made-up key, nothing changes and the buyer continues.
   * @returns whether the purchase is over
   */
  async #pickUp(record: Record, attempt: Attempt): Promise<boolean> {
    const { n, sends, links } = record;
    const testServer = this.#schedule.testServer(n, sends, 'pick up');
    if (testServer.dead || this.#schedule.random.roll('pick up', n, sends) >= PICKED_UP) return false;
    const given = links.at(-1);
    let body: Buffer | undefined;
    if (record.overDoors && given) {
      const door = this.#schedule.random.roll('picked up at', n, sends) < 0.5 ? 'http' : 'mcp';
      const found = await pickUpThrough(door, this.#schedule.doorsOf(testServer).url, given.link);
      if (found?.status === 200) body = found.body;
    } else if (!record.overDoors) {
      const found = await Promise.race([
        testServer.charge.pickUp({ id: attempt.id, number: 0 }).catch(() => CUT),
        testServer.died,
      ]);
      if (found.kind === 'found' && found.outcome.kind === 'sold') body = found.outcome.answer.body;
    }
    if (!body) return false;
    record.bodies.add(body.toString());
    this.#trace(record, `picked up at ${attempt.id.slice(0, 8)}`);
    return record.overDoors;
  }

  /** The buyer gives up without the server's knowledge, and the answer is written where nobody reads it. */
  async #sendHidden(record: Record, attempt: Attempt): Promise<SendResult> {
    const { pending } = attempt;
    const sending = this.#sendOnce(record, { header: attempt.header, copy: 'hidden' });
    const sent = await this.#orGivenUp(record, attempt, sending);
    if (sent.kind !== 'given up')
      return this.#note(record, attempt, sent, pending).then(() => resultOf(sent));
    record.failures += 1;
    this.#afterwards(sending, late => {
      this.#trace(record, `nobody reads of ${attempt.id.slice(0, 8)}: ${shown(late)}`);
      if (late.kind === 'sold') this.#read(record, late);
    });
    return { sent, told: false };
  }

  #afterwards(sending: Promise<Sent>, end: (late: Sent) => void | Promise<void>): void {
    const left = sending.then(end);
    // `ended` reports failures.
    left.catch(() => {});
    this.#left.push(left);
  }

  /** The server notices the hang-up before it writes; an answer written to a closed connection would be known as lost. */
  async #hangUp(record: Record, attempt: Attempt, { least, most }: typeof NOTICED_MS): Promise<SendResult> {
    const { pending } = attempt;
    const gone = new AbortController();
    const sending = this.#sendOnce(record, { header: attempt.header, copy: 'hang-up', gone: gone.signal });
    const sent = await this.#orGivenUp(record, attempt, sending);
    if (sent.kind !== 'given up')
      return this.#note(record, attempt, sent, pending).then(() => resultOf(sent));
    record.failures += 1;
    const roll = this.#schedule.random.roll('noticed', record.n, record.sends);
    setTimeout(() => gone.abort(), least + roll * (most - least));
    this.#afterwards(sending, async late => {
      this.#trace(record, `lost of ${attempt.id.slice(0, 8)}: ${shown(late)}`);
      if (late.kind === 'sold') await late.sale.lost();
    });
    return { sent, told: false };
  }

  /**
   * Gives up some time after the ledger knows that this request is waiting; a request that is still on its way could arrive
   * after its successor.
   */
  async #orGivenUp(
    record: Record,
    attempt: Attempt,
    sending: Promise<Sent>,
  ): Promise<Sent | typeof GIVEN_UP> {
    const { reader, random } = this.#schedule;
    // A request with an identifier may wait for another payment of the same purchase.
    const waitedFor = record.identifier === undefined ? [attempt] : record.attempts;
    const callers = async (): Promise<number> => {
      const rows = await Promise.all(waitedFor.map(({ id }) => reader.find(id).catch(() => undefined)));
      return rows.reduce((sum, row) => sum + (row?.callers ?? 0), 0);
    };
    const before = await callers();
    let over = false;
    const ended = sending.finally(() => (over = true));
    while (!over && (await callers()) <= before) await pause(10);
    const patience = pause(random.roll('patience', record.n, record.sends) * PATIENCE_MS);
    return Promise.race([ended, patience.then(() => GIVEN_UP)]);
  }

  /** @param pending whether the buyer knew, when it sent this, that a settlement was open */
  async #note(record: Record, attempt: Attempt, sent: Sent, pending: boolean): Promise<void> {
    if (sent.kind === 'sold') record.bodies.add(sent.answer.body.toString());
    if (sent.kind === 'unavailable' && sent.receipt?.errorReason === 'settlement_pending')
      attempt.pending = true;
    // The newest caller waited as long as a call may be held: the run ends as if it had hung up.
    if (sent.kind === 'unavailable' && sent.error.startsWith(inProgress().error)) record.failures += 1;
    if (sent.kind === 'unavailable' && FACILITATOR_FAILED.test(sent.error)) this.#excuse(record, attempt);
    if (sent.kind !== 'refused') return;
    record.refusals.push(sent.error);
    const row = pending ? await targetOf(this.#schedule.reader, attempt.id) : undefined;
    if (!row || row.state === 'released') return;
    const story = await storyOf(this.#schedule.reader, record);
    this.#schedule.violations.push(
      `a 402 after an open settlement without proof: ${sent.error} (${attempt.id.slice(0, 8)} is ${row.state}) ${story}`,
    );
  }

  /**
   * Excuses one more run, because the facilitator failed during or after the work, or was considered down by then. A run is
   * excused once, however many copies get that answer. A failure before the work excuses nothing.
   */
  #excuse(record: Record, { id }: Attempt): void {
    const lost = `${id} ${this.#schedule.runs.get(id)}`;
    if (!this.#schedule.runs.has(id) || this.#excused.has(lost)) return;
    this.#excused.add(lost);
    record.failures += 1;
  }

  async #work(record: Record, id: string): Promise<Success> {
    return jsonAnswer((await this.#summary(record, id)).body);
  }

  /** Every run returns a different answer, so that a schedule notices if a delivered answer was replaced. */
  async #summary(record: Record, id: string): Promise<{ body: { summary: string }; run: number }> {
    const run = this.#schedule.ran(id);
    await pause(this.#schedule.random.roll('work', record.n, run) * 60);
    return { body: { summary: `${record.text}, ${id}, run ${run}` }, run };
  }

  /** The handler behind HTTP and MCP. At times it returns a header that can't be sent, which must not be charged. */
  readonly workOverDoors: DoorWork = async id => {
    const record = this.#schedule.byId.get(id);
    if (!record) throw new Error(`work for an unknown payment ${id}`);
    const { random } = this.#schedule;
    const { body, run } = await this.#summary(record, id);
    if (random.roll('header fault', record.n, record.attempts.length, run) >= HEADER_FAULTS)
      return { status: 200, body };
    record.failures += 1;
    const headers = random.pick(UNSENDABLE, 'header', record.n, record.attempts.length, run);
    this.#trace(record, `a handler answers with ${JSON.stringify(headers)}`);
    return { status: 200, body, headers };
  };

  #newRecord(n: number, payer: Keypair): Record {
    const { random } = this.#schedule;
    const operation = n % 5 === 4 ? BRAND : SUMMARIZE;
    return {
      n,
      payer,
      text: `purchase ${n}`,
      operation,
      identifier: random.roll('identified', n) < IDENTIFIED ? `purchase-of-schedule-${n}` : undefined,
      overDoors: operation === SUMMARIZE && random.roll('over doors', n) < OVER_DOORS,
      links: [],
      attempts: [],
      sends: 0,
      bodies: new Set(),
      refusals: [],
      failures: 0,
      trace: [],
    };
  }

  #trace({ trace }: Record, what: string): void {
    trace.push(`${Date.now()} ${what}`);
  }
}

/**
 * Whether a server may believe that a caller is still waiting although the buyer gave up, or that an answer was written
 * although the buyer did not read it: over a socket, bytes count as written once the operating system has accepted
 * them.
 */
function isHidden({ overDoors }: Record, way: Way, sent: Sent | typeof GIVEN_UP): boolean {
  if (sent === GIVEN_UP) return way === 'hidden' || overDoors;
  return overDoors && sent.kind === 'cut';
}

function resultOf(sent: Sent): SendResult {
  return { sent, told: sent.kind === 'unavailable' || sent.kind === 'refused' };
}

function shown(sent: Sent | typeof GIVEN_UP): string {
  if ('answer' in sent) return `answer ${sent.answer.status}`;
  return 'error' in sent ? `${sent.kind}, ${sent.error}` : sent.kind;
}
