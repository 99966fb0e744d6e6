import { LRUCache } from 'lru-cache';
import type { BlockedPayers } from '../admission/blocked-payers.js';
import { NOT_CHARGED } from '../contract/not-charged.js';
import type { PricedOperation } from '../contract/contract.js';
import { endOfPeriod, type FreeQuota } from '../contract/read-quota.js';
import type { AskedCheck } from '../contract/routes.js';
import type { AnyAsked } from '../contract/operation.js';
import type { Ledger, Use } from '../ledger/store.js';
import type { Carrier } from '../methods/method.js';
import { DeadlineExceeded, withDeadline } from '../net/deadline.js';
import { failure, isSuccess, type Answer, type Failure, type Success } from '../sale/outcome.js';
import { SIGN_IN_HEADER, type SignIns } from '../sign-in/sign-ins.js';
import { BodiesFull, BodyFault } from './body.js';
import type { BudgetOwner } from './byte-budget.js';
import { CallsInHand } from './calls-in-hand.js';
import { runHandler, type HandlerParts } from './run-handler.js';
import type { SourceLimits } from './source-limits.js';

/** The header that tells a caller how many free calls it has left. */
export const FREE_LEFT = 'Free-Calls-Left';

const WORK_MS = 20_000;
/**
 * How many wallets behind one network address can use all their free calls. Limited because wallets cost
 * nothing.
 */
const WALLETS_OF_ADDRESS = 10;
/**
 * The maximum number of callers without free calls left that this server remembers, so that they cost no
 * ledger reads.
 */
const MAX_REMEMBERED = 20_000;
const REMEMBERED_MS = 60_000;
const BUSY = `Too many free calls are under way. ${NOT_CHARGED}; try again, or pay.`;
const UNCOUNTED = `Free calls cannot be counted at the moment. ${NOT_CHARGED}; try again, or pay.`;
const BLOCKED = `payer: this shop serves nothing to this wallet, free or paid. ${NOT_CHARGED}; do not pay`;
const SLOW = `The call took too long. ${NOT_CHARGED}; try again, or pay.`;

/** `answer`: a free answer, or a failure that used up no free call. `why`: the reason why this call is not free. */
export type FreeCall =
  | { kind: 'given'; answer: Success; owner: BudgetOwner; left: number }
  | { kind: 'failed'; answer: Failure }
  | { kind: 'pay'; why?: string };

/** A call without payment. */
export type UnpaidCall = {
  operation: PricedOperation;
  carrier: Carrier;
  source: string;
  read: (owner: BudgetOwner) => Promise<AskedCheck>;
  gone: AbortSignal;
};

export type FreeCallsParts = HandlerParts & {
  ledger: Pick<Ledger, 'takeUses' | 'giveUsesBack'>;
  limits: Pick<SourceLimits, 'failed'>;
  signIns: SignIns;
  /** Wallets to which nothing is sold or given. */
  blocked: Pick<BlockedPayers, 'has'>;
  /** The operations of the shop. */
  paid: readonly PricedOperation[];
};

/** The allowances that a call draws on: its caller's (`who`) and the total. */
type Uses = { who: string; own: Use; all: Use[] };

/** Serves calls of paid operations free of charge (`x-free`). Each is counted in the ledger before its work begins. */
export class FreeCalls {
  readonly #parts: FreeCallsParts;
  readonly #inHand = new CallsInHand();
  readonly #now: () => number;
  /** When each used-up allowance is renewed, by the name of the allowance. */
  readonly #usedUp = new LRUCache<string, number>({ max: MAX_REMEMBERED, ttl: REMEMBERED_MS });

  constructor(parts: FreeCallsParts, now: () => number = Date.now) {
    this.#parts = parts;
    this.#now = now;
  }

  /** Undefined if no operation has free calls for wallets. */
  get signIns(): SignIns | undefined {
    const { paid, signIns } = this.#parts;
    return paid.some(({ free }) => free?.by === 'wallet') ? signIns : undefined;
  }

  /**
   * Answers a call free of charge if its caller has one left. An incomplete call gets no answer; it only asks
   * for the price.
   */
  async serve(call: UnpaidCall): Promise<FreeCall> {
    const { operation, source, carrier } = call;
    const { free } = operation;
    if (!free) return { kind: 'pay' };
    const uses = this.#usesOf(operation.id, free, { source, carrier });
    if (typeof uses === 'string') {
      this.#parts.limits.failed(source);
      return { kind: 'pay', why: uses };
    }
    if (!uses) return { kind: 'pay' };
    const gone = [uses.own, ...uses.all].find(({ name, endsAt }) => this.#usedUp.get(name) === endsAt);
    if (gone) return this.#noneLeft(free, uses, gone);
    const owner = { payment: `free ${source}`, payer: `free ${source}`, source };
    const asked = await askedOf(call, owner);
    if (!asked) return { kind: 'pay' };
    const leave = this.#inHand.enter(source);
    if (!leave) return notNow(BUSY);
    try {
      return await this.#give(call, asked, { free, uses, owner });
    } finally {
      leave();
    }
  }

  async #give(
    call: UnpaidCall,
    asked: AnyAsked,
    { free, uses, owner }: { free: FreeQuota; uses: Uses; owner: BudgetOwner },
  ): Promise<FreeCall> {
    const { ledger, limits, log } = this.#parts;
    const needed = [uses.own, ...uses.all];
    try {
      const taken = await ledger.takeUses(needed);
      if ('usedUp' in taken) return this.#noneLeft(free, uses, taken.usedUp);
      limits.failed(call.source);
      const answer = await this.#work(call, asked);
      if (isSuccess(answer)) return { kind: 'given', answer, owner, left: taken.left[0] ?? 0 };
      if (isFaultOfOurs(answer, call.gone)) await this.#giveBack(needed);
      return { kind: 'failed', answer };
    } catch (error) {
      log.error({ error, operation: call.operation.id }, 'a free call could not be counted');
      return notNow(UNCOUNTED);
    }
  }

  async #giveBack(uses: readonly Use[]): Promise<void> {
    await this.#parts.ledger.giveUsesBack(uses);
    for (const { name } of uses) this.#usedUp.delete(name);
  }

  async #work({ operation, gone }: UnpaidCall, asked: AnyAsked): Promise<Answer> {
    try {
      return await withDeadline(WORK_MS, gone, signal =>
        runHandler(this.#parts, operation.id, { ...asked, signal, caller: 'free' }),
      );
    } catch (error) {
      if (!gone.aborted && !(error instanceof DeadlineExceeded)) throw error;
      return { ...failure(503, SLOW), fault: 'caller' };
    }
  }

  /** Undefined if no wallet has signed in; a message if the sign-in is refused. */
  #usesOf(
    operation: string,
    { calls, by, all, ...quota }: FreeQuota,
    { source, carrier }: Pick<UnpaidCall, 'source' | 'carrier'>,
  ): Uses | string | undefined {
    const endsAt = endOfPeriod(quota, this.#now());
    const use = (who: string, atMost: number): Use => ({ name: `free ${operation} ${who}`, atMost, endsAt });
    const together = use('all', all);
    if (by === 'address')
      return { who: 'your address', own: use(`address ${source}`, calls), all: [together] };
    const sent = statementIn(carrier);
    if (sent === undefined) return undefined;
    const signed = this.#parts.signIns.read(sent);
    if ('reason' in signed) return signed.error;
    const { wallet, use: name, endsAt: until } = signed;
    if (this.#parts.blocked.has(wallet)) return BLOCKED;
    const statement = { name, atMost: 1, endsAt: until };
    const address = use(`address ${source}`, WALLETS_OF_ADDRESS * calls);
    return { who: 'this wallet', own: use(`wallet ${wallet}`, calls), all: [statement, address, together] };
  }

  #noneLeft({ calls, per }: FreeQuota, { who, own }: Uses, { name, endsAt }: Use): FreeCall {
    this.#usedUp.set(name, endsAt);
    const until = new Date(endsAt).toISOString().slice(0, 19);
    if (name.startsWith('statement '))
      return { kind: 'pay', why: 'the signed statement is refused, invalid_siwx_nonce: it was used before' };
    const whose =
      name === own.name ? `the ${calls} free calls per ${per} of ${who}` : `the free calls of this ${per}`;
    return { kind: 'pay', why: `${whose} are used up until ${until}Z: pay for this one` };
  }
}

/** Undefined if the call is incomplete. */
async function askedOf({ read }: UnpaidCall, owner: BudgetOwner): Promise<AnyAsked | undefined> {
  const checked = await read(owner).catch((error: unknown) => {
    if (error instanceof BodiesFull || error instanceof BodyFault) return undefined;
    throw error;
  });
  return checked?.ok ? checked.asked : undefined;
}

/**
 * A call that is invalid, cancelled or takes too long can cost the backend as much as an answer, so it uses
 * up a free call.
 */
function isFaultOfOurs({ status, fault }: Failure, gone: AbortSignal): boolean {
  return status !== 400 && fault !== 'caller' && !gone.aborted;
}

function statementIn(carrier: Carrier): unknown {
  return 'meta' in carrier ? carrier.meta[SIGN_IN_HEADER] : carrier.headers[SIGN_IN_HEADER];
}

function notNow(error: string): FreeCall {
  const { headers, ...answer } = failure(503, error);
  return { kind: 'failed', answer: { ...answer, headers: { ...headers, 'Retry-After': '1' } } };
}
