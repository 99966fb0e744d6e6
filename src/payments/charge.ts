import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PricedOperation } from '../contract.js';
import type { Call, Claim, Ledger, Payment as Row, StoredAnswer } from '../ledger/store.js';
import { Bucket } from './bucket.js';
import type { Desk } from './desk.js';
import { Examiner, type Examined, type Payment } from './examine.js';
import type { Ask, Facilitator, Settlement, Verdict } from './facilitator.js';
import type { Orders } from './orders.js';
import {
  answerLifeMs,
  explain,
  failure,
  inProgress,
  MAX_RUNS,
  NOT_CHARGED,
  otherCall,
  otherIdentifier,
  overLimit,
  refused,
  unavailable,
  type Answer,
  type Log,
  type Outcome,
  type Sale,
} from './outcome.js';
import type { Trust } from './trust.js';
import type { Receipt } from './wire.js';

/** A paid call whose body is valid. */
export type PaidCall = {
  operation: PricedOperation;
  payment: Payment;
  /** Hex sha256 over operation id and canonical body: what "the same call" means. */
  requestHash: string;
  /** Does the work; resolves to any declared answer but 402, never rejects. Not called for `upfront` operations. */
  work: (signal: AbortSignal) => Promise<Answer>;
  /** Aborts when this caller's connection is gone. */
  gone: AbortSignal;
  /** Aborts when the server shuts down: nobody is held for an order any more. */
  closing?: AbortSignal;
  /** What an `upfront` operation needs besides. */
  upfront?: {
    /** Canonical JSON of the body, kept with the order. */
    request: string;
    /** Asked before money is taken: undefined, or the answer to give instead. */
    ready: () => Promise<Answer | undefined>;
    /** How long this caller wants to wait for the answer, in ms. */
    holdMs: number;
  };
};

/**
 * Sees for itself that a transfer took effect (commitment `confirmed`): true once it did, false when it did not within the time
 * that a confirmation may take.
 */
export type Confirm = (id: string, signature: string) => Promise<boolean>;

const WORK_DEADLINE_MS = 20_000;
/** Longer than verify, work and settle may take together, so that a live claim is never taken for a dead one. */
const LEASE_MS = 90_000;
/** Callers that may wait for one run of one payment. */
const MAX_CALLERS_PER_RUN = 512;
/** Callers that may be held for one order, and for all. */
const MAX_HELD_PER_ORDER = 4;
const MAX_HELD = 1_000;
const ORDER_RETRY_SECONDS = 5;
/** What could not be noted down about a caller is tried again after these many ms. */
const NOTE_AGAIN_MS = [50, 200, 1_000, 4_000, 15_000];
/** A ledger that is away long enough for more than these has worse to tell. */
const MAX_NOTES_TO_REPEAT = 1_000;
/** A caller waits this many ms at most for the ledger to know that it is sent away. */
const NOTED_WITHIN_MS = 5_000;
/** What one payer may have unsettled at a time, in atomic units: 100 USDC. */
const MAX_UNSETTLED_AMOUNT = 100_000_000n;
const STILL_OWED =
  'The backend failed. This call is paid and stays owed: send the same payment again to try again';
/** Payers that never paid share these: their wallets may be empty. */
const UNKNOWN_PAYER_BUCKET = { rate: 50, burst: 500 };

/** The payment bought an order that is not delivered yet: each caller waits for it as long as it likes. */
type Ordered = { kind: 'ordered'; id: string };
type Result = Outcome | Ordered;
type Ended = { outcome: Result };

type Run = {
  operation: string;
  requestHash: string;
  identifier: string | null;
  callers: number;
  /** Stops verify and work when every caller is gone. Has no effect once `settling` is written. */
  abandon: AbortController;
  result: Promise<Result>;
};

/**
 * Takes the money for the work, once, in one of the two flows of x402: `authorization` (verify → work → settle → answer) or
 * `upfront` (verify → settle → work → answer). One payment is one run, whoever sends it and however often: copies that arrive
 * meanwhile wait for the same outcome, later ones get the stored answer.
 */
export class Charge {
  readonly #ledger: Ledger;
  readonly #facilitator: Facilitator;
  readonly #desk: Desk;
  readonly #orders: Orders | undefined;
  readonly #confirm: Confirm;
  readonly #trust: Trust;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #maxUnsettled: number;
  readonly #workDeadlineMs: number;
  readonly #leaseMs: number;
  readonly #examiner: Examiner;
  readonly #runs = new Map<string, Run>();
  readonly #held = new Map<string, number>();
  #heldInAll = 0;
  #notesToRepeat = 0;
  readonly #verifies: Bucket;
  readonly #works: Bucket;

  constructor(options: {
    ledger: Ledger;
    facilitator: Facilitator;
    desk: Desk;
    log: Log;
    maxUnsettledPerPayer: number;
    /** Without it, `upfront` operations answer 503. */
    orders?: Orders;
    confirm?: Confirm;
    trust?: Trust;
    unknownPayers?: { rate: number; burst: number };
    /** How long the work may take. Default 20 s. */
    workDeadlineMs?: number;
    /** Longer than verify, work and settle may take together. Default 90 s. */
    leaseMs?: number;
    now?: () => number;
  }) {
    this.#ledger = options.ledger;
    this.#facilitator = options.facilitator;
    this.#desk = options.desk;
    this.#orders = options.orders;
    this.#confirm = options.confirm ?? (async () => false);
    this.#trust = options.trust ?? { facilitatorLied: false };
    this.#log = options.log;
    this.#now = options.now ?? Date.now;
    this.#maxUnsettled = options.maxUnsettledPerPayer;
    this.#workDeadlineMs = options.workDeadlineMs ?? WORK_DEADLINE_MS;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    this.#examiner = new Examiner(options.desk.terms);
    this.#verifies = new Bucket(options.unknownPayers ?? UNKNOWN_PAYER_BUCKET);
    this.#works = new Bucket(options.unknownPayers ?? UNKNOWN_PAYER_BUCKET);
  }

  /** Reads and checks the payment of a request without asking anybody. */
  examine(headers: IncomingHttpHeaders, operation: PricedOperation): Examined {
    return this.#examiner.examine(headers, operation);
  }

  /** Redeems a payment for the answer of a call. Never rejects. */
  async redeem(call: PaidCall): Promise<Outcome> {
    const outcome = await this.#outcome(call);
    if (outcome.kind === 'unavailable' || isStillOwed(outcome)) await this.#sentAway(call.payment.checked.id);
    return outcome;
  }

  /** The answer was written out with the socket intact. */
  written(sale: Sale): void {
    void this.#note(sale.id, () => this.#ledger.written(sale.id));
  }

  /** The caller was gone before the answer was written out: a newly signed payment for the same call may pick it up. */
  lost(sale: Sale): Promise<void> {
    return sale.claim === undefined ? this.#sentAway(sale.id) : this.#leave(sale.id, sale.claim);
  }

  /** Waits until nothing is in flight any more. */
  async idle(): Promise<void> {
    while (this.#runs.size > 0) await Promise.allSettled([...this.#runs.values()].map(run => run.result));
  }

  async #outcome(call: PaidCall): Promise<Outcome> {
    try {
      const result = await this.#result(call);
      return result.kind === 'ordered' ? await this.#hold(result.id, call) : this.#addressed(result, call);
    } catch (error) {
      return this.#broken(error);
    }
  }

  async #result(call: PaidCall): Promise<Result> {
    const { id } = call.payment.checked;
    const running = this.#runs.get(id);
    if (running && !running.abandon.signal.aborted) return this.#join(running, call);
    if (running) {
      if (running.callers >= MAX_CALLERS_PER_RUN) return inProgress();
      running.callers += 1;
      await running.result;
      return this.#result(call);
    }
    const abandon = new AbortController();
    const run: Run = {
      operation: call.operation.id,
      requestHash: call.requestHash,
      identifier: call.payment.identifier,
      callers: 0,
      abandon,
      result: this.#run(call, abandon.signal).catch((error: unknown) => this.#broken(error)),
    };
    this.#runs.set(id, run);
    void run.result.finally(() => this.#runs.delete(id));
    return this.#wait(run, call);
  }

  async #join(run: Run, call: PaidCall): Promise<Result> {
    if (run.operation !== call.operation.id || run.requestHash !== call.requestHash)
      return otherCall(call.operation.id, run.operation);
    if (run.identifier !== null && run.identifier !== call.payment.identifier) return otherIdentifier();
    if (run.callers >= MAX_CALLERS_PER_RUN) return inProgress();
    return this.#wait(run, call);
  }

  async #wait(run: Run, call: PaidCall): Promise<Result> {
    run.callers += 1;
    let here = true;
    const leave = (): void => {
      if (!here) return;
      here = false;
      run.callers -= 1;
      if (run.callers === 0) run.abandon.abort(new Error('every caller is gone'));
    };
    call.gone.addEventListener('abort', leave, { once: true });
    if (call.gone.aborted) leave();
    try {
      return await run.result;
    } finally {
      call.gone.removeEventListener('abort', leave);
      here = false;
    }
  }

  /** A run is shared by copies of both protocol versions, and each version has its own name for the network. */
  #addressed(outcome: Outcome, call: PaidCall): Outcome {
    if (!('receipt' in outcome) || !outcome.receipt) return outcome;
    return { ...outcome, receipt: { ...outcome.receipt, network: this.#networkFor(call) } };
  }

  #networkFor(call: PaidCall): string {
    const { network, v1Network } = this.#desk.terms;
    return call.payment.version === 2 ? network : v1Network;
  }

  async #run(call: PaidCall, abandoned: AbortSignal): Promise<Result> {
    const claim = await this.#claim(call);
    if ('outcome' in claim) return claim.outcome;
    try {
      const { earlier } = claim;
      const sold = earlier
        ? await this.#verified(call, claim, abandoned)
        : call.operation.flow === 'upfront'
          ? await this.#ready(call, claim, abandoned)
          : await this.#earn(call, claim, abandoned);
      if ('outcome' in sold) return sold.outcome;
      if (earlier) return await this.#attach(call, claim, earlier);
      return 'answer' in sold
        ? await this.#collect(call, claim, sold.answer, abandoned)
        : await this.#sellUpfront(call, claim, abandoned);
    } catch (error) {
      await this.#free(call, claim, true);
      // Whether it got as far as `settling` may be unknown; the caller is told 503, so a new signature may attach to it.
      await this.#leave(call.payment.checked.id, claim.claim);
      throw error;
    }
  }

  /** Reserves the payment, or says why it can't be had. */
  async #claim(call: PaidCall): Promise<Claim | Ended> {
    const { checked, version, identifier } = call.payment;
    const view = this.#desk.view();
    if (!view || !this.#desk.isOffered(checked.feePayer)) return { outcome: await this.#nothingNew(call) };
    const result = await this.#ledger.claim({
      id: checked.id,
      operation: call.operation.id,
      requestHash: call.requestHash,
      payer: checked.payer,
      amount: call.operation.price.atomic,
      network: this.#desk.terms.network,
      x402Version: version,
      transaction: checked.transaction,
      identifier,
      flow: call.operation.flow,
      request: call.upfront?.request ?? null,
      slot: view.slot,
      height: view.height,
      leaseMs: this.#leaseMs,
      limits: {
        maxUnsettledPerPayer: this.#maxUnsettled,
        maxUnsettledAmountPerPayer: MAX_UNSETTLED_AMOUNT,
        maxRuns: MAX_RUNS,
      },
    });
    switch (result.kind) {
      case 'claimed':
        return result;
      case 'taken':
        return { outcome: inProgress() };
      case 'known':
        return { outcome: await this.#known(result.payment, call) };
      case 'identifier':
        return { outcome: await this.#sameIdentifier(result.payment, call) };
      case 'limit':
        return { outcome: overLimit(result.reason) };
    }
  }

  /** Without a view of the chain, or over a fee payer not offered, nothing new begins; what was sold is still handed out. */
  async #nothingNew(call: PaidCall): Promise<Result> {
    const { id, feePayer } = call.payment.checked;
    const row = await this.#ledger.find(id);
    if (row && (row.state !== 'claimed' || row.aliasOf !== null)) return this.#known(row, call);
    if (row && row.leaseUntil > this.#now()) return inProgress();
    if (this.#desk.view()) {
      return refused(
        `transaction: fee payer ${feePayer} was not offered, sign over the one in this challenge`,
      );
    }
    return unavailable(`The chain can't be reached. ${NOT_CHARGED}; send the same payment again`, 5);
  }

  /** Makes this payment a second key to an earlier sale. It is never settled. */
  async #attach(call: PaidCall, claim: Claim, earlier: Row): Promise<Result> {
    if (!(await this.#ledger.attach(call.payment.checked.id, claim.claim, earlier.id))) {
      await this.#free(call, claim, false);
      return inProgress();
    }
    const row = (await this.#ledger.find(earlier.id)) ?? earlier;
    return this.#outcomeOf(row, call);
  }

  /** Verify alone. Frees the claim unless the payment is good. */
  async #verified(
    call: PaidCall,
    claim: Claim,
    abandoned: AbortSignal,
  ): Promise<{ kind: 'verified' } | Ended> {
    if (abandoned.aborted) return this.#forsaken(call, claim);
    if (!claim.payerKnown && !this.#verifies.take()) return this.#busy(call, claim);
    const verdict = await this.#verify(call);
    if (verdict.kind !== 'valid') return { outcome: await this.#notValid(call, claim, verdict, false) };
    return abandoned.aborted ? this.#forsaken(call, claim) : { kind: 'verified' };
  }

  /** `upfront`: verify, and whether anybody could be asked. Frees the claim unless the money may be asked for. */
  async #ready(call: PaidCall, claim: Claim, abandoned: AbortSignal): Promise<{ kind: 'verified' } | Ended> {
    const verified = await this.#verified(call, claim, abandoned);
    if ('outcome' in verified) return verified;
    const { upfront } = call;
    const instead =
      this.#orders && upfront ? await upfront.ready() : failure(503, `Nobody can be asked. ${NOT_CHARGED}`);
    if (!instead) return verified;
    await this.#free(call, claim, false);
    return { outcome: { kind: 'answer', answer: instead } };
  }

  /** Verify and work: beside each other for payers we know, else one after the other. Frees the claim unless there is an answer. */
  async #earn(call: PaidCall, claim: Claim, abandoned: AbortSignal): Promise<{ answer: Answer } | Ended> {
    if (abandoned.aborted) return this.#forsaken(call, claim);
    if (!claim.payerKnown && !this.#verifies.take()) return this.#busy(call, claim);
    const stop = new AbortController();
    abandoned.addEventListener('abort', () => stop.abort(abandoned.reason), { once: true });
    // A run that came to nothing because the facilitator was away must not use up the payment's runs one by one.
    const early = claim.payerKnown && claim.run === 1 ? this.#work(call, stop) : undefined;
    const verdict = await this.#verify(call);
    if (verdict.kind !== 'valid') {
      stop.abort(new Error('the payment was not valid'));
      return { outcome: await this.#notValid(call, claim, verdict, early !== undefined) };
    }
    if (!early && abandoned.aborted) return this.#forsaken(call, claim);
    if (!early && !claim.payerKnown && !this.#works.take()) return this.#busy(call, claim);
    const answer = await (early ?? this.#work(call, stop));
    if (abandoned.aborted || answer.status !== 200) {
      await this.#free(call, claim, true);
      return { outcome: { kind: 'answer', answer } };
    }
    return { answer };
  }

  async #verify(call: PaidCall): Promise<Verdict> {
    try {
      return await this.#facilitator.verify(this.#ask(call));
    } catch (error) {
      return { kind: 'unavailable', detail: String(error) };
    }
  }

  /** Never rejects, and resolves at the deadline or when `stop` aborts even if the handler ignores its signal. */
  async #work(call: PaidCall, stop: AbortController): Promise<Answer> {
    const seconds = this.#workDeadlineMs / 1000;
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      stop.abort(new Error('the work took too long'));
    }, this.#workDeadlineMs);
    const { signal } = stop;
    const stopped = new Promise<Answer>(resolve => {
      const end = (): void =>
        resolve(failure(502, `The work took longer than ${seconds} s. ${NOT_CHARGED}; try again`));
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
    });
    try {
      return await Promise.race([call.work(signal), stopped]);
    } catch (error) {
      this.#log.error({ operation: call.operation.id, error }, 'the work broke off');
      return failure(502, `The backend failed. ${NOT_CHARGED}; try again`);
    } finally {
      clearTimeout(timer);
      // Work that takes too long costs the buyer nothing and us a lot: from now on this payer's money is looked at first.
      if (late) await this.#distrust(call.payment.checked.payer);
    }
  }

  async #distrust(payer: string): Promise<void> {
    await this.#ledger.refused(payer).catch((error: unknown) => {
      this.#log.warn({ payer, error }, 'could not record that a payer is to be verified first');
    });
  }

  async #forsaken(call: PaidCall, claim: Claim, worked = false): Promise<Ended> {
    await this.#free(call, claim, worked);
    return { outcome: inProgress() };
  }

  async #busy(call: PaidCall, claim: Claim): Promise<Ended> {
    await this.#free(call, claim, false);
    return {
      outcome: unavailable(`Too many new payers at once. ${NOT_CHARGED}; send the same payment again`, 2),
    };
  }

  async #notValid(
    call: PaidCall,
    claim: Claim,
    verdict: Exclude<Verdict, { kind: 'valid' }>,
    worked: boolean,
  ): Promise<Outcome> {
    await this.#free(call, claim, worked);
    if (verdict.kind === 'unavailable') {
      this.#log.warn({ detail: verdict.detail }, 'facilitator did not verify');
      return unavailable(
        `The payment facilitator can't be reached. ${NOT_CHARGED}; send the same payment again`,
        5,
      );
    }
    if (claim.payerKnown) await this.#ledger.refused(call.payment.checked.payer);
    return refused(explain(verdict.reason));
  }

  /** `authorization`: keeps the answer, then moves the money, then hands the answer out. */
  #collect(call: PaidCall, claim: Claim, answer: Answer, abandoned: AbortSignal): Promise<Result> {
    const { id } = call.payment.checked;
    return this.#settle(call, claim, { answer, abandoned }, async signature => {
      const sale = { id, claim: claim.claim };
      await this.#recordDelivery(call, claim, answer, signature);
      return { kind: 'answer', answer, receipt: this.#receipt(call, signature), sale };
    });
  }

  /** `upfront`: moves the money, sees the transfer on chain, and owes the answer from then on. */
  #sellUpfront(call: PaidCall, claim: Claim, abandoned: AbortSignal): Promise<Result> {
    const { id } = call.payment.checked;
    return this.#settle(call, claim, { abandoned }, async signature => {
      if (!(await this.#confirm(id, signature))) return this.#inDoubt(call, claim, signature);
      if (!(await this.#ledger.owe(id, claim.claim, { settlement: signature }))) {
        return this.#inDoubt(call, claim, signature);
      }
      // From here on the order is anybody's to work on, but its caller is still here: an equal call is another sale.
      await this.#ledger.hold(id, claim.claim, 0);
      return { kind: 'ordered', id };
    });
  }

  /**
   * Asks for the money unless every caller is gone, or an equal call was sold meanwhile whose caller is gone, and goes on with `then`
   * if it moved. Once `settling` is written nothing but proof makes this a refusal, and a caller that leaves is noted down at once: what
   * it signs next attaches to this payment. Stock clients sign anew after every 503; one that uses payment-identifier says itself
   * whether it means a new sale.
   */
  async #settle(
    call: PaidCall,
    claim: Claim,
    { answer, abandoned }: { answer?: Answer; abandoned: AbortSignal },
    then: (signature: string) => Promise<Result>,
  ): Promise<Result> {
    const { id } = call.payment.checked;
    abandoned.addEventListener('abort', () => void this.#sentAway(id), { once: true });
    const moved = await this.#ledger.settling(id, claim.claim, {
      ...(answer ? { answer } : {}),
      ...(call.payment.identifier === null ? { call: callOf(call) } : {}),
      wanted: () => !abandoned.aborted,
    });
    if (typeof moved === 'object') return this.#attach(call, claim, moved.earlier);
    if (!moved)
      return abandoned.aborted
        ? (await this.#forsaken(call, claim, answer !== undefined)).outcome
        : elsewhere();
    let signature = '';
    try {
      const settlement = await this.#facilitator.settle(this.#ask(call));
      if (settlement.kind !== 'settled') return await this.#notSettled(call, claim, settlement);
      signature = settlement.signature;
      const doubted = this.#trust.facilitatorLied && !(await this.#confirm(id, signature));
      return doubted ? await this.#inDoubt(call, claim, signature) : await then(signature);
    } catch (error) {
      this.#log.error({ payment: id, operation: call.operation.id, error }, 'a settlement broke off');
      return this.#inDoubt(call, claim, signature);
    }
  }

  async #notSettled(
    call: PaidCall,
    claim: Claim,
    settlement: Exclude<Settlement, { kind: 'settled' }>,
  ): Promise<Outcome> {
    const { id, payer } = call.payment.checked;
    if (settlement.kind === 'unknown') {
      this.#log.warn({ payment: id, reason: settlement.reason }, 'settlement in doubt');
      return this.#inDoubt(call, claim, settlement.signature);
    }
    if (!(await this.#ledger.release(id, claim.claim, settlement.reason))) return this.#pending(call, '');
    if (claim.payerKnown) await this.#ledger.refused(payer);
    // The same message is never settled again, so the buyer must not sign it again.
    return {
      ...refused(explain(settlement.reason), false),
      receipt: this.#receipt(call, '', settlement.reason),
    };
  }

  /** Leaves the row to the chain, and to newly signed payments for the same call. */
  async #inDoubt(call: PaidCall, claim: Claim, signature: string): Promise<Outcome> {
    await this.#leave(call.payment.checked.id, claim.claim);
    return this.#pending(call, signature);
  }

  async #recordDelivery(call: PaidCall, claim: Claim, answer: Answer, signature: string): Promise<void> {
    const { id } = call.payment.checked;
    const answerExpiresAt = this.#now() + answerLifeMs(call.payment.identifier, answer.body.length);
    const { payerKnown } = claim;
    try {
      const how = { settlement: signature, answerExpiresAt, payerKnown };
      const moved = await this.#ledger.deliver(id, claim.claim, how);
      if (!moved)
        this.#log.error({ payment: id, signature }, 'a settled payment could not be marked delivered');
    } catch (error) {
      // The money moved: the buyer gets the answer whatever the disk says, the row is finished later.
      this.#log.error({ payment: id, error }, 'the ledger could not record a settlement');
    }
  }

  /** Keeps a caller waiting for its order, as long as it likes; then it may come back with the same payment. */
  async #hold(id: string, call: PaidCall): Promise<Outcome> {
    const row = await this.#ledger.find(id);
    if (!row || !this.#orders) return inProgress();
    if (row.state !== 'owed') return this.#settledOutcome(row, call);
    await this.#orders.take(row);
    const waiting = this.#held.get(id) ?? 0;
    if (waiting >= MAX_HELD_PER_ORDER || this.#heldInAll >= MAX_HELD) return this.#owed(row, call);
    this.#held.set(id, waiting + 1);
    this.#heldInAll += 1;
    try {
      return await this.#await(row, call, this.#orders);
    } finally {
      this.#heldInAll -= 1;
      const left = (this.#held.get(id) ?? 1) - 1;
      if (left > 0) this.#held.set(id, left);
      else this.#held.delete(id);
    }
  }

  async #await(row: Row, call: PaidCall, orders: Orders): Promise<Outcome> {
    const leaving = call.closing ? AbortSignal.any([call.gone, call.closing]) : call.gone;
    const failed = await orders.wait(row.id, call.upfront?.holdMs ?? 0, leaving);
    const now = (await this.#ledger.find(row.id)) ?? row;
    if (now.state !== 'owed') return this.#settledOutcome(now, call);
    if (failed === undefined) return this.#owed(now, call);
    return {
      kind: 'answer',
      answer: failure(502, failed),
      receipt: this.#receipt(call, now.settlement ?? ''),
    };
  }

  async #settledOutcome(row: Row, call: PaidCall): Promise<Outcome> {
    const result = await this.#outcomeOf(row, call);
    return result.kind === 'ordered' ? this.#owed(row, call) : this.#addressed(result, call);
  }

  #owed(row: Row, call: PaidCall): Outcome {
    return {
      ...unavailable('Paid, and in progress: send the same payment again', ORDER_RETRY_SECONDS),
      receipt: this.#receipt(call, row.settlement ?? ''),
    };
  }

  /** What a payment that was redeemed before is worth. */
  async #known(row: Row, call: PaidCall): Promise<Result> {
    if (row.operation !== call.operation.id || row.requestHash !== call.requestHash) {
      return otherCall(call.operation.id, row.operation);
    }
    if (row.identifier !== null && row.identifier !== call.payment.identifier) return otherIdentifier();
    const target = row.aliasOf === null ? row : await this.#ledger.find(row.aliasOf);
    return target ? this.#outcomeOf(target, call) : this.#redeliver(row, call, undefined);
  }

  async #sameIdentifier(row: Row, call: PaidCall): Promise<Result> {
    if (row.operation !== call.operation.id || row.requestHash !== call.requestHash) {
      return {
        kind: 'conflict',
        error: `This payment-identifier was used for another call. ${NOT_CHARGED}; use a new id`,
      };
    }
    if (row.state === 'delivered' && !(await this.#ledger.answer(row.id))) {
      return {
        kind: 'conflict',
        error: `This payment-identifier was used and its answer is no longer kept. ${NOT_CHARGED}; use a new id`,
      };
    }
    return this.#outcomeOf(row, call);
  }

  async #outcomeOf(row: Row, call: PaidCall): Promise<Result> {
    switch (row.state) {
      case 'delivered':
        return this.#redeliver(row, call, await this.#ledger.answer(row.id));
      case 'settling':
        return this.#pending(call, row.settlement ?? '');
      case 'claimed':
        return inProgress();
      case 'owed':
        return row.flow === 'upfront' ? { kind: 'ordered', id: row.id } : this.#makeGood(row, call);
      case 'released':
        return refused(
          `this payment was refused when it was settled (${row.reason ?? 'no reason given'}): sign a new one`,
          false,
        );
      case 'refunded':
        return {
          kind: 'answer',
          answer: failure(
            502,
            `This payment was refunded (${row.reason ?? 'by the operator'}): sign a new one`,
          ),
        };
    }
  }

  /**
   * A payment that was found on chain after its answer had been thrown away: the work is done again whenever the buyer asks,
   * until there is an answer.
   */
  async #makeGood(owed: Row, call: PaidCall): Promise<Outcome> {
    const { id } = owed;
    const row = await this.#ledger.adopt(id, this.#leaseMs);
    if (!row) return this.#owed(owed, call);
    try {
      if (row.state !== 'owed') return inProgress();
      const answer = await this.#work(call, new AbortController());
      const receipt = this.#receipt(call, row.settlement ?? '');
      if (answer.status !== 200) return { kind: 'answer', answer: failure(502, STILL_OWED), receipt };
      const how = {
        settlement: row.settlement ?? '',
        answerExpiresAt: this.#now() + answerLifeMs(row.identifier, answer.body.length),
      };
      const mine =
        (await this.#ledger.saveAnswer(id, row.claim, answer)) &&
        (await this.#ledger.deliver(id, row.claim, how));
      return mine
        ? { kind: 'answer', answer, receipt, sale: { id, claim: row.claim } }
        : this.#owed(row, call);
    } finally {
      await this.#leave(id, row.claim);
    }
  }

  #redeliver(row: Row, call: PaidCall, stored: StoredAnswer | undefined): Outcome {
    if (!stored || stored.expiresAt <= this.#now()) {
      return refused('this payment was used and its answer is no longer kept: sign a new one', false);
    }
    const { status, headers, body } = stored;
    return {
      kind: 'answer',
      answer: { status, headers, body },
      receipt: this.#receipt(call, row.settlement ?? ''),
      sale: { id: row.id },
    };
  }

  #pending(call: PaidCall, signature: string): Outcome {
    return {
      ...unavailable(
        'The settlement of this payment is not yet certain. Do not sign a new one: send the same payment again',
        5,
      ),
      receipt: this.#receipt(call, signature, 'settlement_pending'),
    };
  }

  #receipt(call: PaidCall, transaction: string, errorReason?: string): Receipt {
    return {
      success: errorReason === undefined,
      ...(errorReason === undefined ? {} : { errorReason }),
      payer: call.payment.checked.payer,
      transaction,
      network: this.#networkFor(call),
      ...(errorReason === undefined ? { amount: call.operation.price.atomic.toString() } : {}),
    };
  }

  #ask(call: PaidCall): Ask {
    const { transaction, feePayer } = call.payment.checked;
    return { transaction, requirements: this.#desk.requirements(call.operation, feePayer) };
  }

  async #free(call: PaidCall, claim: Claim, keepRun: boolean): Promise<void> {
    try {
      await this.#ledger.free(call.payment.checked.id, claim.claim, { keepRun });
    } catch (error) {
      this.#log.warn(
        { payment: call.payment.checked.id, error },
        'a claim could not be freed, its lease will end',
      );
    }
  }

  /** Somebody is told 503, or hung up, while the payment is worked on or paid: a stock client will sign anew. */
  #sentAway(id: string): Promise<void> {
    return this.#noted(id, () => this.#ledger.callerGone(id));
  }

  /** A lease that is not ended makes a newly signed payment for the same call a second sale. */
  #leave(id: string, claim: number): Promise<void> {
    return this.#noted(id, () => this.#ledger.leave(id, claim));
  }

  /** Resolves once the ledger knows it, so that nobody is sent away before; a ledger that is away longer is tried on in the background. */
  async #noted(id: string, note: () => Promise<unknown>): Promise<void> {
    const limit = new AbortController();
    const late = sleep(NOTED_WITHIN_MS, undefined, { signal: limit.signal, ref: false }).catch(() => {});
    await Promise.race([this.#note(id, note), late]);
    limit.abort();
  }

  async #note(id: string, note: () => Promise<unknown>): Promise<void> {
    for (let again = 0; ; again++) {
      try {
        return void (await note());
      } catch (error) {
        this.#log.warn({ payment: id, error, again }, 'could not record what became of a caller');
      }
      const ms = NOTE_AGAIN_MS[again];
      if (ms === undefined || this.#notesToRepeat >= MAX_NOTES_TO_REPEAT) return;
      this.#notesToRepeat += 1;
      await sleep(ms, undefined, { ref: false });
      this.#notesToRepeat -= 1;
    }
  }

  #broken(error: unknown): Outcome {
    this.#log.error({ error }, 'a charge broke off');
    return unavailable('The payment could not be processed. Send the same payment again', 5);
  }
}

function callOf({ payment, operation, requestHash }: PaidCall): Call {
  return { payer: payment.checked.payer, operation: operation.id, requestHash };
}

function elsewhere(): Outcome {
  return unavailable('This payment is being worked on elsewhere. Send the same payment again', 1);
}

/** Paid, and answered with a failure: a stock client signs anew after that, too. */
function isStillOwed(outcome: Outcome): boolean {
  return outcome.kind === 'answer' && outcome.receipt !== undefined && outcome.answer.status !== 200;
}
