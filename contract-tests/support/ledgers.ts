import { randomBytes } from 'node:crypto';
import type { LedgerFault } from '../../src/ledger/fault.js';
import type { CallKey, Claim, ClaimRequest, Ledger } from '../../src/ledger/store.js';
import { PAYER } from './ledger-places.js';

export const OWNER = { payTo: 'Receiver111', network: 'solana:test' };

export function payment(overrides: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    id: randomBytes(32).toString('hex'),
    operation: 'summarize',
    requestHash: 'a'.repeat(64),
    payer: PAYER,
    amount: 10_000n,
    network: OWNER.network,
    method: 'x402-v2',
    evidence: 'AAAA',
    flow: 'authorization',
    after: 1_000,
    position: 900,
    leaseMs: 60_000,
    limits: { maxUnsettledPerPayer: 1_000, maxUnsettledAmountPerPayer: 10n ** 12n, maxRuns: 3 },
    ...overrides,
  };
}

export function callOf({ payer, operation, requestHash }: ClaimRequest): CallKey {
  return { payer, operation, requestHash };
}

export async function claim(ledger: Ledger, request: ClaimRequest): Promise<Claim> {
  const result = await ledger.claim(request);
  if (result.kind !== 'claimed') throw new Error(`expected a claim, got ${result.kind}`);
  return result;
}

/** @returns the claim's number */
export async function claimed(ledger: Ledger, request: ClaimRequest): Promise<number> {
  return (await claim(ledger, request)).claim;
}

/** Moves a claim to settling, regardless of other payments for its call. @returns whether it moved */
export async function settles(ledger: Ledger, id: string, claimNumber: number): Promise<boolean> {
  return (await ledger.settle(id, claimNumber, { newestLocal: 0 })).kind === 'settling';
}

/** @returns the claim's number */
export async function delivered(
  ledger: Ledger,
  request: ClaimRequest,
  answerExpiresAt = Infinity,
): Promise<number> {
  const number = await claimed(ledger, request);
  await ledger.saveAnswer(request.id, number, { status: 200, headers: {}, body: Buffer.from('{}') });
  if (!(await settles(ledger, request.id, number))) throw new Error('expected it to settle');
  const expires = Math.min(answerExpiresAt, Number.MAX_SAFE_INTEGER);
  const how = { settlement: 'sig', answerExpiresAt: expires };
  if (!(await ledger.deliver(request.id, number, how))) throw new Error('expected it to be delivered');
  return number;
}

export async function faultOf(work: Promise<unknown>): Promise<LedgerFault> {
  try {
    await work;
  } catch (error) {
    return error as LedgerFault;
  }
  throw new Error('expected a fault');
}
