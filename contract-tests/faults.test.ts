import { randomInt } from 'node:crypto';
import type { Keypair } from '@solana/web3.js';
import type { Payment as Row } from '../src/ledger/store.js';
import {
  askedFor,
  BRAND,
  Cell,
  Dice,
  jsonAnswer,
  memoryPlace,
  pause,
  rpcFault,
  settleFault,
  signed,
  Stage,
  SUMMARIZE,
  until,
  type LedgerFaultKind,
  type LedgerFaults,
  type Purchase,
  type RpcFault,
  type Sent,
  type SettleFault,
  type Shop,
} from './support/faults.js';
import { PLACES, sqlitePlace, type Place } from './support/places.js';

const REPLAYED = process.env['FAULT_SEED'];
const SCHEDULES = Number(process.env['FAULT_SCHEDULES'] ?? (REPLAYED === undefined ? 8 : 1));
const PAYERS = 3;
const PURCHASES = 10;
const CALM_AFTER_MS = 2_500;
const MOVES = [
  'claim',
  'watch',
  'renew',
  'leave',
  'saveAnswer',
  'settle',
  'askAgain',
  'deliver',
  'owe',
  'release',
  'adopt',
  'free',
  'forget',
  'hold',
  'written',
];
const SETTLED = ['delivered', 'owed', 'refunded'];

type Attempt = { id: string; payment: ReturnType<typeof signed>['payment']; pending: boolean };
type Record = Purchase & {
  n: number;
  attempts: Attempt[];
  sends: number;
  bodies: Set<string>;
  refusals: string[];
  /** How often its ledger failed, which excuses one more run each. */
  failures: number;
  last?: Sent;
};

/** One run of everything that can go wrong, decided by a seed. */
class Schedule {
  readonly dice: Dice;
  readonly #stage: Stage;
  readonly #place: Place;
  readonly #servers: number;
  readonly #lying: boolean;
  readonly #records: Record[] = [];
  readonly #byId = new Map<string, Record>();
  readonly #asks = new Map<string, number>();
  readonly #calls = new Map<string, number>();
  readonly #lied = new Set<string>();
  readonly #violations: string[] = [];
  #calm = false;
  #over = false;
  /** How often the work was done, by payment; an order's by its request. */
  readonly #runs = new Map<string, number>();
  #deaths = 0;
  #cell!: Cell;
  #shops: Shop[] = [];

  constructor(stage: Stage, place: Place, servers: number, seed: number) {
    this.dice = new Dice(seed);
    this.#stage = stage;
    this.#place = place;
    this.#servers = servers;
    this.#lying = this.dice.roll('lying') < 0.25;
  }

  async run(): Promise<void> {
    this.#cell = await Cell.open(this.#stage, this.#place.url);
    try {
      const payers = await this.#stage.payers(PAYERS);
      this.#shops = await Promise.all(Array.from({ length: this.#servers }, () => this.#open()));
      // A ledger that has never seen the chain has to believe the first server it asks.
      this.#misbehave();
      const calm = setTimeout(() => this.#calmDown(), CALM_AFTER_MS);
      const reviving = this.#revive();
      await Promise.all(Array.from({ length: PURCHASES }, (_, n) => this.#purchase(n, payers[n % PAYERS]!)));
      clearTimeout(calm);
      this.#calmDown();
      await this.#settleDown();
      await this.#check(payers);
      this.#over = true;
      await reviving;
    } finally {
      this.#calmDown();
      this.#over = true;
      await this.#cell.close();
      await this.#place.remove();
    }
    if (this.#violations.length > 0)
      throw new Error(`FAULT_SEED=${this.dice.seed}\n  ${this.#violations.join('\n  ')}`);
  }

  #misbehave(): void {
    this.#cell.onSettle(async ask => {
      const id = askedFor(ask.body);
      const nth = (this.#asks.get(id) ?? 0) + 1;
      this.#asks.set(id, nth);
      const record = this.#byId.get(id);
      const attempt = record?.attempts.findIndex(one => one.id === id) ?? 0;
      const kind = this.#calm ? 'none' : this.#settleFaultOf(record?.n ?? 0, attempt, nth);
      if (kind === 'lie') this.#lied.add(id);
      await settleFault(kind)(ask);
    });
    let calls = 0;
    this.#cell.rpc.intervene(ask => {
      const kind = this.#calm ? 'none' : this.dice.pick<RpcFault>(RPC_FAULTS, 'rpc', ++calls);
      return rpcFault(kind, this.#stage)(ask);
    });
  }

  #settleFaultOf(...about: number[]): SettleFault {
    const lies = [this.#lying ? 6 : 0, 'lie'] as const;
    return this.dice.pick<SettleFault>([...SETTLE_FAULTS, lies], 'settle', ...about);
  }

  /** At every move of the ledger something may happen, once per payment, move and server life. */
  readonly #ledgerFaults: LedgerFaults = (method, id) => {
    if (this.#calm || !MOVES.includes(method)) return undefined;
    const record = id === undefined ? undefined : this.#byId.get(id);
    const key = `${method} ${record?.n ?? '-'}`;
    const nth = (this.#calls.get(key) ?? 0) + 1;
    this.#calls.set(key, nth);
    const fault = this.dice.pick<LedgerFaultKind | undefined>(LEDGER_FAULTS, 'ledger', key, nth);
    if (fault?.startsWith('kill')) this.#deaths += 1;
    else if (fault && record) record.failures += 1;
    return fault;
  };

  #open(): Promise<Shop> {
    return this.#cell.shop({ faults: this.#ledgerFaults, ordered: request => void this.#ran(request) });
  }

  #ran(what: string): number {
    const run = (this.#runs.get(what) ?? 0) + 1;
    this.#runs.set(what, run);
    return run;
  }

  async #work(record: Record, id: string): Promise<ReturnType<typeof jsonAnswer>> {
    const run = this.#ran(id);
    await pause(this.dice.roll('work', record.n, run) * 60);
    // Another run is another answer, so that one that replaced an answer that was handed out is noticed.
    return jsonAnswer({ summary: `${record.text}, ${id}, run ${run}` });
  }

  /** Starts a new server wherever one has died. */
  async #revive(): Promise<void> {
    while (!this.#over) {
      for (const [n, shop] of this.#shops.entries()) {
        if (!shop.dead) continue;
        await shop.close();
        this.#shops[n] = await this.#open();
      }
      await pause(20);
    }
  }

  /** A process that dies loses its connections at once; one that is only played dead, when it is cleared away. */
  async #cleared(): Promise<void> {
    const dead = this.#shops.filter(shop => shop.dead);
    while (dead.some(shop => this.#shops.includes(shop))) await pause(10);
  }

  #shop(...about: (string | number)[]): Shop {
    return this.#shops[Math.floor(this.dice.roll('server', ...about) * this.#shops.length)]!;
  }

  #sign(record: Record): Attempt {
    const { id, payment } = signed(this.#stage, this.#shops[0]!, record);
    const attempt = { id, payment, pending: false };
    record.attempts.push(attempt);
    this.#byId.set(id, record);
    return attempt;
  }

  /** A client: sends the same payment again, or signs anew after a 503 or a refusal, until it has its answer. */
  async #purchase(n: number, payer: Keypair): Promise<void> {
    const operation = n % 5 === 4 ? BRAND : SUMMARIZE;
    const record: Record = {
      n,
      payer,
      text: `purchase ${n}`,
      operation,
      attempts: [],
      sends: 0,
      bodies: new Set(),
      refusals: [],
      failures: 0,
    };
    this.#records.push(record);
    await pause(this.dice.roll('begin', n) * 1_000);
    let attempt = this.#sign(record);
    for (const end = Date.now() + 150_000; Date.now() < end; await pause(120)) {
      const sent = await this.#sendCopies(record, attempt);
      record.last = sent;
      if (sent.kind === 'answer' && sent.answer.status === 200) {
        // The answer reaches the client, or its connection breaks in the last moment.
        if (!('sale' in sent)) throw new Error('an answer was sold without a receipt');
        if (this.dice.roll('written', n, record.sends) < 0.8) sent.sale.written();
        else await sent.sale.lost();
        return;
      }
      if (sent.kind === 'cut') await this.#cleared();
      const stock = this.dice.roll('anew', n, record.sends) < 0.5;
      if (sent.kind === 'refused' || (sent.kind !== 'answer' && stock)) attempt = this.#sign(record);
    }
    this.#violations.push(
      `purchase ${n} never got an answer: ${record.sends} ${JSON.stringify(record.last)} ${JSON.stringify(record.refusals)} ${await this.#story(record)}`,
    );
  }

  /** Sends one payment to one server, or copies of it to several at once. */
  async #sendCopies(record: Record, attempt: Attempt): Promise<Sent> {
    const { n } = record;
    record.sends += 1;
    const copies = this.dice.roll('copies', n, record.sends) < 0.2 ? 3 : 1;
    const sents = await Promise.all(
      Array.from({ length: copies }, (_, copy) =>
        this.#shop(n, record.sends, copy).send(
          { payment: attempt.payment, text: record.text, operation: record.operation ?? SUMMARIZE },
          { work: () => this.#work(record, attempt.id) },
        ),
      ),
    );
    for (const sent of sents) await this.#note(record, attempt, sent);
    return (
      sents.find(sent => sent.kind === 'answer') ?? sents.find(sent => sent.kind !== 'refused') ?? sents[0]!
    );
  }

  async #note(record: Record, attempt: Attempt, sent: Sent): Promise<void> {
    if (sent.kind === 'answer' && sent.answer.status === 200) record.bodies.add(sent.answer.body.toString());
    if (sent.kind === 'unavailable' && sent.receipt?.errorReason === 'settlement_pending')
      attempt.pending = true;
    if (sent.kind !== 'refused') return;
    record.refusals.push(sent.error);
    const row = attempt.pending ? await this.#target(attempt.id) : undefined;
    if (row && row.state !== 'released')
      this.#violations.push(`a 402 after an open settlement without proof: ${sent.error} (${row.state})`);
  }

  /** The row of a payment, or of the one whose answer it redeems. */
  async #target(id: string): Promise<Row | undefined> {
    const { books } = this.#shops.find(shop => !shop.dead) ?? this.#shops[0]!;
    const row = await books.find(id).catch(() => undefined);
    return row?.aliasOf ? books.find(row.aliasOf).catch(() => undefined) : row;
  }

  #calmDown(): void {
    this.#calm = true;
  }

  /** Everything undecided is decided, with all servers up and everybody behaving. */
  async #settleDown(): Promise<void> {
    const { books } = this.#shops[0]!;
    await until(
      'nothing is in doubt',
      async () => {
        const settling = await books.list({ state: 'settling' });
        const released = await books.list({ state: 'released' });
        return settling.length === 0 && released.every(row => row.auditedAt !== null);
      },
      30_000,
    );
  }

  async #check(payers: Keypair[]): Promise<void> {
    const { books } = this.#shops[0]!;
    const landed = this.#stage.landed(payers);
    const rows = (await Promise.all([...this.#byId.keys()].map(id => books.find(id)))).filter(
      row => row !== undefined,
    );
    const sold = rows.filter(row => SETTLED.includes(row.state) && row.aliasOf === null);
    const settled = new Set(sold.map(({ id }) => id));
    const fault = (what: string): void => void this.#violations.push(what);
    for (const [id, times] of landed) {
      if (times > 1) fault(`${id} landed ${times} times`);
      if (!settled.has(id))
        fault(`${id} landed and is ${rows.find(row => row.id === id)?.state ?? 'unknown'}`);
    }
    for (const { id, state } of sold)
      if (!landed.has(id) && !this.#lied.has(id)) fault(`${id} is ${state} and never landed`);
    for (const row of rows) if (row.runs > 3) fault(`${row.id} had ${row.runs} runs`);
    for (const record of this.#records) {
      const transfers = record.attempts.filter(({ id }) => landed.has(id)).length;
      if (transfers > 1)
        fault(`purchase ${record.n} was paid ${transfers} times: ${await this.#story(record)}`);
      if (record.bodies.size > 1) fault(`purchase ${record.n} got ${record.bodies.size} different answers`);
      this.#checkRuns(record);
    }
    await this.#redeliver(sold);
  }

  /** The work of a payment is done once; once more only where a server died or the ledger failed it. */
  #checkRuns(record: Record): void {
    const excused = 1 + record.failures + this.#deaths;
    const request = JSON.stringify({ text: record.text });
    const keys = record.operation === BRAND ? [request] : record.attempts.map(({ id }) => id);
    for (const key of keys) {
      const runs = this.#runs.get(key) ?? 0;
      if (runs > excused)
        this.#violations.push(`${key} of purchase ${record.n} was worked on ${runs} times, not ${excused}`);
    }
  }

  /** Every settled payment has its answer, the same bytes from every server. */
  async #redeliver(sold: Row[]): Promise<void> {
    for (const { id } of sold) {
      const record = this.#byId.get(id)!;
      const attempt = record.attempts.find(one => one.id === id)!;
      const bodies = new Set<string>();
      for (const n of this.#shops.keys()) {
        const again = (): Promise<Sent> =>
          this.#shops[n]!.send({
            payment: attempt.payment,
            text: record.text,
            operation: record.operation ?? SUMMARIZE,
          });
        let sent = await again();
        // A killed worker's order is taken up when its lease ends, and a kill may come late.
        for (let times = 0; times < 20 && ['unavailable', 'cut'].includes(sent.kind); times++) {
          await pause(100);
          sent = await again();
        }
        if (sent.kind === 'answer' && sent.answer.status === 200) bodies.add(sent.answer.body.toString());
        else if (
          sent.kind !== 'unavailable' ||
          record.operation !== BRAND ||
          (await this.#target(id))?.state !== 'owed'
        )
          this.#violations.push(`settled payment ${id} of purchase ${record.n}: ${JSON.stringify(sent)}`);
      }
      if (bodies.size > 1)
        this.#violations.push(`purchase ${record.n} was redelivered in ${bodies.size} forms`);
    }
  }

  async #story({ attempts }: Record): Promise<string> {
    const rows = await Promise.all(attempts.map(({ id }) => this.#shops[0]!.books.find(id)));
    return JSON.stringify(
      rows.map((row, n) => [
        attempts[n]!.id.slice(0, 8),
        attempts[n]!.pending ? 'pending' : '',
        row && [
          row.state,
          row.aliasOf?.slice(0, 8),
          row.asks,
          row.callerUntil,
          row.createdAt,
          row.settlingAt,
          row.settledAt,
          row.writtenAt,
        ],
      ]),
    );
  }
}

const SETTLE_FAULTS: [number, SettleFault][] = [
  [10, 'none'],
  [2, 'slow'],
  [3, 'dropAfter'],
  [3, 'dropBefore'],
  [2, 'errorAfter'],
  [2, 'errorBefore'],
  [2, 'twice'],
  [2, 'duplicate'],
  [2, 'simulationFailed'],
  [2, 'sendThrew'],
  [1, 'garbled'],
];
const RPC_FAULTS: [number, RpcFault][] = [
  [60, 'none'],
  [10, 'slow'],
  [8, 'dropAfter'],
  [8, 'error'],
  [8, 'lag'],
  [8, 'noRow'],
];
const LEDGER_FAULTS: [number, LedgerFaultKind | undefined][] = [
  [170, undefined],
  [4, 'fail'],
  [4, 'failAfter'],
  [4, 'stall'],
  [2, 'killBefore'],
  [2, 'killAfter'],
];

for (const { name, make } of PLACES) {
  const suite = make ? describe : describe.skip;
  suite(
    `promise 10: whatever fails, money on chain is settled rows, and every settled row is delivered or owed (${name})`,
    function () {
      this.timeout(300_000);
      let stage: Stage;
      before(async () => {
        stage = await Stage.open();
      });
      after(() => stage.close());

      const sideBySide = name === 'PostgreSQL' ? 2 : 3;
      const first = REPLAYED === undefined ? randomInt(2 ** 31) : Number(REPLAYED);
      const seeds = Array.from({ length: SCHEDULES }, (_, n) => first + n);
      for (let n = 0; n < seeds.length; n += sideBySide) {
        const some = seeds.slice(n, n + sideBySide);
        it(`schedules FAULT_SEED=${some.join(', FAULT_SEED=')}`, async () => {
          const servers = name === 'PostgreSQL' ? 3 : 1;
          const runs = some.map(async seed =>
            new Schedule(stage, await (make === sqlitePlace ? memoryPlace : make!)(), servers, seed).run(),
          );
          const failures = (await Promise.allSettled(runs)).filter(run => run.status === 'rejected');
          const reasons = failures.map(({ reason }) => (reason as Error).message);
          if (reasons.length > 0) throw new Error(reasons.join('\n'));
        });
      }
    },
  );
}
