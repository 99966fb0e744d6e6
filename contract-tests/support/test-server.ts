import type { Log } from '../../src/net/log.js';
import type { Keypair } from '@solana/web3.js';
import type { PricedOperation } from '../../src/contract/contract.js';
import type { Observer } from '../../src/observe/observer.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { Charge } from '../../src/sale/charge.js';
import { Offers } from '../../src/offers/offers.js';
import type { Payment } from '../../src/sale/check-payment.js';
import { EMBEDDED } from '../../src/facilitators/embedded-facilitator.js';
import { Facilitators } from '../../src/facilitators/facilitators.js';
import { facilitatorName, httpFacilitator } from '../../src/facilitators/http-facilitator.js';
import { OfferedFeePayers, rememberedFeePayers } from '../../src/facilitators/offered-fee-payers.js';
import { fingerprint } from '../../src/contract/fingerprint.js';
import { boundedHistory, ChainHeights } from '../../src/rails/solana/chain-heights.js';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import { OrderWorker } from '../../src/sale/order-worker.js';
import type { Outcome, Success } from '../../src/sale/outcome.js';
import { refused } from '../../src/sale/outcome.js';
import type { PaidCall } from '../../src/sale/paid-call.js';
import { SolanaHints } from '../../src/rails/solana/solana-hints.js';
import { SolanaRail } from '../../src/rails/solana/solana-rail.js';
import { FacilitatorRequests } from '../../src/facilitators/facilitator-requests.js';
import { Reconciler } from '../../src/sale/reconciler.js';
import { loadFacilitatorTrust, type FacilitatorTrust } from '../../src/facilitators/facilitator-trust.js';
import { createChain } from '../../src/rails/solana/rpc.js';
import { readView } from '../../src/rails/solana/refresh-hints.js';
import { craftPayment, v2Header, withIdentifier, type Recipe } from './craft.js';
import { mortal, pause, within, withFaults, type LedgerFaults } from './faults.js';
import { carrierOf, credentialOf, mppPayment, readChallenge } from './mpp-payment.js';
import { paymentOf } from './payment-of.js';
import { ownFacilitator } from './own-facilitator.js';
import { countingProxy, type CountingProxy, type Intervention } from './proxy.js';
import { forServer } from './ledger-places.js';
import { OPERATIONS, sha256, SUMMARIZE, type TestChain } from './test-chain.js';
import { MPP_HEADER_BYTES, shopMethods } from '../../src/methods/shop-methods.js';
import { createSender } from '../../src/facilitators/sender.js';

/** The most slots that these fast chains produce, with a margin. */
const STAGE_BLOCKS_PER_SECOND = 200;
/** Short, so that the view of the chain is as fresh, counted in slots, as in production. */
const VIEW_MS = 100;
const DEADLINES = { supportedMs: 2_000, verifyMs: 4_000, settleMs: 4_000 };
/** Verify, work, sign and settle together take less than the lease. */
const OWN_TIMING = { verifyMs: 2_000, signMs: 2_000, settleMs: 4_000, resendMs: 200, lookMs: 50 };
const SENDER_TIMING = { verifyMs: 2_000, settleMs: 4_000, resendMs: 200, lookMs: 50 };
const LEASE_MS = 10_000;
const ASK_AGAIN_AFTER_MS = 400;
const HOLD_MS = 1_000;
/** A running server answers sooner than this, even on a slow machine. */
const PATIENCE_MS = 30_000;
/** With these limits, buyers whose servers keep failing wait for seconds; with those of production, for minutes. */
const UNSOLD_PER_PAYER = { capacity: 200, perSecond: 20, highest: 400 };
const TIMING = {
  interval: 150,
  lease: 12_000,
  look: 3_000,
  rest: 100,
  longestRest: 500,
  auditAfter: 300,
};
const WATCH_BLOCKS = 60;
const DENIED = { afterMs: 100, deadlineMs: 2_000 };
const CONFIRM = { deadlineMs: 1_500, pollMs: 50 };

/** Shared by all servers of a test. */
const MPP_SECRET = 'the secret of all test servers, 40 chars';

/** The answer to a call whose server died: the caller's connection was cut. */
export const CUT = { kind: 'cut' } as const;
export type Sent = Outcome | typeof CUT;

type TestServerOptions = {
  testChain: TestChain;
  ledgerUrl: string;
  rpcUrl: string;
  /** A second RPC server, used when the first one fails. */
  moreRpcUrls?: string[];
  facilitatorUrl: string;
  faults?: LedgerFaults;
  work?: PaidCall['work'];
  /** Called with the request of every attempt at an order. If it returns a string, the attempt fails with that message. */
  ordered?: (request: string) => string | void;
  log?: Log;
  observer?: Observer;
  /** The facilitator that the server's challenges name. Default: the sandbox's. */
  feePayer?: string;
  /** The key of the server's embedded facilitator. If it is set, no other facilitator is used. */
  own?: Keypair;
  /** Whether the server accepts MPP as well as x402. Default true. */
  mpp?: boolean;
  /** Payers that the server refuses. */
  blocked: ReadonlySet<string>;
  /** The server's prices, as multiples of the contract's. Default 1. */
  priceFactor?: bigint;
};

const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };

/** One server without HTTP: ledger, offers, charge, orders and reconciler, wired as in production, with shorter intervals. */
export class TestServer {
  readonly ledger: Ledger;
  readonly charge: Charge;
  readonly reconciler: Reconciler;
  readonly trust: FacilitatorTrust;
  readonly offers: Offers;
  readonly feePayer: string;
  /** The slot that this server's view of the chain has reached. */
  readonly slot: () => number;
  /** Resolves when it is killed. */
  readonly died: Promise<typeof CUT>;
  readonly #priced: ReadonlyMap<string, PricedOperation>;
  readonly #real: Ledger;
  readonly #closers: (() => Promise<unknown>)[];
  readonly #state: { dead: boolean };
  readonly kill: () => void;

  private constructor(parts: {
    ledger: Ledger;
    real: Ledger;
    charge: Charge;
    reconciler: Reconciler;
    trust: FacilitatorTrust;
    offers: Offers;
    feePayer: string;
    slot: () => number;
    priced: ReadonlyMap<string, PricedOperation>;
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
    this.offers = parts.offers;
    this.feePayer = parts.feePayer;
    this.slot = parts.slot;
    this.#priced = parts.priced;
    this.#closers = parts.closers;
    this.#state = parts.state;
    this.died = parts.died;
    this.kill = parts.kill;
  }

  get dead(): boolean {
    return this.#state.dead;
  }

  static async open(options: TestServerOptions): Promise<TestServer> {
    const { testChain, faults = () => undefined, log = SILENT } = options;
    const { terms } = testChain;
    const state = { dead: false };
    let die: (cut: typeof CUT) => void = () => {};
    const died = new Promise<typeof CUT>(resolve => (die = resolve));
    const kill = (): void => {
      state.dead = true;
      die(CUT);
    };
    const real = await openLedger({
      ...forServer(options.ledgerUrl),
      payTo: terms.payTo,
      network: terms.network,
    });
    const ledger = mortal(withFaults(real, faults, kill, state), state);
    const rpcUrls = [options.rpcUrl, ...(options.moreRpcUrls ?? [])];
    const embedded =
      options.own &&
      (await ownFacilitator(testChain, {
        feePayer: options.own,
        rpcUrls,
        timing: OWN_TIMING,
        chain: real => mortal(withFaults(real, faults, kill, state), state),
      }));
    const http = httpFacilitator(options.facilitatorUrl, DEADLINES);
    const facilitator = new Facilitators([
      embedded
        ? { name: EMBEDDED, facilitator: mortal(embedded.facilitator, state) }
        : { name: facilitatorName(options.facilitatorUrl), facilitator: mortal(http, state) },
    ]);
    // With several facilitators, the one whose fee payer the request names.
    const known = embedded ? [embedded.keyPair.address] : testChain.feePayers;
    facilitator.learn(known.map(hint => ({ hint })));
    facilitator.recorded = () => rememberedFeePayers(real);
    const chain = createChain({
      urls: rpcUrls,
      network: terms.network,
      timeoutMs: 2_000,
    });
    const heights = new ChainHeights(real, { blocksPerSecond: STAGE_BLOCKS_PER_SECOND });
    const priced = pricesTimes(options.priceFactor ?? 1n);
    const feePayer = embedded?.keyPair.address ?? options.feePayer ?? testChain.sandbox.info.feePayer;
    const hints = new SolanaHints(feePayer);
    const { network } = terms;
    await new OfferedFeePayers({ ledger: real, hints, facilitators: facilitator, network, log }).share();
    const look = async (): Promise<void> => {
      const view = await readView(chain, heights, AbortSignal.timeout(2_000));
      if (!state.dead) hints.setView(view);
    };
    hints.sponsor = () => embedded?.keyPair.address;
    const sender = createSender(mortal(withFaults(chain, faults, kill, state), state), log, SENDER_TIMING);
    const trust = await loadFacilitatorTrust(real, facilitator, log);
    const work = orderWork(options.ordered);
    const orders = new OrderWorker({ ledger, work, log, attemptMs: 60_000, firstPauseMs: 0 });
    const rail = new SolanaRail({
      ...{ terms, hints, facilitator, trust, receivers: real.receivers },
      sender: mortal(sender, state),
      requests: new FacilitatorRequests(terms, real.receivers),
      chain: mortal(boundedHistory(chain, heights), state),
      timing: { confirm: CONFIRM, denied: DENIED, watchBlocks: WATCH_BLOCKS },
    });
    const beside = { ...terms, otherMethodsBytes: MPP_HEADER_BYTES };
    const mpp = options.mpp === false ? undefined : { secrets: [MPP_SECRET] as const };
    const methods = shopMethods(beside, { mpp, network: 'sandbox' });
    const offers = new Offers(methods, hints);
    const charge = new Charge({
      ledger,
      rail,
      methods: offers.methods,
      log,
      orders,
      blocked: options.blocked,
      maxUnsettledPerPayer: 256,
      unsoldPerPayer: UNSOLD_PER_PAYER,
      leaseMs: LEASE_MS,
      askAgainAfterMs: ASK_AGAIN_AFTER_MS,
    });
    const reconciler = new Reconciler({
      ledger,
      rail,
      log,
      ...(options.observer ? { observer: options.observer } : {}),
      timing: TIMING,
    });
    while (
      !(await look().then(
        () => true,
        () => false,
      ))
    )
      await pause(20);
    const viewing = setInterval(() => {
      void look().catch(() => {});
      void facilitator.probe(terms.network);
    }, VIEW_MS);
    await reconciler.start(500);
    orders.start();
    const closers = [
      async () => clearInterval(viewing),
      async () => (state.dead ? undefined : Promise.all([reconciler.stop(), orders.stop()])),
      async () => hints.close(),
      () => http.close(),
      async () => embedded?.close(),
      async () => sender.close(),
      () => chain.close(),
      () => real.close(),
    ];
    const testServer = new TestServer({
      ledger,
      real,
      charge,
      reconciler,
      trust,
      offers,
      feePayer,
      slot: () => hints.view()?.slot ?? 0,
      priced,
      closers,
      state,
      died,
      kill,
    });
    testServer.#work = options.work ?? testServer.#work;
    return testServer;
  }

  #work: PaidCall['work'] = async () => jsonAnswer({ summary: 'done' });

  /** An operation at this server's price. */
  priced({ id }: Pick<PricedOperation, 'id'>): PricedOperation {
    const operation = this.#priced.get(id);
    if (!operation) throw new Error(`no operation ${id}`);
    return operation;
  }

  /** Sends a paid call with the payment in this header, whichever server made the offer; otherwise like `send`. */
  async receive(
    { header, operation, text }: { header: string; operation: PricedOperation; text: string },
    more: Partial<PaidCall> = {},
  ): Promise<Sent> {
    if (this.dead) return CUT;
    const priced = this.priced(operation);
    const checkedPayment = await this.charge.checkPayment({ headers: carrierOf(header) }, priced);
    if (!('payment' in checkedPayment)) throw new Error(`checked: ${JSON.stringify(checkedPayment)}`);
    const { payment } = checkedPayment;
    const received = async (): Promise<Sent> => {
      if (checkedPayment.kind === 'mismatch' && !(await this.charge.isKnown(payment)))
        return refused(checkedPayment.error);
      return this.send({ payment, operation: priced, text }, more);
    };
    return within(PATIENCE_MS, 'the outcome of a paid call', Promise.race([received(), this.died]));
  }

  /** Sends a paid call as a client would; `gone` signals that its connection is closed. */
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
    const outcome = this.charge.process({
      operation,
      transport: 'http',
      payment,
      requestHash: fingerprint(operation.id, { params: {}, query: {}, body }),
      work: signal => this.#work(signal),
      gone: new AbortController().signal,
      holdMs: HOLD_MS,
      ...(operation.flow === 'upfront' ? { upfront } : {}),
      ...more,
    });
    return Promise.race([outcome, this.died]);
  }

  readonly checkedPayment = paymentOf;

  /** The rows, read without the injected faults. */
  get reader(): Ledger {
    return this.#real;
  }

  /** Ends this server: a clean shutdown, or, after `kill`, only a release of its resources. */
  async close(): Promise<void> {
    for (const closer of this.#closers.splice(0)) await closer().catch(() => {});
  }
}

function pricesTimes(factor: bigint): ReadonlyMap<string, PricedOperation> {
  const times = ({ price }: PricedOperation): PricedOperation['price'] => ({
    ...price,
    atomic: price.atomic * factor,
  });
  return new Map(
    OPERATIONS.map(operation => [
      operation.id,
      factor === 1n ? operation : { ...operation, price: times(operation) },
    ]),
  );
}

function orderWork(
  begun: (request: string) => string | void = () => {},
): ConstructorParameters<typeof OrderWorker>[0]['work'] {
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

export type Purchase = { payer: Keypair; text: string; operation?: PricedOperation };

/** A newly signed payment for a purchase, and what tests need to know about it. */
export function signed(
  testChain: TestChain,
  testServer: TestServer,
  { payer, operation = SUMMARIZE }: Purchase,
  bend: Recipe & { identifier?: string } = {},
): {
  payment: Payment;
  header: string;
  /** What a stranger can send after reading the transaction on the chain, where no payment-identifier is visible. */
  landedHeader: string;
  transaction: string;
  id: string;
  amount: bigint;
} {
  const { terms } = testChain;
  const { feePayer } = testServer;
  const offered = testServer.priced(operation);
  const amount = offered.price.atomic;
  const { transaction, messageBytes } = craftPayment({
    payer,
    feePayer,
    payTo: terms.payTo,
    amount,
    blockhash: testChain.sandbox.chain.latestBlockhash('processed').blockhash,
    ...bend,
  });
  const extensions = bend.identifier === undefined ? undefined : withIdentifier(bend.identifier);
  const requirements = requirementsOf(offered, terms, feePayer);
  const header = v2Header(requirements, transaction, extensions);
  return {
    payment: testServer.checkedPayment(header),
    header,
    landedHeader: v2Header(requirements, transaction),
    transaction,
    id: sha256(messageBytes),
    amount,
  };
}

/** A newly signed MPP payment for a server's challenge. Only the buyer has the challenge; a stranger makes one up. */
export function signedForMpp(
  testChain: TestChain,
  testServer: TestServer,
  { payer, operation = SUMMARIZE }: Purchase,
): { header: string; landedHeader: string; id: string; amount: bigint } {
  const { offers } = testServer;
  const offered = testServer.priced(operation);
  const { headers } = offers.challenge(offered, offers.methods.first);
  const challenge = readChallenge(headers['WWW-Authenticate'] ?? null);
  const { blockhash } = testChain.sandbox.chain.latestBlockhash('processed');
  const { authorization, transaction, id } = mppPayment(challenge, payer, { blockhash });
  const forged = { ...challenge, wire: { ...challenge.wire, id: 'of-a-stranger' } };
  return {
    header: authorization,
    landedHeader: credentialOf(forged, transaction).authorization,
    id,
    amount: offered.price.atomic,
  };
}

/** Servers that share one chain, one ledger and one pair of proxies. */
export class TestCluster {
  readonly testChain: TestChain;
  readonly rpc: CountingProxy;
  readonly facilitator: CountingProxy;
  readonly ledgerUrl: string;
  readonly testServers: TestServer[] = [];

  private constructor(
    testChain: TestChain,
    ledgerUrl: string,
    rpc: CountingProxy,
    facilitator: CountingProxy,
  ) {
    this.testChain = testChain;
    this.ledgerUrl = ledgerUrl;
    this.rpc = rpc;
    this.facilitator = facilitator;
  }

  static async open(testChain: TestChain, ledgerUrl: string): Promise<TestCluster> {
    const proxies = [
      countingProxy(testChain.sandbox.rpc.url),
      countingProxy(body => testChain.facilitatorFor(body)),
    ] as const;
    return new TestCluster(testChain, ledgerUrl, ...(await Promise.all(proxies)));
  }

  async testServer(
    more: Partial<Omit<TestServerOptions, 'testChain' | 'ledgerUrl' | 'rpcUrl' | 'facilitatorUrl'>> = {},
  ): Promise<TestServer> {
    const { testChain, ledgerUrl } = this;
    const [rpcUrl, facilitatorUrl] = [this.rpc.url, this.facilitator.url];
    const blocked = new Set<string>();
    const places = { testChain, ledgerUrl, rpcUrl, facilitatorUrl };
    const testServer = await TestServer.open({ ...places, blocked, ...more });
    this.testServers.push(testServer);
    return testServer;
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
    for (const testServer of this.testServers) await testServer.close();
    await Promise.all([this.rpc.close(), this.facilitator.close()]);
  }
}
