import { expect } from 'chai';
import { CALLER_LIVE_MS, HANG_UP_MARGIN_MS } from '../../src/ledger/store.js';
import type {
  Caller,
  Claim,
  ClaimRequest,
  Ledger,
  SettleRequest,
  SettleDecision,
} from '../../src/ledger/store.js';
import { callOf, claim, payment } from './ledgers.js';
import { ledger, time } from './ledger-suite.js';

/** A claim of a payment, with what its server knows about it. */
export type Held = Claim & { request: ClaimRequest };

// One second more than needed, because PostgreSQL's clock keeps running while a test is delayed.
export const MARGIN = HANG_UP_MARGIN_MS + 1_000;
export const LAPSED = CALLER_LIVE_MS + HANG_UP_MARGIN_MS + 1_000;

export async function held(ledger: Ledger, overrides: Partial<ClaimRequest> = {}): Promise<Held> {
  const request = payment(overrides);
  return { ...(await claim(ledger, request)), request };
}

/** @param newestLocal the newest request that waits for the payment at this server; by default the one that claimed it */
export function settle(
  ledger: Ledger,
  { request, claim: number, caller }: Held,
  sent: Partial<SettleRequest> = {},
): Promise<SettleDecision> {
  const call = request.identifier ? {} : { call: callOf(request) };
  return ledger.settle(request.id, number, { ...call, newestLocal: caller.number, ...sent });
}

export async function deliver(
  ledger: Ledger,
  { request, claim: number }: Held,
  answerExpiresAt: number,
): Promise<void> {
  const how = { settlement: 'sig', answerExpiresAt };
  if (!(await ledger.deliver(request.id, number, how))) throw new Error('expected it to be delivered');
}

export const copyOf = async ({ request }: Held, proven = false): Promise<Caller> =>
  (await ledger.addCaller(request.id, { proven }))!.caller;

/** A payment that is settled and delivered. Its answer is stored, but has not been written to any caller yet. */
export const sold = async (overrides: Partial<ClaimRequest> = {}): Promise<Held> => {
  const one = await held(ledger, overrides);
  expect(await settle(ledger, one)).to.deep.equal({ kind: 'settling' });
  await deliver(ledger, one, time.now + 10 ** 9);
  return one;
};

/** A payment that was made, or may have been, and whose caller has left. A new signature for the same call redeems it. */
export const abandoned = async (): Promise<Held> => {
  const one = await sold();
  expect(await ledger.removeCaller(one.caller)).to.equal(true);
  return one;
};
