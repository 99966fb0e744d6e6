import type { Keypair } from '@solana/web3.js';
import type { Transport } from '../../src/observe/observer.js';
import { callThrough, type Seen } from './door-calls.js';
import { Doors } from './doors.js';
import { BuyerSide } from './schedule-buyers.js';
import { faultsIn } from './schedule-oracle.js';
import { CUT, TestCluster, signed, signedForMpp, type TestServer } from './test-server.js';
import type { SeededRandom } from './seeded-random.js';
import {
  askedFor,
  pause,
  rpcFault,
  settleFault,
  until,
  within,
  type LedgerFaultKind,
  type LedgerFaults,
  type RpcFault,
  type SettleFault,
} from './faults.js';
import type { LedgerPlace } from './ledger-places.js';
import type { Attempt, Record } from './schedule-record.js';
import type { TestChain } from './test-chain.js';

const PAYERS = 3;
const PURCHASES = 10;
/** The share of payments without an identifier that are made over MPP. */
const BY_MPP = 0.4;
const CALM_AFTER_MS = 2_500;
/** The time limits for a whole schedule and for the start of a new server, on a slow machine. */
const LONGEST_MS = 240_000;
const OPENED_WITHIN_MS = 30_000;
/** The servers' prices, as multiples of the contract's. */
const PRICE_FACTORS = [1n, 2n, 3n] as const;
const MOVES = [
  'claim',
  'addCaller',
  'renewCallers',
  'removeCaller',
  'saveAnswer',
  'settle',
  'askAgain',
  'deliver',
  'owe',
  'release',
  'adopt',
  'freeClaim',
  'deleteClaim',
  'extendLease',
  'markWritten',
];
/** The embedded facilitator's calls to the chain; its server may die before or after each of them. */
const CHAIN_CALLS = ['simulate', 'send', 'signatureStatuses', 'blockhashLives', 'account'];
const CHAIN_FAULTS: [number, LedgerFaultKind | undefined][] = [
  [80, undefined],
  [2, 'stall'],
  [2, 'killBefore'],
  [2, 'killAfter'],
];
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
  [2, 'tooMany'],
  [1, 'tooManyAfter'],
];
const RPC_FAULTS: [number, RpcFault][] = [
  [60, 'none'],
  [10, 'slow'],
  [8, 'dropAfter'],
  [8, 'error'],
  [8, 'lag'],
  [8, 'noRow'],
];
/** With the embedded facilitator, this RPC server also gets the transactions to send. */
const OWN_RPC_FAULTS: [number, RpcFault][] = [...RPC_FAULTS, [20, 'lost']];
const LEDGER_FAULTS: [number, LedgerFaultKind | undefined][] = [
  [170, undefined],
  [4, 'fail'],
  [4, 'failAfter'],
  [4, 'stall'],
  [2, 'killBefore'],
  [2, 'killAfter'],
];

/** The totals of a schedule without violations. `landed`: how many payments landed on the chain; `deaths`: how many servers died. */
export type Totals = { purchases: number; answered: number; landed: number; deaths: number };

/**
 * One run of everything that can go wrong, determined by a seed: servers, faults and buyers. The servers of a cluster
 * have different prices and fee payers.
 */
export class Schedule {
  readonly random: SeededRandom;
  readonly testChain: TestChain;
  readonly records: Record[] = [];
  readonly byId = new Map<string, Record>();
  /** Payments for which the facilitator reported a settlement that did not happen. */
  readonly lied = new Set<string>();
  readonly violations: string[] = [];
  /** How many times the work of each payment was done; for an order, counted by its request. */
  readonly runs = new Map<string, number>();
  deaths = 0;
  over = false;
  testServers: TestServer[] = [];
  readonly #doors = new WeakMap<TestServer, Doors>();
  readonly #allDoors: Doors[] = [];
  readonly #place: LedgerPlace;
  readonly #servers: number;
  readonly #lying: boolean;
  /** If set, the servers are their own facilitators, with this key. */
  readonly #own: Keypair | undefined;
  readonly #asks = new Map<string, number>();
  readonly #calls = new Map<string, number>();
  #calm = false;
  #opened = 0;
  #cluster!: TestCluster;
  readonly #buyers = new BuyerSide(this);
  #stage = 'servers opened';
  #landed = new Map<string, number>();

  constructor(
    testChain: TestChain,
    place: LedgerPlace,
    servers: number,
    random: SeededRandom,
    own: Keypair | undefined,
  ) {
    this.random = random;
    this.#own = own;
    this.testChain = testChain;
    this.#place = place;
    this.#servers = servers;
    this.#lying = random.roll('lying') < 0.25;
  }

  /** If the schedule fails, rejects with its seed and with the violations or with what did not happen in time. */
  async run(): Promise<Totals> {
    this.#cluster = await TestCluster.open(this.testChain, this.#place.url);
    try {
      await within(LONGEST_MS, 'the end of the schedule', this.#course());
    } catch (error) {
      this.violations.push(`${(error as Error).message}, while ${this.#stage}`);
    }
    this.#calm = true;
    this.over = true;
    const closed = Promise.all(this.#allDoors.map(doors => doors.close())).then(() => this.#cluster.close());
    await within(OPENED_WITHIN_MS, 'its servers to close', closed).catch((error: Error) =>
      this.violations.push(error.message),
    );
    await this.#place.remove();
    if (this.violations.length > 0)
      throw new Error(`FAULT_SEED=${this.random.seed}\n  ${this.violations.join('\n  ')}`);
    const { records, deaths } = this;
    const answered = records.filter(({ bodies }) => bodies.size > 0).length;
    return { purchases: records.length, answered, landed: this.#landed.size, deaths };
  }

  async #course(): Promise<void> {
    const payers = await this.testChain.payers(PAYERS);
    this.testServers = await Promise.all(Array.from({ length: this.#servers }, () => this.#open()));
    // Faults begin only now, because a ledger without any record of the chain has to trust the first RPC server that it asks.
    this.#misbehave();
    await Promise.all([this.#sell(payers), this.#revive(), this.#buyers.replayLanded(payers)]);
  }

  async #sell(payers: Keypair[]): Promise<void> {
    this.#stage = 'buyers were not answered yet';
    const calm = setTimeout(() => (this.#calm = true), CALM_AFTER_MS);
    const numbers = Array.from({ length: PURCHASES }, (_, n) => n);
    await Promise.all(numbers.map(n => this.#buyers.purchase(n, payers[n % PAYERS]!)));
    clearTimeout(calm);
    this.#calm = true;
    this.#stage = 'requests whose buyers had left were under way';
    await this.#buyers.ended();
    this.#stage = 'payments were unresolved';
    await this.#settleDown();
    this.#stage = 'the outcome was checked';
    this.#landed = this.testChain.landed(payers);
    this.violations.push(...(await faultsIn(this, this.#landed)));
    this.over = true;
  }

  /**
   * Once the faults are over, buyers stay with the server whose price they were offered; on a slow machine they would
   * not finish otherwise.
   */
  testServer(...about: (string | number)[]): TestServer {
    if (this.#calm) return this.testServers.find(testServer => !testServer.dead) ?? this.testServers[0]!;
    return this.testServers[Math.floor(this.random.roll('server', ...about) * this.testServers.length)]!;
  }

  /** The ledger without the injected faults. */
  get reader(): TestServer['reader'] {
    return (this.testServers.find(testServer => !testServer.dead) ?? this.testServers[0]!).reader;
  }

  /** A buyer signs the offer of one of the servers. */
  sign(record: Record): Attempt {
    const { operation, attempts, identifier } = record;
    const offering = this.testServer('offer', record.n, attempts.length);
    const purchase = { ...record, operation };
    const byMpp = this.random.roll('by MPP', record.n, attempts.length) < BY_MPP;
    const made =
      identifier !== undefined || !byMpp
        ? signed(this.testChain, offering, purchase, identifier === undefined ? {} : { identifier })
        : signedForMpp(this.testChain, offering, purchase);
    const { id, header, landedHeader, amount } = made;
    const attempt = { id, header, landedHeader, amount, pending: false };
    attempts.push(attempt);
    this.byId.set(id, record);
    return attempt;
  }

  ran(what: string): number {
    const run = (this.runs.get(what) ?? 0) + 1;
    this.runs.set(what, run);
    return run;
  }

  /** Waits until dead servers are replaced, because a simulated death breaks connections only then. */
  async cleared(): Promise<void> {
    const dead = this.testServers.filter(testServer => testServer.dead);
    await until(
      'servers that died are replaced',
      () => !dead.some(testServer => this.testServers.includes(testServer)),
    );
  }

  #misbehave(): void {
    this.#cluster.onSettle(async ask => {
      const id = askedFor(ask.body);
      const nth = (this.#asks.get(id) ?? 0) + 1;
      this.#asks.set(id, nth);
      const record = this.byId.get(id);
      const attempt = record?.attempts.findIndex(one => one.id === id) ?? 0;
      const kind = this.#calm ? 'none' : this.#settleFaultOf(record?.n ?? 0, attempt, nth);
      if (kind === 'lie') this.lied.add(id);
      await settleFault(kind)(ask);
    });
    let calls = 0;
    const faults = this.#own ? OWN_RPC_FAULTS : RPC_FAULTS;
    this.#cluster.rpc.intervene(ask => {
      const kind = this.#calm ? 'none' : this.random.pick<RpcFault>(faults, 'rpc', ++calls);
      return rpcFault(kind, this.testChain)(ask);
    });
  }

  #settleFaultOf(...about: number[]): SettleFault {
    const lies = [this.#lying ? 6 : 0, 'lie'] as const;
    return this.random.pick<SettleFault>([...SETTLE_FAULTS, lies], 'settle', ...about);
  }

  /** Injects at most one fault into each call that changes a state in the ledger. */
  readonly #ledgerFaults: LedgerFaults = (method, id) => {
    if (this.#calm) return undefined;
    if (CHAIN_CALLS.includes(method)) return this.#chainFault(method);
    if (!MOVES.includes(method)) return undefined;
    const record = id === undefined ? undefined : this.byId.get(id);
    const key = `${method} ${record?.n ?? '-'}`;
    const nth = (this.#calls.get(key) ?? 0) + 1;
    this.#calls.set(key, nth);
    const fault = this.random.pick<LedgerFaultKind | undefined>(LEDGER_FAULTS, 'ledger', key, nth);
    // No stall here: a renewal that arrives so late would hide the hang-up that follows it.
    if (fault === 'stall' && method === 'renewCallers') return undefined;
    if (fault?.startsWith('kill')) this.deaths += 1;
    else if (fault && record) record.failures += 1;
    return fault;
  };

  #chainFault(method: string): LedgerFaultKind | undefined {
    const nth = (this.#calls.get(method) ?? 0) + 1;
    this.#calls.set(method, nth);
    const fault = this.random.pick<LedgerFaultKind | undefined>(CHAIN_FAULTS, 'chain', method, nth);
    if (fault?.startsWith('kill')) this.deaths += 1;
    return fault;
  }

  /** A server's HTTP and MCP interfaces. */
  doorsOf(testServer: TestServer): Doors {
    const doors = this.#doors.get(testServer);
    if (!doors) throw new Error('a server without HTTP and MCP');
    return doors;
  }

  /** Sends a purchase's call over HTTP or MCP. */
  async callOver(
    door: Transport,
    testServer: TestServer,
    { text, operation }: Pick<Record, 'text' | 'operation'>,
    header: string,
    gone = new AbortController().signal,
  ): Promise<Seen> {
    if (testServer.dead) return { sent: CUT, link: undefined };
    const call = { path: operation.path, tool: operation.id, body: { text }, header };
    return callThrough(door, this.doorsOf(testServer).url, call, gone);
  }

  async #open(): Promise<TestServer> {
    const testServer = await this.#openServer();
    const doors = await Doors.open(testServer, (payment, body) => this.#buyers.workOverDoors(payment, body));
    this.#doors.set(testServer, doors);
    this.#allDoors.push(doors);
    return testServer;
  }

  #openServer(): Promise<TestServer> {
    const nth = ++this.#opened;
    const { feePayers } = this.testChain;
    return this.#cluster.testServer({
      faults: this.#ledgerFaults,
      ordered: request => void this.ran(request),
      priceFactor: PRICE_FACTORS[Math.floor(this.random.roll('price', nth) * PRICE_FACTORS.length)]!,
      ...(this.#own ? { own: this.#own } : {}),
      feePayer: feePayers[Math.floor(this.random.roll('fee payer', nth) * feePayers.length)]!,
    });
  }

  /** Starts a new server wherever one has died. */
  async #revive(): Promise<void> {
    while (!this.over) {
      for (const [n, testServer] of this.testServers.entries()) {
        if (!testServer.dead) continue;
        const opened = testServer.close().then(() => this.#open());
        this.testServers[n] = await within(OPENED_WITHIN_MS, 'a new server in place of a dead one', opened);
      }
      await pause(20);
    }
  }

  /** Resolves every unresolved payment, with all servers running and no further faults. */
  async #settleDown(): Promise<void> {
    await this.cleared();
    const { reader } = this;
    await until(
      'nothing is unresolved',
      async () => {
        const settling = await reader.list({ state: 'settling' });
        const released = await reader.list({ state: 'released' });
        return settling.length === 0 && released.every(row => row.auditedAt !== null);
      },
      30_000,
    );
  }
}
