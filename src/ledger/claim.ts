import { liveSince, readPayment } from './callers.js';
import type { Caller, PaymentLookup } from './callers.js';
import type { Now } from './clock.js';
import { execute, finish } from './engine.js';
import type { TransactionBody, Query } from './engine.js';
import { idOf } from './ids.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import * as claims from './queries/claims.js';
import { countAliases, lockRow } from './queries/equal-calls.js';
import type { LockedRow } from './queries/equal-calls.js';
import { hintOf, recentHint } from './queries/offered-hints.js';

/** What a server knows about a payment when it reserves it. */
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
  /** The name of the method that carried the payment. */
  method: string;
  /** What the rail needs to settle the payment and to prove its outcome, as text in the rail's own form (on Solana, the signed transaction). */
  evidence: string;
  /** The buyer's `payment-identifier`. */
  identifier?: string | null;
  /** The id of the HTTP or MCP request that presents the payment (`X-Request-Id`). */
  requestId?: string | undefined;
  flow: 'authorization' | 'upfront';
  /** Canonical JSON of the request, stored for work that may continue after its caller has left. */
  request?: string | null;
  /**
   * The rail's state before the claim, as numbers that never decrease. Only a transfer after `after` (on
   * Solana, a slot) counts as this payment's. From `position` (a block height), the rail calculates when the
   * transfer can no longer land.
   */
  after: bigint | number;
  position: bigint | number;
  leaseMs: number;
  /**
   * The hint (on Solana, the fee payer) with which the payment was signed, if this server does not offer it now. The payment is then claimed only if
   * a server on this ledger offered the hint in the last five minutes, for one of the facilitators in `by`.
   */
  hint?: { name: string; by: readonly string[] } | undefined;
  limits: { maxUnsettledPerPayer: number; maxUnsettledAmountPerPayer: bigint; maxRuns: number };
};

/** A reservation. Every later transition of the payment must present the number `claim`. */
export type Claim = {
  kind: 'claimed';
  claim: number;
  run: number;
  /** The payer has a delivered payment, and none of its payments was refused after that. */
  payerKnown: boolean;
  /** If this payment were settled now, it would redeem an earlier sale of the same call (see `settle`), so its work need not be done. */
  earlier: boolean;
  /** The request that made the claim, as a caller of the payment. */
  caller: Caller;
};

/** The limit that was reached. `aliases`: too many aliases of the earlier sale that the payment would redeem. */
export type ClaimLimit = 'payments' | 'amount' | 'runs' | 'answers' | 'aliases';

/**
 * - `claimed`: this server holds the payment until the lease ends.
 * - `known`: the ledger has the payment, and this request can't claim it: a worker holds it, it is past `claimed`, it is an alias (it redeems
 *   the answer of another payment), or it now pays for a call other than the one that this request waits for.
 * - `identifier`: the payer has used this payment-identifier for another payment, `payment`.
 * - `unoffered`: no server on this ledger has offered the hint recently.
 * - `limit`: the payer has too many unsettled payments or too much money in them, or the payment has no runs left, the answer store has no
 *   space, or the earlier sale has too many aliases.
 */
export type ClaimResult =
  | Claim
  | { kind: 'known'; seen: PaymentLookup }
  | { kind: 'identifier'; payment: Payment }
  | { kind: 'unoffered' }
  | { kind: 'limit'; reason: ClaimLimit };

export type ClaimContext = {
  readonly owner: string;
  readonly now: Now;
  /** When the claim was requested (`performance.now()`). */
  readonly asked: number;
  /** A number that no earlier claim of this owner had. */
  readonly fresh: number;
  readonly answersFull: boolean;
  /** Set if the request is already waiting for this payment. */
  readonly caller: Caller | undefined;
};

const MAX_AMOUNT = 10n ** 16n;
/** How many other payments may redeem one sale. */
export const MAX_ALIASES = 32;
/** How long payments signed with a hint are accepted after it was last offered. */
const HINT_LIFE_MS = 5 * 60_000;

/**
 * @throws TypeError for programming errors, before the claim is queued, because an operation that throws makes the others in its
 * transaction run again
 */
export function checkClaim(request: ClaimRequest): void {
  if (!/^[0-9a-f]{64}$/.test(request.id)) throw new TypeError(`not a payment id: ${request.id}`);
  if (request.amount < 0n || request.amount > MAX_AMOUNT)
    throw new TypeError(`the amount ${request.amount} (atomic units) is out of range`);
  for (const value of [Number(request.after), Number(request.position), request.leaseMs])
    if (!Number.isSafeInteger(value) || value < 0) throw new TypeError(`not a position or lease: ${value}`);
}

/** Reserves a payment, or returns why it can't. The payer is locked, so that the counts of its payments stay correct until the commit. */
export function* claimPayment(request: ClaimRequest, context: ClaimContext): TransactionBody<ClaimResult> {
  const { id, payer, operation, requestHash: request_hash } = request;
  const { now } = context;
  const [view] = yield* execute(claims.claimView({ id, payer, operation, request_hash, now: now() }));
  if (!view) throw new Error('a count has one row');
  const [row] = view.seen === null ? [] : yield* execute(lockRow({ id, now: now() }));
  if (row && !mayTake(row, request, context.caller)) return yield* known(request, now);
  return yield* reserve(request, view, row, context);
}

function* reserve(
  request: ClaimRequest,
  view: claims.ClaimView,
  row: LockedRow | undefined,
  context: ClaimContext,
): TransactionBody<ClaimResult> {
  const { now } = context;
  const earlier = redeemedBy(request, view.earlier && idOf(view.earlier));
  const refusal =
    (yield* hintConflict(request, now)) ??
    (yield* identifierConflict(request, now)) ??
    limitOf(request, context, { ...view, runs: row?.runs ?? 0 }) ??
    (yield* aliasLimit(earlier));
  if (refusal) return refusal;
  const [taken] = yield* finish(takeQuery(request, context, row !== undefined));
  if (!taken) return yield* known(request, now);
  return {
    kind: 'claimed',
    claim: taken.claim,
    run: taken.runs,
    payerKnown: view.known === 1,
    earlier: earlier !== null,
    caller: (row && context.caller) ?? { id: request.id, number: taken.callers },
  };
}

/**
 * Whether the request may claim a payment that is in the ledger. It may if nothing was paid and no worker holds the payment. A new request may use
 * the payment for another call; a request that is already waiting for it may use it only for the same call.
 */
function mayTake(row: LockedRow, request: ClaimRequest, caller: Caller | undefined): boolean {
  if (row.state !== 'claimed' || row.alias_of !== null || row.lease_until > row.now) return false;
  if (!caller) return true;
  const same = row.operation === request.operation && row.request_hash === request.requestHash;
  // The same call with another identifier is another sale.
  const sameSale = row.identifier === (request.identifier ?? null);
  return same && sameSale && row.caller_until > row.now;
}

function* known({ id, payer }: ClaimRequest, now: Now): TransactionBody<ClaimResult> {
  return { kind: 'known', seen: yield* readPayment(id, payer, now) };
}

/** A payment with a payment-identifier never redeems an earlier sale of the same call, because the identifier decides whether it is a new sale. */
function redeemedBy({ identifier }: ClaimRequest, earlier: string | null): string | null {
  return identifier === null || identifier === undefined ? earlier : null;
}

/** Limits the aliases of a sale, because signing another payment costs the buyer nothing. */
function* aliasLimit(earlier: string | null): TransactionBody<ClaimResult | undefined> {
  if (earlier === null) return undefined;
  const [count] = yield* execute(countAliases({ id: earlier }));
  return count && count.aliases >= MAX_ALIASES ? { kind: 'limit', reason: 'aliases' } : undefined;
}

function limitOf(
  { amount, limits }: ClaimRequest,
  { answersFull }: ClaimContext,
  open: { runs: number; payments: number; amount: string },
): ClaimResult | undefined {
  if (open.runs >= limits.maxRuns) return { kind: 'limit', reason: 'runs' };
  if (answersFull) return { kind: 'limit', reason: 'answers' };
  if (open.payments + 1 > limits.maxUnsettledPerPayer) return { kind: 'limit', reason: 'payments' };
  if (BigInt(open.amount) + amount > limits.maxUnsettledAmountPerPayer)
    return { kind: 'limit', reason: 'amount' };
  return undefined;
}

/** Refuses a payment signed with a hint that neither this server nor another one on this ledger has offered recently. */
function* hintConflict({ hint }: ClaimRequest, now: Now): TransactionBody<ClaimResult | undefined> {
  if (!hint) return undefined;
  const [row] = yield* execute(recentHint({ hint: hint.name, now: now(), ms: HINT_LIFE_MS }));
  const offered = row && hintOf(row);
  const counts = offered && (offered.by === undefined || hint.by.includes(offered.by));
  return counts ? undefined : { kind: 'unoffered' };
}

function* identifierConflict(request: ClaimRequest, now: Now): TransactionBody<ClaimResult | undefined> {
  const { identifier, payer, id } = request;
  if (identifier === null || identifier === undefined) return undefined;
  const [other] = yield* execute(claims.sameIdentifier({ payer, identifier, id, now: now() }));
  return other && { kind: 'identifier', payment: paymentOf(other) };
}

function takeQuery(request: ClaimRequest, context: ClaimContext, exists: boolean): Query<claims.ClaimedRow> {
  const { owner, fresh, now, caller } = context;
  const row = {
    id: request.id,
    operation: request.operation,
    request_hash: request.requestHash,
    request: request.request ?? null,
    payer: request.payer,
    amount: request.amount.toString(),
    network: request.network,
    method: request.method,
    x402_version: request.method === 'x402-v1' ? 1 : 2,
    signed_transaction: request.evidence,
    identifier: request.identifier ?? null,
    request_id: request.requestId ?? null,
    flow: request.flow,
    owner,
    claim_slot: Number(request.after),
    claim_height: Number(request.position),
    fresh,
    lease_ms: request.leaseMs,
    live_ms: liveSince(context.asked),
    now: now(),
  };
  if (!exists) return claims.insert(row);
  return caller ? claims.retakeForCaller(row) : claims.retake(row);
}
