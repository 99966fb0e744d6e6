import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { PricedOperation } from '../../src/contract/contract.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { Charge, type ChargeOptions } from '../../src/sale/charge.js';
import { Offers } from '../../src/offers/offers.js';
import { SolanaHints } from '../../src/rails/solana/solana-hints.js';
import type { Payment } from '../../src/sale/check-payment.js';
import type { Facilitator } from '../../src/facilitators/facilitator.js';
import type { Rail, SettleResult, VerifyResult } from '../../src/rails/rail.js';
import { Facilitators } from '../../src/facilitators/facilitators.js';
import { fingerprint } from '../../src/contract/fingerprint.js';
import { requirementsOf, type Terms } from '../../src/methods/x402/requirements.js';
import {
  failure,
  isUnused,
  type Answer,
  type Failure,
  type Outcome,
  type Success,
} from '../../src/sale/outcome.js';
import type { PaidCall } from '../../src/sale/paid-call.js';
import { paymentOf } from './payment-of.js';
import { operationIn, RELEASED } from './sold.js';
import {
  craftPayment,
  DEVNET,
  DEVNET_USDC,
  DEVNET_V1,
  v2Header,
  withIdentifier,
  type Recipe,
} from './craft.js';
import { sellingOf } from './selling.js';
import { solanaRail, type RailOptions } from './solana-rail.js';

export const { paid } = RELEASED;
export const operation = (id: string): PricedOperation => operationIn(RELEASED, id);
export const SUMMARIZE = operation('summarize');
export const MINT_INFO = operation('solMintInfo');

/** The part of an outcome that the buyer sees. */
export const asSent = (outcome: Outcome): object => ({ ...outcome, sale: undefined, kept: undefined });

export const SIGNATURE = '5'.repeat(88);
export const FEE_PAYER = Keypair.generate().publicKey.toBase58();
export const TERMS: Terms = {
  network: DEVNET,
  v1Network: DEVNET_V1,
  asset: DEVNET_USDC,
  payTo: Keypair.generate().publicKey.toBase58(),
  publicUrl: 'http://127.0.0.1:8402',
};
const METHODS = sellingOf(TERMS).methods;
export const MINUTE = 60_000;

type RailParts = Parameters<typeof solanaRail>[0];
export const ID = 'order-0000000000001';

/** A facilitator whose answers a test sets, and which counts its calls. */
export class FakeFacilitator implements Facilitator {
  verifies = 0;
  settles = 0;
  onVerify: () => VerifyResult | Promise<VerifyResult> = () => ({ kind: 'valid' });
  onSettle: () => SettleResult | Promise<SettleResult> = () => ({ kind: 'settled', signature: SIGNATURE });

  async supported(): Promise<{ feePayer: string }> {
    return { feePayer: FEE_PAYER };
  }

  async verify(): Promise<VerifyResult> {
    this.verifies += 1;
    return this.onVerify();
  }

  async settle(): Promise<SettleResult> {
    this.settles += 1;
    return this.onSettle();
  }

  async close(): Promise<void> {}
}

/** A list with only this facilitator; all payments of these tests name its fee payer. */
export function asked(facilitator: Facilitator): Facilitators {
  const facilitators = new Facilitators([{ name: 'fake.example/', facilitator }]);
  facilitators.learn([{ hint: FEE_PAYER }]);
  return facilitators;
}

/** A gate that blocks until a test opens it. */
export class Gate {
  readonly passed: Promise<void>;
  readonly reached: Promise<void>;
  open: () => void = () => {};
  #arrive: () => void = () => {};

  constructor() {
    this.passed = new Promise(resolve => (this.open = resolve));
    this.reached = new Promise(resolve => (this.#arrive = resolve));
  }

  async wait<T>(value: T): Promise<T> {
    this.#arrive();
    await this.passed;
    return value;
  }
}

/** One server: a real ledger in a file, offers with a view of the chain, and a charge. */
export class World {
  readonly folder: string;
  readonly facilitator = new FakeFacilitator();
  readonly logged: string[] = [];
  ledger: Ledger;
  readonly hints: SolanaHints;
  readonly offers: Offers;
  charge: Charge;
  runs = 0;
  readonly #time: { ahead: number };
  /** The real time plus what a test has added to it. */
  readonly clock = (): number => Date.now() + this.#time.ahead;

  private constructor(folder: string, ledger: Ledger, time: { ahead: number }) {
    this.#time = time;
    this.folder = folder;
    this.ledger = ledger;
    this.hints = this.newHints();
    this.offers = new Offers(METHODS, this.hints);
    this.charge = this.newCharge();
  }

  /** @param shared whether to behave as if other servers used the ledger, too */
  static async open(shared = false): Promise<World> {
    const folder = await mkdtemp(join(tmpdir(), 'coinslot-charge-'));
    const time = { ahead: 0 };
    const ledger = await openLedger({
      url: `file:${folder}/ledger.db`,
      payTo: TERMS.payTo,
      network: TERMS.network,
      now: () => Date.now() + time.ahead,
    });
    return new World(folder, { ...ledger, shared }, time);
  }

  get now(): number {
    return this.clock();
  }

  set now(now: number) {
    this.#time.ahead = now - Date.now();
  }

  newHints(feePayer = FEE_PAYER): SolanaHints {
    const hints = new SolanaHints(feePayer, this.clock);
    hints.setView({ blockhash: Keypair.generate().publicKey.toBase58(), slot: 1000, height: 900 });
    return hints;
  }

  /** Solana's rail, by default with this world's ledger and facilitator. */
  newRail(options: Partial<RailParts> & RailOptions = {}): Rail {
    const { ledger, hints } = this;
    const own = { ledger, hints, terms: TERMS, facilitator: asked(this.facilitator) };
    return solanaRail({ ...own, ...options }, options);
  }

  newCharge(options: Partial<ChargeOptions & RailParts> & RailOptions = {}): Charge {
    const note = (_fields: object, message: string): void => void this.logged.push(message);
    return new Charge({
      ledger: this.ledger,
      rail: this.newRail(options),
      methods: sellingOf(options.terms ?? TERMS).methods,
      log: { info: note, warn: note, error: note },
      maxUnsettledPerPayer: 256,
      now: this.clock,
      ...options,
    });
  }

  /** Stops the server and starts another one on the same ledger. */
  async restart(): Promise<void> {
    await this.charge.idle();
    await this.ledger.close();
    this.ledger = await openLedger({
      url: `file:${this.folder}/ledger.db`,
      payTo: TERMS.payTo,
      network: TERMS.network,
      now: this.clock,
    });
    this.charge = this.newCharge();
  }

  async close(): Promise<void> {
    this.hints.close();
    await this.charge.idle();
    await this.ledger.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  readonly checkedPayment = paymentOf;

  /** A newly signed payment, in the form that the charge takes. */
  payment(recipe: Recipe & { identifier?: string } = {}): Payment {
    const { transaction } = craftPayment({ ...RECIPE, ...recipe });
    const extensions = recipe.identifier === undefined ? undefined : withIdentifier(recipe.identifier);
    return paymentOf(v2Header(ACCEPTED, transaction, extensions));
  }

  call(payment: Payment, change: Partial<PaidCall> & { text?: string } = {}): PaidCall {
    const of = change.operation ?? SUMMARIZE;
    return {
      operation: of,
      transport: 'http',
      payment,
      requestHash: fingerprint(of.id, { params: {}, query: {}, body: { text: change.text ?? 'a text' } }),
      work: async () => {
        this.runs += 1;
        return answer(`{"summary":"run ${this.runs}"}`);
      },
      gone: new AbortController().signal,
      holdMs: 55_000,
      ...change,
    };
  }

  redeem(payment: Payment, change: Partial<PaidCall> & { text?: string } = {}): Promise<Outcome> {
    return this.charge.process(this.call(payment, change));
  }

  /** A payer that has one delivered payment. */
  async knownPayer(): Promise<Keypair> {
    const payer = Keypair.generate();
    expect((await this.redeem(this.payment({ payer }))).kind).to.equal('sold');
    this.runs = 0;
    this.facilitator.settles = 0;
    this.facilitator.verifies = 0;
    return payer;
  }

  /** Makes the facilitator fail once, so that the next payments are verified first, even those of known payers. */
  async troubleAtVerify(): Promise<void> {
    const { onVerify } = this.facilitator;
    this.facilitator.onVerify = () => ({ kind: 'unavailable', detail: 'down' });
    expectUnavailable(await this.redeem(this.payment()), /can't be reached/);
    this.facilitator.onVerify = onVerify;
    this.facilitator.verifies = 0;
  }

  /**
   * Starts as many unverified runs of a known payer as it may have, so that its next payment is verified while its work
   * runs. @returns a function that lets these runs end, and waits for that
   */
  async unverifiedRuns(payer: Keypair): Promise<() => Promise<void>> {
    const gate = new Gate();
    const outcomes: Promise<Outcome>[] = [];
    for (let n = 0; n < 4; n++) {
      const working = new Gate();
      const work = (): Promise<Success> => working.wait(undefined).then(() => gate.wait(answer('{}')));
      outcomes.push(this.redeem(this.payment({ payer }), { text: `unverified ${n}`, work }));
      await working.reached;
      working.open();
    }
    return async () => {
      gate.open();
      await Promise.all(outcomes);
    };
  }

  /** Whether this payer is known, so that its work may begin before its payment is verified. */
  async isKnown(payer: Keypair): Promise<boolean> {
    return (await this.ledger.lookUp('0'.repeat(64), payer.publicKey.toBase58())).payerKnown;
  }

  async stateOf(payment: Payment): Promise<string | undefined> {
    return (await this.ledger.find(payment.checked.id))?.state;
  }
}

export const RECIPE: Recipe = { feePayer: FEE_PAYER, payTo: TERMS.payTo };
export const ACCEPTED = requirementsOf(SUMMARIZE, TERMS, FEE_PAYER);

export function answer(body: string | Buffer): Success {
  return {
    status: 200,
    headers: { 'Content-Type': 'application/json', 'X-Kept': 'yes' },
    body: Buffer.from(body),
  };
}

export function failed(status: Failure['status']): Answer {
  return failure(status, 'no');
}

export function bodyOf(outcome: Outcome): string {
  if (!('answer' in outcome)) throw new Error(`no answer: ${JSON.stringify(outcome)}`);
  return outcome.answer.body.toString();
}

export function expectRefused(outcome: Outcome, error: RegExp, fresh: boolean): void {
  if (outcome.kind !== 'refused') throw new Error(`not refused: ${JSON.stringify(outcome)}`);
  expect(outcome.error).to.match(error);
  expect(isUnused(outcome), 'a fresh blockhash').to.equal(fresh);
}

export function expectUnavailable(outcome: Outcome, error: RegExp): void {
  expect(outcome.kind, JSON.stringify(outcome)).to.equal('unavailable');
  const { error: text, retryAfterSeconds } = outcome as Outcome & { kind: 'unavailable' };
  expect(text).to.match(error);
  expect(retryAfterSeconds).to.be.greaterThan(0);
}

export function expectPending(outcome: Outcome): void {
  expectUnavailable(outcome, /not yet certain/);
  const { receipt } = outcome as Outcome & { kind: 'unavailable' };
  expect(receipt).to.include({ success: false, errorReason: 'settlement_pending' });
}

export let world: World;

/** Gives every test of a suite a server and a ledger of its own. */
export function eachInANewWorld(shared = false): void {
  beforeEach(async () => {
    world = await World.open(shared);
  });
  afterEach(() => world.close());
}

/** The world's ledger, with one method that always fails. */
export function faulty(method: keyof Ledger): Ledger {
  return new Proxy(world.ledger, {
    get(target, name) {
      if (name === method) return () => Promise.reject(new Error('the disk is full'));
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}
