import type { IncomingHttpHeaders } from 'node:http';
import type { PricedOperation } from '../contract.js';
import type { Claim, Ledger, Payment as Row, StoredAnswer } from '../ledger/store.js';
import { Bucket } from './bucket.js';
import type { Desk } from './desk.js';
import type { Ask, Facilitator, Settlement, Verdict } from './facilitator.js';
import { requirementsOf } from './offer.js';
import { TransactionChecker, type CheckedTransaction } from './transaction.js';
import { decodePayment, type Accepted, type Receipt, type WirePayment } from './wire.js';

/** A payment that matches our offer and whose transaction passed the local check. Nobody was asked about it yet. */
export type Payment = {
  version: 1 | 2;
  identifier: string | null;
  checked: CheckedTransaction;
};

export type Examined =
  | { kind: 'unpaid' }
  | { kind: 'refused'; version: 1 | 2; error: string }
  | { kind: 'payment'; payment: Payment };

/** An answer as bytes, checked against the contract: what is stored, and sent once it is paid. */
export type Answer = { status: number; headers: Record<string, string>; body: Buffer };

/** A paid call whose body is valid. */
export type PaidCall = {
  operation: PricedOperation;
  payment: Payment;
  /** Hex sha256 over operation id and canonical body: what "the same call" means. */
  requestHash: string;
  /** Does the work; resolves to any declared answer but 402, never rejects. */
  work: (signal: AbortSignal) => Promise<Answer>;
  /** Aborts when this caller's connection is gone. */
  gone: AbortSignal;
};

export type Outcome =
  /** To be sent as it is. With a receipt when it was paid. */
  | { kind: 'answer'; answer: Answer; receipt?: Receipt }
  /** 402. `fresh`: a new signature over the offered blockhash will do. */
  | { kind: 'refused'; error: string; fresh: boolean; receipt?: Receipt }
  /** 400 although the body is valid. */
  | { kind: 'conflict'; error: string }
  /** 503. The same payment may be sent again. */
  | { kind: 'unavailable'; error: string; retryAfterSeconds: number; receipt?: Receipt };

export type Log = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
};

const WORK_DEADLINE_MS = 20_000;
/** Longer than verify, work and settle may take together, so that a live claim is never taken for a dead one. */
const LEASE_MS = 90_000;
const MAX_RUNS = 3;
/** Callers that may wait for one run of one payment. */
const MAX_CALLERS_PER_RUN = 512;
const ANSWER_LIFE_MS = 10 * 60_000;
const IDENTIFIED_ANSWER_LIFE_MS = 24 * 60 * 60_000;
const IDENTIFIED_ANSWER_BYTES = 256 * 1024;
/** What one payer may have unsettled at a time, in atomic units: 100 USDC. */
const MAX_UNSETTLED_AMOUNT = 100_000_000n;
/** Payers that never paid share these: their wallets may be empty. */
const UNKNOWN_PAYER_BUCKET = { rate: 50, burst: 500 };
const NOT_CHARGED = 'You were not charged';

type Run = {
  operation: string;
  requestHash: string;
  identifier: string | null;
  callers: number;
  /** Stops verify and work when every caller is gone. Has no effect once `settling` is written. */
  abandon: AbortController;
  outcome: Promise<Outcome>;
};

/**
 * Takes the money for the work, once (x402 flow `authorization`: verify → work → settle → answer). One payment is one run,
 * whoever sends it and however often: copies that arrive meanwhile wait for the same outcome, later ones get the stored answer.
 */
export class Charge {
  readonly #ledger: Ledger;
  readonly #facilitator: Facilitator;
  readonly #desk: Desk;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #maxUnsettled: number;
  readonly #workDeadlineMs: number;
  readonly #checker = new TransactionChecker();
  readonly #runs = new Map<string, Run>();
  readonly #verifies: Bucket;
  readonly #works: Bucket;

  constructor(options: {
    ledger: Ledger;
    facilitator: Facilitator;
    desk: Desk;
    log: Log;
    maxUnsettledPerPayer: number;
    unknownPayers?: { rate: number; burst: number };
    /** How long the work may take. Default 20 s. */
    workDeadlineMs?: number;
    now?: () => number;
  }) {
    this.#ledger = options.ledger;
    this.#facilitator = options.facilitator;
    this.#desk = options.desk;
    this.#log = options.log;
    this.#now = options.now ?? Date.now;
    this.#maxUnsettled = options.maxUnsettledPerPayer;
    this.#workDeadlineMs = options.workDeadlineMs ?? WORK_DEADLINE_MS;
    this.#verifies = new Bucket(options.unknownPayers ?? UNKNOWN_PAYER_BUCKET);
    this.#works = new Bucket(options.unknownPayers ?? UNKNOWN_PAYER_BUCKET);
  }

  /** Reads and checks the payment of a request without asking anybody: no call, no body, no ledger. */
  examine(headers: IncomingHttpHeaders, operation: PricedOperation): Examined {
    const decoded = decodePayment(headers);
    if (decoded.kind === 'none') return { kind: 'unpaid' };
    if (decoded.kind === 'fault') return { kind: 'refused', version: 2, error: decoded.error };
    const { payment: wire } = decoded;
    const mismatch = this.#mismatch(wire, operation);
    if (mismatch) return { kind: 'refused', version: wire.version, error: mismatch };
    const { asset, payTo } = this.#desk.terms;
    const check = this.#checker.check(wire.transaction, { asset, payTo, amount: operation.price.atomic });
    if (!check.ok) return { kind: 'refused', version: wire.version, error: check.error };
    return {
      kind: 'payment',
      payment: { version: wire.version, identifier: wire.identifier ?? null, checked: check.checked },
    };
  }

  /** Redeems a payment for the answer of a call. Never rejects. */
  async redeem(call: PaidCall): Promise<Outcome> {
    const { id } = call.payment.checked;
    const running = this.#runs.get(id);
    if (running && !running.abandon.signal.aborted) return this.#join(running, call);
    if (running) {
      if (running.callers >= MAX_CALLERS_PER_RUN) return inProgress();
      running.callers += 1;
      await running.outcome;
      return this.redeem(call);
    }
    const abandon = new AbortController();
    const run: Run = {
      operation: call.operation.id,
      requestHash: call.requestHash,
      identifier: call.payment.identifier,
      callers: 0,
      abandon,
      outcome: this.#run(call, abandon.signal).catch(error => this.#broken(error)),
    };
    this.#runs.set(id, run);
    void run.outcome.finally(() => this.#runs.delete(id));
    return this.#wait(run, call);
  }

  /** The answer of this payment was written out with the socket intact. */
  written(payment: Payment): void {
    this.#ledger.written(payment.checked.id).catch((error: unknown) => {
      this.#log.warn({ payment: payment.checked.id, error }, 'could not record that an answer was written');
    });
  }

  /** Waits until nothing is in flight any more. */
  async idle(): Promise<void> {
    while (this.#runs.size > 0) await Promise.allSettled([...this.#runs.values()].map(run => run.outcome));
  }

  #mismatch(wire: WirePayment, operation: PricedOperation): string | undefined {
    const { network, v1Network } = this.#desk.terms;
    if (wire.scheme !== 'exact') return `scheme: '${wire.scheme}' is not offered, only exact is`;
    if (wire.network !== network && wire.network !== v1Network) {
      return `network: '${wire.network}' is not offered, only ${network} (v2) and ${v1Network} (v1) are`;
    }
    return wire.accepted && this.#mismatchOfAccepted(wire.accepted, operation);
  }

  #mismatchOfAccepted(accepted: Accepted, operation: PricedOperation): string | undefined {
    const { asset, payTo } = this.#desk.terms;
    const price = operation.price.atomic.toString();
    const amount = accepted.amount ?? accepted.maxAmountRequired;
    if (amount !== price) return `amount: accepted ${amount}, the price is ${price}`;
    if (accepted.asset !== asset) return `asset: accepted ${accepted.asset}, must be ${asset}`;
    if (accepted.payTo !== payTo) return `payTo: accepted ${accepted.payTo}, must be ${payTo}`;
    const flow = accepted.extra?.paymentFlow ?? 'authorization';
    if (flow !== operation.flow) return `paymentFlow: accepted ${flow}, must be ${operation.flow}`;
    return undefined;
  }

  async #join(run: Run, call: PaidCall): Promise<Outcome> {
    if (run.operation !== call.operation.id || run.requestHash !== call.requestHash)
      return otherCall(call, run.operation);
    if (run.identifier !== null && run.identifier !== call.payment.identifier) return otherIdentifier();
    if (run.callers >= MAX_CALLERS_PER_RUN) return inProgress();
    return this.#wait(run, call);
  }

  async #wait(run: Run, call: PaidCall): Promise<Outcome> {
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
      return this.#addressed(await run.outcome, call);
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

  async #run(call: PaidCall, abandoned: AbortSignal): Promise<Outcome> {
    const claim = await this.#claim(call);
    if ('outcome' in claim) return claim.outcome;
    try {
      const earned = await this.#earn(call, claim, abandoned);
      if ('outcome' in earned) return earned.outcome;
      return await this.#collect(call, claim, earned.answer);
    } catch (error) {
      await this.#free(call, claim, true);
      throw error;
    }
  }

  /** Reserves the payment, or says why it can't be had. */
  async #claim(call: PaidCall): Promise<Claim | { outcome: Outcome }> {
    const { checked, version, identifier } = call.payment;
    const view = this.#desk.view();
    if (!view || !this.#desk.isOffered(checked.feePayer)) {
      // Without these nothing new begins, but what was sold before is still handed out.
      const row = await this.#ledger.find(checked.id);
      if (row && row.state !== 'claimed') return { outcome: await this.#known(row, call) };
      if (row && row.leaseUntil > this.#now()) return { outcome: inProgress() };
      return {
        outcome: view
          ? refused(
              `transaction: fee payer ${checked.feePayer} was not offered, sign over the one in this challenge`,
            )
          : unavailable(`The chain can't be reached. ${NOT_CHARGED}; send the same payment again`, 5),
      };
    }
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
      slot: view.slot,
      height: view.height,
      leaseMs: LEASE_MS,
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

  /** Verify and work: beside each other for payers we know, else one after the other. Frees the claim unless there is an answer. */
  async #earn(
    call: PaidCall,
    claim: Claim,
    abandoned: AbortSignal,
  ): Promise<{ answer: Answer } | { outcome: Outcome }> {
    if (abandoned.aborted) {
      await this.#free(call, claim, false);
      return { outcome: inProgress() };
    }
    const invalid = new AbortController();
    const stop = AbortSignal.any([abandoned, invalid.signal]);
    if (!claim.payerKnown && !this.#verifies.take()) return this.#busy(call, claim);
    // A run that came to nothing because the facilitator was away must not use up the payment's runs one by one.
    const early = claim.payerKnown && claim.run === 1 ? this.#work(call, stop) : undefined;
    const verdict = await this.#verify(call);
    if (verdict.kind !== 'valid') {
      invalid.abort(new Error('the payment was not valid'));
      return { outcome: await this.#notValid(call, claim, verdict, early !== undefined) };
    }
    if (!early && abandoned.aborted) {
      await this.#free(call, claim, false);
      return { outcome: inProgress() };
    }
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

  /** Never rejects, and resolves at the deadline or at `stop` even if the handler ignores its signal. */
  async #work(call: PaidCall, stop: AbortSignal): Promise<Answer> {
    const limit = new AbortController();
    const late = `The work took longer than ${this.#workDeadlineMs / 1000} s. ${NOT_CHARGED}; try again`;
    const timer = setTimeout(() => limit.abort(new Error('the work took too long')), this.#workDeadlineMs);
    const signal = AbortSignal.any([stop, limit.signal]);
    const stopped = new Promise<Answer>(resolve => {
      const end = (): void => resolve(failure(502, late));
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
    }
  }

  async #busy(call: PaidCall, claim: Claim): Promise<{ outcome: Outcome }> {
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

  /** Saves the answer, then moves the money, then hands the answer out. */
  async #collect(call: PaidCall, claim: Claim, answer: Answer): Promise<Outcome> {
    const { id } = call.payment.checked;
    const mine =
      (await this.#ledger.saveAnswer(id, claim.claim, answer)) &&
      (await this.#ledger.settling(id, claim.claim));
    if (!mine)
      return unavailable('This payment is being worked on elsewhere. Send the same payment again', 1);
    // From here on nothing but proof makes this a refusal, not even a fault of our own.
    try {
      const settlement = await this.#facilitator.settle(this.#ask(call));
      return await this.#settled(call, claim, answer, settlement);
    } catch (error) {
      this.#log.error({ payment: id, operation: call.operation.id, error }, 'a settlement broke off');
      return this.#pending(call, '');
    }
  }

  async #settled(call: PaidCall, claim: Claim, answer: Answer, settlement: Settlement): Promise<Outcome> {
    const { id } = call.payment.checked;
    const payment = { payment: id, operation: call.operation.id };
    if (settlement.kind === 'refused') {
      if (!(await this.#ledger.release(id, claim.claim, settlement.reason))) return this.#pending(call, '');
      if (claim.payerKnown) await this.#ledger.refused(call.payment.checked.payer);
      // The same message is never settled again, so the buyer must not sign it again.
      return {
        ...refused(explain(settlement.reason), false),
        receipt: this.#receipt(call, '', settlement.reason),
      };
    }
    if (settlement.kind === 'unknown') {
      this.#log.warn({ ...payment, reason: settlement.reason }, 'settlement in doubt');
      return this.#pending(call, settlement.signature);
    }
    try {
      const { signature } = settlement;
      const life = call.payment.identifier && answer.body.length < IDENTIFIED_ANSWER_BYTES;
      const answerExpiresAt = this.#now() + (life ? IDENTIFIED_ANSWER_LIFE_MS : ANSWER_LIFE_MS);
      const moved = await this.#ledger.deliver(id, claim.claim, { settlement: signature, answerExpiresAt });
      if (!moved)
        this.#log.error({ ...payment, signature }, 'a settled payment could not be marked delivered');
    } catch (error) {
      // The money moved: the buyer gets the answer whatever the disk says, the row is finished later.
      this.#log.error({ ...payment, error }, 'the ledger could not record a settlement');
    }
    return { kind: 'answer', answer, receipt: this.#receipt(call, settlement.signature) };
  }

  /** What a payment that once reached `settling` is worth. */
  async #known(row: Row, call: PaidCall): Promise<Outcome> {
    if (row.operation !== call.operation.id || row.requestHash !== call.requestHash) {
      return otherCall(call, row.operation);
    }
    if (row.identifier !== null && row.identifier !== call.payment.identifier) return otherIdentifier();
    return this.#outcomeOf(row, call);
  }

  async #sameIdentifier(row: Row, call: PaidCall): Promise<Outcome> {
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

  async #outcomeOf(row: Row, call: PaidCall): Promise<Outcome> {
    switch (row.state) {
      case 'delivered':
        return this.#redeliver(row, call, await this.#ledger.answer(row.id));
      case 'settling':
        return this.#pending(call, row.settlement ?? '');
      case 'claimed':
        return inProgress();
      case 'owed':
        return {
          ...unavailable('Paid, and still being worked on: send the same payment again', 5),
          receipt: this.#receipt(call, row.settlement ?? ''),
        };
      case 'released':
        return refused(
          `this payment was refused when it was settled (${row.reason ?? 'no reason given'}): sign a new one`,
          false,
        );
      case 'refunded':
        return { kind: 'answer', answer: failure(502, 'This payment was refunded: sign a new one') };
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
    return { transaction, requirements: requirementsOf(call.operation, this.#desk.terms, feePayer) };
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

  #broken(error: unknown): Outcome {
    this.#log.error({ error }, 'a charge broke off');
    return unavailable('The payment could not be processed. Send the same payment again', 5);
  }
}

function refused(error: string, fresh = true): Outcome & { kind: 'refused' } {
  return { kind: 'refused', error, fresh };
}

function unavailable(error: string, retryAfterSeconds: number): Outcome & { kind: 'unavailable' } {
  return { kind: 'unavailable', error: `${error}.`, retryAfterSeconds };
}

function inProgress(): Outcome {
  return unavailable('This payment is being worked on. Send the same payment again', 1);
}

function failure(status: number, error: string): Answer {
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    body: Buffer.from(JSON.stringify({ error })),
  };
}

function otherCall(call: PaidCall, operation: string): Outcome {
  const what = operation === call.operation.id ? 'with another body' : `of ${operation}`;
  return refused(`this payment was made for a call ${what}: sign a new one for this call`, false);
}

function otherIdentifier(): Outcome {
  return refused('this payment carried a payment-identifier and is redeemed only with that same id', false);
}

function overLimit(reason: 'payments' | 'amount' | 'runs' | 'answers'): Outcome {
  if (reason === 'runs') {
    return refused(
      `the work for this payment failed ${MAX_RUNS} times and nothing was charged: sign a new payment`,
      false,
    );
  }
  if (reason === 'answers')
    return unavailable(`The store of paid answers is full. ${NOT_CHARGED}; try later`, 30);
  const what = reason === 'payments' ? 'Too many' : 'Too much in';
  return unavailable(
    `${what} unsettled payments of this payer. ${NOT_CHARGED}; send the same payment again`,
    2,
  );
}

/** A simulation failure says in Solana's words what a buyer can mend. */
function explain(reason: string): string {
  if (/blockhash not found|BlockhashNotFound/i.test(reason)) {
    return `blockhash: expired or unknown, sign a new payment (${reason})`;
  }
  if (/insufficient|custom program error: #?(0x)?1\b|Custom":\s*1\b/i.test(reason)) {
    return `funds: the payer has too little USDC (${reason})`;
  }
  if (/AccountNotFound|InvalidAccountData|could not find account/i.test(reason)) {
    return `funds: the payer has no USDC account (${reason})`;
  }
  return `refused by the facilitator: ${reason}`;
}
