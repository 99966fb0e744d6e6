import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createAssociatedTokenAccountInstruction,
  createTransferCheckedInstruction,
  getAssociatedTokenAddressSync,
} from '@solana/spl-token';
import { Connection, Keypair, PublicKey, TransactionMessage, VersionedTransaction } from '@solana/web3.js';
import { loadContract, type PricedOperation } from '../../src/contract.js';
import { LedgerFault } from '../../src/ledger/fault.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { Charge } from '../../src/payments/charge.js';
import { Desk } from '../../src/payments/desk.js';
import type { Payment } from '../../src/payments/examine.js';
import { httpFacilitator } from '../../src/payments/facilitator.js';
import { fingerprint } from '../../src/payments/fingerprint.js';
import { boundedHistory, Heights } from '../../src/payments/heights.js';
import { requirementsOf, type Terms } from '../../src/payments/offer.js';
import { Orders } from '../../src/payments/orders.js';
import type { Log, Outcome, Success } from '../../src/payments/outcome.js';
import type { PaidCall } from '../../src/payments/paid-call.js';
import { confirmTransfer } from '../../src/payments/proof.js';
import { Reconciler } from '../../src/payments/reconciler.js';
import { trustIn, type KeptTrust } from '../../src/payments/trust.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js';
import { createChain } from '../../src/upstreams/solana/rpc.js';
import { readView } from '../../src/watch.js';
import { craftPayment, v2Header, withIdentifier, type Recipe } from './craft.js';
import type { Place } from './places.js';
import { countingProxy, type CountingProxy, type Intervention } from './proxy.js';

const { paid } = loadContract(new URL('../../../openapi.yaml', import.meta.url));
export const operationOf = (id: string): PricedOperation => {
  const found = paid.find(operation => operation.id === id);
  if (!found) throw new Error(`no operation ${id}`);
  return found;
};
export const SUMMARIZE = operationOf('summarize');
export const BRAND = operationOf('brandFeedback');

/** A slot of this length lets a payment be proven absent (claim height + 300, finalized) within eleven seconds. */
const SLOT_MS = 30;
/** What these fast chains make at most, with room to spare. */
const STAGE_BLOCKS_PER_SECOND = 200;
/** The view of the chain must be as fresh, in slots, as in production. */
const VIEW_MS = 100;
const DEADLINES = { supportedMs: 2_000, verifyMs: 4_000, settleMs: 4_000 };
const LEASE_MS = 10_000;
const ASK_AGAIN_AFTER_MS = 400;
const HOLD_MS = 1_000;
const TIMING = {
  interval: 150,
  lease: 12_000,
  look: 3_000,
  rest: 100,
  longestRest: 500,
  auditAfter: 300,
  watchBlocks: 60,
};
const CONFIRM = { deadlineMs: 1_500, pollMs: 50 };

/** A real local chain whose time is fast, and money for payers. Schedules that run side by side share one. */
export class Stage {
  readonly sandbox: Sandbox;
  readonly connection: Connection;
  readonly terms: Terms;
  readonly #folder: string;
  readonly #funder: Keypair;

  private constructor(folder: string, sandbox: Sandbox, funder: Keypair) {
    this.#folder = folder;
    this.sandbox = sandbox;
    this.#funder = funder;
    this.connection = new Connection(sandbox.rpc.url, 'confirmed');
    const { network, v1Network, usdcMint, payTo } = sandbox.info;
    this.terms = { network, v1Network, asset: usdcMint, payTo, publicUrl: 'http://127.0.0.1:8402' };
  }

  static async open(slotMs = SLOT_MS): Promise<Stage> {
    const folder = await memoryFolder();
    const sandbox = await startSandbox({ stateDir: folder, rpcPort: 0, facilitatorPort: 0, slotMs });
    const secret = JSON.parse(await readFile(join(folder, 'buyer.json'), 'utf8')) as number[];
    return new Stage(folder, sandbox, Keypair.fromSecretKey(Uint8Array.from(secret)));
  }

  async close(): Promise<void> {
    await this.sandbox.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  tokenAccount(owner: PublicKey): PublicKey {
    return getAssociatedTokenAddressSync(new PublicKey(this.terms.asset), owner, true);
  }

  /** New payers with this much USDC each, in atomic units. */
  async payers(count: number, amount = 20_000_000n): Promise<Keypair[]> {
    const payers = Array.from({ length: count }, () => Keypair.generate());
    const mint = new PublicKey(this.terms.asset);
    const { publicKey } = this.#funder;
    const source = this.tokenAccount(publicKey);
    for (const payer of payers) {
      const account = this.tokenAccount(payer.publicKey);
      await this.send([
        createAssociatedTokenAccountInstruction(publicKey, account, payer.publicKey, mint),
        createTransferCheckedInstruction(source, mint, account, publicKey, amount, 6),
      ]);
    }
    return payers;
  }

  async send(
    instructions: ConstructorParameters<typeof TransactionMessage>[0]['instructions'],
    signers: Keypair[] = [],
  ): Promise<void> {
    const { blockhash } = this.sandbox.chain.latestBlockhash('processed');
    const content = { payerKey: this.#funder.publicKey, recentBlockhash: blockhash, instructions };
    const transaction = new VersionedTransaction(new TransactionMessage(content).compileToV0Message());
    transaction.sign([this.#funder, ...signers]);
    const sent = await this.connection.sendTransaction(transaction, { skipPreflight: true });
    const { value } = await this.connection.getSignatureStatuses([sent]);
    if (!value[0] || value[0].err)
      throw new Error(`the payers could not be funded: ${JSON.stringify(value)}`);
  }

  /** Signs a payment as the facilitator does, and sends it whatever may become of it. */
  async sendAsFacilitator(base64: string): Promise<string> {
    const transaction = VersionedTransaction.deserialize(Buffer.from(base64, 'base64'));
    transaction.sign([Keypair.fromSecretKey(Uint8Array.from(this.sandbox.chain.genesis.keys.feePayer))]);
    return this.connection.sendTransaction(transaction, { skipPreflight: true });
  }

  /** How often each payment of these payers has landed and taken effect, by payment id. */
  landed(payers: Keypair[]): Map<string, number> {
    const counts = new Map<string, number>();
    for (const payer of payers) {
      const account = this.tokenAccount(payer.publicKey).toBase58();
      for (const entry of this.sandbox.chain.ofAddress(account, { limit: 1_000 }, 'processed')) {
        if (entry.err) continue;
        const wire = Buffer.from(this.sandbox.chain.details(entry).wire, 'base64');
        const { message } = VersionedTransaction.deserialize(wire);
        // Money that came in is none of ours.
        if (!message.staticAccountKeys[1]?.equals(payer.publicKey)) continue;
        const id = sha256(message.serialize());
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
    }
    return counts;
  }
}

/** Servers that die are played, not killed, so nothing needs a disk, whose pace would be that of whoever else writes to it. */
async function memoryFolder(): Promise<string> {
  return mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'coinslot-faults-'));
}

export async function memoryPlace(): Promise<Place> {
  const folder = await memoryFolder();
  return { url: `file:${folder}/ledger.db`, remove: () => rm(folder, { recursive: true, force: true }) };
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** What happens at one call of the ledger. `kill…`: the whole server dies there, like a process. */
export type LedgerFaultKind = 'fail' | 'failAfter' | 'stall' | 'killBefore' | 'killAfter';
export type LedgerFaults = (method: string, id: string | undefined) => LedgerFaultKind | undefined;

/** The answer of a call that died with its server: the caller's connection was cut. */
export const CUT = { kind: 'cut' } as const;
export type Sent = Outcome | typeof CUT;

type ShopOptions = {
  stage: Stage;
  ledgerUrl: string;
  rpcUrl: string;
  /** Asked where the first fails. */
  moreRpcUrls?: string[];
  facilitatorUrl: string;
  faults?: LedgerFaults;
  work?: PaidCall['work'];
  /** Told of every attempt at an order, with its request; what it returns is why the attempt fails. */
  ordered?: (request: string) => string | void;
  log?: Log;
};

const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };

/** One server without its HTTP: ledger, desk, charge, orders, reconciler, as production wires them, with shorter waits. */
export class Shop {
  readonly ledger: Ledger;
  readonly charge: Charge;
  readonly reconciler: Reconciler;
  readonly trust: KeptTrust;
  readonly #real: Ledger;
  readonly #died: Promise<typeof CUT>;
  readonly #closers: (() => Promise<unknown>)[];
  readonly #state: { dead: boolean };
  readonly kill: () => void;

  private constructor(parts: {
    ledger: Ledger;
    real: Ledger;
    charge: Charge;
    reconciler: Reconciler;
    trust: KeptTrust;
    closers: (() => Promise<unknown>)[];
    state: { dead: boolean };
    died: Promise<typeof CUT>;
    kill: () => void;
  }) {
    this.ledger = parts.ledger;
    this.#real = parts.real;
    this.charge = parts.charge;
    this.reconciler = parts.reconciler;
    this.trust = parts.trust;
    this.#closers = parts.closers;
    this.#state = parts.state;
    this.#died = parts.died;
    this.kill = parts.kill;
  }

  get dead(): boolean {
    return this.#state.dead;
  }

  static async open(options: ShopOptions): Promise<Shop> {
    const { stage, faults = () => undefined, log = SILENT } = options;
    const { terms } = stage;
    const state = { dead: false };
    let die: (cut: typeof CUT) => void = () => {};
    const died = new Promise<typeof CUT>(resolve => (die = resolve));
    const kill = (): void => {
      state.dead = true;
      die(CUT);
    };
    const real = await openLedger({ url: options.ledgerUrl, payTo: terms.payTo, network: terms.network });
    const ledger = mortal(withFaults(real, faults, kill, state), state);
    const facilitator = httpFacilitator(options.facilitatorUrl, DEADLINES);
    const chain = createChain({
      urls: [options.rpcUrl, ...(options.moreRpcUrls ?? [])],
      network: terms.network,
      timeoutMs: 2_000,
    });
    const heights = new Heights(real, { blocksPerSecond: STAGE_BLOCKS_PER_SECOND });
    const desk = new Desk(paid, terms, stage.sandbox.info.feePayer);
    const look = async (): Promise<void> => {
      const view = await readView(chain, heights, AbortSignal.timeout(2_000));
      if (!state.dead) desk.setView(view);
    };
    const trust = await trustIn(real, options.facilitatorUrl, log);
    const orders = new Orders({ ledger, work: orderWork(options.ordered), log, attemptMs: 60_000 });
    const charge = new Charge({
      ledger,
      facilitator: mortal(facilitator, state),
      desk,
      log,
      trust,
      orders,
      confirm: async (id, signature) => {
        const row = await ledger.find(id);
        return row !== undefined && confirmTransfer(mortal(chain, state), row, signature, CONFIRM);
      },
      maxUnsettledPerPayer: 256,
      leaseMs: LEASE_MS,
      askAgainAfterMs: ASK_AGAIN_AFTER_MS,
    });
    const reconciler = new Reconciler({
      ledger,
      chain: mortal(boundedHistory(chain, heights), state),
      trust,
      log,
      timing: TIMING,
    });
    while (
      !(await look().then(
        () => true,
        () => false,
      ))
    )
      await pause(20);
    const viewing = setInterval(() => void look().catch(() => {}), VIEW_MS);
    await reconciler.start(500);
    orders.start();
    const closers = [
      async () => clearInterval(viewing),
      async () => (state.dead ? undefined : Promise.all([reconciler.stop(), orders.stop()])),
      async () => desk.close(),
      () => facilitator.close(),
      () => chain.close(),
      () => real.close(),
    ];
    const shop = new Shop({ ledger, real, charge, reconciler, trust, closers, state, died, kill });
    shop.#work = options.work ?? shop.#work;
    return shop;
  }

  #work: PaidCall['work'] = async () => jsonAnswer({ summary: 'done' });

  /** Sends a paid call as a client would; `gone` is its connection. */
  async send(
    { payment, operation = SUMMARIZE, text }: { payment: Payment; operation?: PricedOperation; text: string },
    more: Partial<PaidCall> = {},
  ): Promise<Sent> {
    if (this.dead) return CUT;
    const body = { text };
    const upfront = {
      request: JSON.stringify(body),
      ready: async () => undefined,
    };
    const outcome = this.charge.redeem({
      operation,
      payment,
      requestHash: fingerprint(operation.id, body),
      work: signal => this.#work(signal),
      gone: new AbortController().signal,
      holdMs: HOLD_MS,
      ...(operation.flow === 'upfront' ? { upfront } : {}),
      ...more,
    });
    return Promise.race([outcome, this.#died]);
  }

  examined(header: string, operation = SUMMARIZE): Payment {
    const result = this.charge.examine({ 'payment-signature': header }, operation);
    if (result.kind !== 'payment') throw new Error(`examined: ${JSON.stringify(result)}`);
    return result.payment;
  }

  /** The rows behind all faults. */
  get books(): Ledger {
    return this.#real;
  }

  /** Ends this server: finished in order, or, after `kill`, only cleared away. */
  async close(): Promise<void> {
    for (const closer of this.#closers.splice(0)) await closer().catch(() => {});
  }
}

function orderWork(
  begun: (request: string) => string | void = () => {},
): ConstructorParameters<typeof Orders>[0]['work'] {
  return {
    wanted: () => 1,
    work: async ({ request }) => {
      const error = begun(request);
      await pause(30);
      if (error) return { kind: 'failed' as const, error };
      return { kind: 'answer' as const, answer: jsonAnswer({ brand: request }) };
    },
  };
}

export function jsonAnswer(value: unknown): Success {
  return {
    status: 200,
    headers: { 'Content-Type': 'application/json' },
    body: Buffer.from(JSON.stringify(value)),
  };
}

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}

const never = (): Promise<never> => new Promise(() => {});

/** After its server's death, nothing that was waited for comes back, and nothing new is begun. */
function mortal<T extends object>(part: T, state: { dead: boolean }): T {
  return wrapped(part, (_name, run) => async () => {
    if (state.dead) return never();
    try {
      const result = await run();
      return state.dead ? never() : result;
    } catch (error) {
      if (state.dead) return never();
      throw error;
    }
  });
}

function withFaults(
  ledger: Ledger,
  faults: LedgerFaults,
  kill: () => void,
  state: { dead: boolean },
): Ledger {
  return wrapped(ledger, (name, run, [id]) => async () => {
    const fault = state.dead ? undefined : faults(name, idOf(id));
    if (fault === 'killBefore') kill();
    if (fault === 'killBefore') return never();
    if (fault === 'fail') throw new LedgerFault('failed', 'The disk said no.');
    if (fault === 'stall') await pause(300);
    const result = await run();
    if (fault === 'killAfter') kill();
    if (fault === 'failAfter') throw new LedgerFault('unknown', 'The connection was lost during COMMIT.');
    return result;
  });
}

function idOf(argument: unknown): string | undefined {
  if (typeof argument === 'string') return argument;
  return typeof argument === 'object' && argument !== null && 'id' in argument
    ? String(argument.id)
    : undefined;
}

type Wrapping = (name: string, run: () => Promise<unknown>, args: unknown[]) => () => Promise<unknown>;

function wrapped<T extends object>(part: T, wrap: Wrapping): T {
  return new Proxy(part, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      const method = member as (...args: unknown[]) => Promise<unknown>;
      return (...args: unknown[]) => wrap(String(name), () => method.apply(target, args), args)();
    },
  });
}

/** Decides by a seed and by what it is asked about, so that a replay decides alike although its timing differs. */
export class Dice {
  readonly seed: number;

  constructor(seed: number) {
    this.seed = seed;
  }

  /** From 0 to below 1. */
  roll(...about: (string | number)[]): number {
    const digest = createHash('sha256')
      .update([this.seed, ...about].join('/'))
      .digest();
    return digest.readUInt32LE(0) / 2 ** 32;
  }

  pick<T>(choices: readonly (readonly [weight: number, choice: T])[], ...about: (string | number)[]): T {
    const total = choices.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.roll(...about) * total;
    for (const [weight, choice] of choices) {
      left -= weight;
      if (left < 0) return choice;
    }
    throw new Error('nothing to pick');
  }
}

export type Purchase = { payer: Keypair; text: string; operation?: PricedOperation };

/** A newly signed payment for a purchase, and what is known of it outside. */
export function signed(
  stage: Stage,
  shop: Shop,
  { payer, operation = SUMMARIZE }: Purchase,
  bend: Recipe & { identifier?: string } = {},
): { payment: Payment; transaction: string; id: string } {
  const { terms } = stage;
  const { feePayer } = stage.sandbox.info;
  const { transaction, messageBytes } = craftPayment({
    payer,
    feePayer,
    payTo: terms.payTo,
    amount: operation.price.atomic,
    blockhash: stage.sandbox.chain.latestBlockhash('processed').blockhash,
    ...bend,
  });
  const extensions = bend.identifier === undefined ? undefined : withIdentifier(bend.identifier);
  const header = v2Header(requirementsOf(operation, terms, feePayer), transaction, extensions);
  return { payment: shop.examined(header, operation), transaction, id: sha256(messageBytes) };
}

/** Tells which payment a body of /settle or /verify is about. */
export function askedFor(body: Buffer): string {
  const ask = JSON.parse(body.toString()) as { paymentPayload: { payload: { transaction: string } } };
  const wire = Buffer.from(ask.paymentPayload.payload.transaction, 'base64');
  return sha256(VersionedTransaction.deserialize(wire).message.serialize());
}

export type SettleFault =
  | 'none'
  | 'slow'
  | 'dropAfter'
  | 'dropBefore'
  | 'errorAfter'
  | 'errorBefore'
  | 'twice'
  | 'duplicate'
  | 'simulationFailed'
  | 'sendThrew'
  | 'garbled'
  | 'lie';

const refusal = (errorReason: string): string =>
  JSON.stringify({ success: false, errorReason, transaction: '', network: '' });

/** A facilitator that misbehaves at a settlement. */
export function settleFault(kind: SettleFault): Intervention {
  return async ({ forward, respond, drop }) => {
    if (kind === 'dropBefore') return drop();
    if (kind === 'errorBefore') return respond(500, '{"error":"internal"}');
    if (kind === 'lie') {
      const transaction = '5'.repeat(88);
      return respond(200, JSON.stringify({ success: true, transaction, network: 'n', payer: 'p' }));
    }
    if (kind === 'slow') await pause(400);
    let answer = await forward();
    if (kind === 'dropAfter') return drop();
    if (kind === 'errorAfter') return respond(502, '<html>Bad gateway</html>');
    if (kind === 'garbled') return respond(200, answer.body.subarray(0, 10));
    if (kind === 'duplicate') return respond(200, refusal('duplicate_settlement'));
    if (kind === 'simulationFailed') return respond(200, refusal('transaction_simulation_failed'));
    if (kind === 'sendThrew') return respond(200, refusal('invalid_exact_svm_transaction_failed'));
    if (kind === 'twice') answer = await forward();
    respond(answer.status, answer.body);
  };
}

export type RpcFault = 'none' | 'slow' | 'dropAfter' | 'error' | 'lag' | 'noRow';

type RpcResult = { result?: unknown; error?: unknown };
type Latest = { context: { slot: number }; value: { lastValidBlockHeight: number } };

/** An RPC server that misbehaves at one call. `lag`: it is 400 slots behind; `noRow`: it has lost a transaction. */
export function rpcFault(kind: RpcFault, stage: Stage): Intervention {
  const lag = 400;
  return async ({ method, body, forward, respond, drop }) => {
    if (kind === 'error') return respond(500, '{}');
    if (kind === 'slow') await pause(100);
    const answer = await forward();
    if (kind === 'dropAfter') return drop();
    if (kind === 'noRow' && method === 'getTransaction')
      return respond(200, '{"jsonrpc":"2.0","id":"1","result":null}');
    if (kind !== 'lag') return respond(answer.status, answer.body);
    const { params } = JSON.parse(body.toString()) as { params?: unknown[] };
    const json = JSON.parse(answer.body.toString()) as RpcResult;
    lagged(method, params ?? [], json, stage.sandbox.chain.slot('processed') - lag, lag);
    respond(200, JSON.stringify(json));
  };
}

function lagged(
  method: string | undefined,
  params: unknown[],
  json: RpcResult,
  newest: number,
  lag: number,
): void {
  const { minContextSlot } = (params[1] ?? {}) as { minContextSlot?: number };
  if (minContextSlot !== undefined && minContextSlot > newest - 32) {
    delete json.result;
    json.error = { code: -32016, message: 'Minimum context slot has not been reached' };
  } else if (method === 'getLatestBlockhash') {
    const latest = json.result as Latest;
    latest.context.slot -= lag;
    latest.value.lastValidBlockHeight -= lag;
  } else if (method === 'getBlockHeight') json.result = (json.result as number) - lag;
  else if (method === 'getSignaturesForAddress') {
    json.result = (json.result as { slot: number }[]).filter(({ slot }) => slot <= newest);
  } else if (method === 'getTransaction' && json.result && (json.result as { slot: number }).slot > newest) {
    json.result = null;
  }
}

/** Servers over one chain, one ledger and one pair of proxies. */
export class Cell {
  readonly stage: Stage;
  readonly rpc: CountingProxy;
  readonly facilitator: CountingProxy;
  readonly ledgerUrl: string;
  readonly shops: Shop[] = [];

  private constructor(stage: Stage, ledgerUrl: string, rpc: CountingProxy, facilitator: CountingProxy) {
    this.stage = stage;
    this.ledgerUrl = ledgerUrl;
    this.rpc = rpc;
    this.facilitator = facilitator;
  }

  static async open(stage: Stage, ledgerUrl: string): Promise<Cell> {
    const { sandbox } = stage;
    const proxies = [countingProxy(sandbox.rpc.url), countingProxy(sandbox.facilitator.url)] as const;
    return new Cell(stage, ledgerUrl, ...(await Promise.all(proxies)));
  }

  async shop(
    more: Omit<ShopOptions, 'stage' | 'ledgerUrl' | 'rpcUrl' | 'facilitatorUrl'> = {},
  ): Promise<Shop> {
    const { stage, ledgerUrl } = this;
    const [rpcUrl, facilitatorUrl] = [this.rpc.url, this.facilitator.url];
    const shop = await Shop.open({ stage, ledgerUrl, rpcUrl, facilitatorUrl, ...more });
    this.shops.push(shop);
    return shop;
  }

  onSettle(intervention: Intervention | undefined): void {
    this.facilitator.intervene(
      intervention &&
        (async ask => {
          if (ask.path === '/settle') return intervention(ask);
          const answer = await ask.forward();
          ask.respond(answer.status, answer.body);
        }),
    );
  }

  async close(): Promise<void> {
    for (const shop of this.shops) await shop.close();
    await Promise.all([this.rpc.close(), this.facilitator.close()]);
  }
}

/** Waits until something is so; throws what it was waiting for after the deadline. */
export async function until(what: string, so: () => Promise<boolean> | boolean, ms = 20_000): Promise<void> {
  for (const end = Date.now() + ms; !(await so()); await pause(50)) {
    if (Date.now() > end) throw new Error(`waited ${ms} ms in vain until ${what}`);
  }
}
