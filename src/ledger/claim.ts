import { ask } from './engine.js';
import type { Dialect, Operation } from './engine.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import type { PaymentRow } from './schema.js';
import {
  claimView,
  find,
  findToChange,
  insert,
  lockPayer,
  retake,
  sameIdentifier,
} from './queries/claims.js';
import type { NewClaim } from './queries/claims.js';
import { countAliases } from './queries/aliases.js';

/** A payment that asks to be reserved. */
export type ClaimRequest = {
  /** sha256 of the signed message bytes, 64 lower-case hex digits. */
  id: string;
  operation: string;
  /** sha256 over the operation and the canonical body. */
  requestHash: string;
  payer: string;
  /** Atomic units, at most 10^16 (ten billion USDC). */
  amount: bigint;
  network: string;
  x402Version: 1 | 2;
  /** The signed transaction, base64. */
  transaction: string;
  /** The buyer's `payment-identifier`. */
  identifier?: string | null;
  flow: 'authorization' | 'upfront';
  /** Canonical JSON of the request, for work that outlives its caller. */
  request?: string | null;
  /** Slot and block height of the chain, read before the claim. */
  slot: bigint | number;
  height: bigint | number;
  leaseMs: number;
  limits: { maxUnsettledPerPayer: number; maxUnsettledAmountPerPayer: bigint; maxRuns: number };
};

/**
 * A reservation: `claim` is the number that every move repeats. `earlier`: the sale that this payment, being signed anew for the same
 * call, redeems instead: same payer, operation and body, no identifier, paid or possibly paid, not written out, and its caller is gone
 * or was sent away (`leave`), or the server is gone that the caller waited at. A worker that adopted it does not count as a caller.
 */
export type Claim = {
  kind: 'claimed';
  claim: number;
  run: number;
  payerKnown: boolean;
  earlier: Payment | undefined;
};

/** `aliases`: of the earlier sale that the payment would redeem. */
export type Limit = 'payments' | 'amount' | 'runs' | 'answers' | 'aliases';

/**
 * - `claimed`: ours until the lease ends; `payerKnown` = has a delivered payment and none refused since.
 * - `taken`: somebody works on it, for `leaseMs` more unless renewed.
 * - `known`: it was settled, or may have been, or is an alias; `payment` tells.
 * - `identifier`: the payer used this identifier for `payment`, which is not this one.
 * - `limit`: too many unsettled payments or too much money in them, no run left, no room for an answer, or too many aliases.
 */
export type Claimed =
  | Claim
  | { kind: 'taken'; leaseMs: number; requestHash: string; operation: string }
  | { kind: 'known'; payment: Payment }
  | { kind: 'identifier'; payment: Payment }
  | { kind: 'limit'; reason: Limit };

export type ClaimContext = {
  readonly dialect: Dialect;
  readonly owner: string;
  readonly now: number;
  /** A number no claim of this owner had before. */
  readonly fresh: number;
  readonly answersFull: boolean;
};

const NOTHING_SEEN = { payments: 0, amount: '0', known: null, seen: null, earlier: null };

const MAX_AMOUNT = 10n ** 16n;
/** Newly signed payments that may redeem one sale. */
export const MAX_ALIASES = 32;

/** @throws TypeError for what only a mistake in the program can cause; a queued statement must never raise. */
export function checkClaim(request: ClaimRequest): void {
  if (!/^[0-9a-f]{64}$/.test(request.id)) throw new TypeError(`not a payment id: ${request.id}`);
  if (request.amount < 0n || request.amount > MAX_AMOUNT)
    throw new TypeError(`an amount of ${request.amount} atomic units is out of range`);
  for (const value of [Number(request.slot), Number(request.height), request.leaseMs])
    if (!Number.isSafeInteger(value) || value < 0)
      throw new TypeError(`not a slot, height or lease: ${value}`);
}

/** Reserves a payment, or says why not. Everything it counts is counted inside its own transaction. */
export function* claimPayment(request: ClaimRequest, context: ClaimContext): Operation<Claimed> {
  const { now } = context;
  const { id, payer, operation, requestHash: request_hash } = request;
  if (context.dialect.concurrentWriters) {
    // Copies of a payment need not queue up behind their payer's other claims to learn that they are copies.
    const [seen] = yield* ask(find({ id }));
    const standing = seen && standingOf(seen, now);
    if (standing) return standing;
    yield* ask(lockPayer({ payer }));
  }
  const look = yield* ask(claimView({ id, payer, operation, request_hash, now }));
  const view = look[0] ?? NOTHING_SEEN;
  const earlier = redeemedBy(request, view.earlier);
  const [row] = view.seen === null ? [] : yield* ask(findToChange({ id }));
  const conflict =
    (row && standingOf(row, now)) ??
    (yield* identifierConflict(request, context)) ??
    limitOf(request, context, { runs: row?.runs ?? 0, ...view }) ??
    (yield* aliasLimit(earlier));
  if (conflict) return conflict;
  const fresh = rowOf(request, context, row);
  const done = yield* ask(row ? retake(fresh) : insert(fresh));
  if (done.length !== 1)
    return { kind: 'taken', leaseMs: 1_000, requestHash: request.requestHash, operation: request.operation };
  return {
    kind: 'claimed',
    claim: fresh.claim,
    run: fresh.runs,
    payerKnown: view.known === 1,
    earlier: yield* earlierSale(earlier),
  };
}

/** One that uses payment-identifier says itself whether it means a new sale. */
function redeemedBy({ identifier }: ClaimRequest, earlier: string | null): string | null {
  return identifier === null || identifier === undefined ? earlier : null;
}

function* earlierSale(id: string | null): Operation<Payment | undefined> {
  if (id === null) return undefined;
  const [sale] = yield* ask(find({ id }));
  return sale && paymentOf(sale);
}

/** New signatures cost a caller nothing, so one sale takes only so many of them. */
function* aliasLimit(earlier: string | null): Operation<Claimed | undefined> {
  if (earlier === null) return undefined;
  const [count] = yield* ask(countAliases({ id: earlier }));
  return count && count.aliases >= MAX_ALIASES ? { kind: 'limit', reason: 'aliases' } : undefined;
}

function limitOf(
  { amount, limits }: ClaimRequest,
  { answersFull }: ClaimContext,
  open: { runs: number; payments: number; amount: string },
): Claimed | undefined {
  if (open.runs >= limits.maxRuns) return { kind: 'limit', reason: 'runs' };
  if (answersFull) return { kind: 'limit', reason: 'answers' };
  if (open.payments + 1 > limits.maxUnsettledPerPayer) return { kind: 'limit', reason: 'payments' };
  if (BigInt(open.amount) + amount > limits.maxUnsettledAmountPerPayer)
    return { kind: 'limit', reason: 'amount' };
  return undefined;
}

function standingOf(row: PaymentRow, now: number): Claimed | undefined {
  if (row.state !== 'claimed' || row.alias_of !== null) return { kind: 'known', payment: paymentOf(row) };
  if (row.lease_until <= now) return undefined;
  return {
    kind: 'taken',
    leaseMs: row.lease_until - now,
    requestHash: row.request_hash,
    operation: row.operation,
  };
}

function* identifierConflict(request: ClaimRequest, { now }: ClaimContext): Operation<Claimed | undefined> {
  const { identifier, payer, id } = request;
  if (identifier === null || identifier === undefined) return undefined;
  const [other] = yield* ask(sameIdentifier({ payer, identifier, id, now }));
  return other && { kind: 'identifier', payment: paymentOf(other) };
}

function rowOf(request: ClaimRequest, context: ClaimContext, former: PaymentRow | undefined): NewClaim {
  const height = Number(request.height);
  return {
    id: request.id,
    operation: request.operation,
    request_hash: request.requestHash,
    request: request.request ?? null,
    payer: request.payer,
    amount: request.amount.toString(),
    network: request.network,
    x402_version: request.x402Version,
    signed_transaction: request.transaction,
    identifier: request.identifier ?? null,
    flow: request.flow,
    claim: Math.max((former?.claim ?? 0) + 1, context.fresh),
    owner: context.owner,
    lease_until: context.now + request.leaseMs,
    caller_until: context.now + request.leaseMs,
    runs: (former?.runs ?? 0) + 1,
    claim_slot: Number(request.slot),
    // Absence is judged from the last claim: an earlier height would call a payment dead too soon.
    claim_height: Math.max(former?.claim_height ?? 0, height),
    created_at: context.now,
  };
}
