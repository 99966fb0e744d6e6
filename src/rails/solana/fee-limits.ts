import { keyOf } from './address.js';
import type { Instruction, Key, SolanaTransaction } from './message.js';
import { COMPUTE_BUDGET_PROGRAM } from './networks.js';

/** The limits of a facilitator, which pays the fees. An ordinary payment uses 20 000 units and costs 10 000 lamports. */
export const MAX_COMPUTE_UNITS = 200_000;
export const MAX_PRIORITY_FEE_LAMPORTS = 20_000n;
export const LAMPORTS_PER_SIGNATURE = 5_000n;
/** The limit of x402's scheme exact on SVM: 5 lamports per compute unit. */
export const MAX_MICROLAMPORTS_PER_UNIT = 5_000_000n;
export const SIGNATURES = 2;

const MICROLAMPORTS_PER_LAMPORT = 1_000_000n;
const COMPUTE_BUDGET = keyOf(COMPUTE_BUDGET_PROGRAM).toString('latin1');
const SET_COMPUTE_UNIT_LIMIT = 2;
const SET_COMPUTE_UNIT_PRICE = 3;
const LIMIT_BYTES = 5;
const PRICE_BYTES = 9;

/** `reason` is the code from x402's scheme exact on SVM, and `message` is for human readers. */
export type FeeFault = { reason: string; message: string };

/**
 * How a protocol builds its transactions: the number of signatures, and whether the compute unit limit may come after its price. x402
 * clients put the limit first, MPP clients the price.
 */
export type TransactionForm = { signatures: number; anyOrder: boolean };

const X402_FORM: TransactionForm = { signatures: SIGNATURES, anyOrder: false };

/**
 * Why a facilitator refuses to pay the fees of a transaction; undefined if it pays. The fees are 5 000 lamports per signature, plus the
 * requested compute units at the requested price.
 */
export function feeFault(
  { signatures, lookups, keys, instructions }: SolanaTransaction,
  form = X402_FORM,
): FeeFault | undefined {
  if (signatures !== form.signatures) {
    const whose = form.signatures === 1 ? 'yours' : "the fee payer's and yours";
    return payloadFault(
      'excessive_signers',
      `needs ${signatures} signatures instead of ${form.signatures}: ${whose}`,
    );
  }
  if (lookups.length > 0) return payloadFault('transaction', 'address lookup tables are not accepted');
  const [limit, price] = form.anyOrder ? limitFirst(instructions) : instructions;
  if (!limit || !isBudget(limit, keys, SET_COMPUTE_UNIT_LIMIT, LIMIT_BYTES)) {
    return payloadFault(LIMIT, 'the first instruction must set the compute unit limit');
  }
  if (!price || !isBudget(price, keys, SET_COMPUTE_UNIT_PRICE, PRICE_BYTES)) {
    return payloadFault(PRICE, 'the second instruction must set the compute unit price');
  }
  const units = limit.data.readUInt32LE(1);
  if (units > MAX_COMPUTE_UNITS) {
    return payloadFault(
      `${LIMIT}_too_high`,
      `the compute unit limit is too high: ${units}, at most ${MAX_COMPUTE_UNITS} are accepted`,
    );
  }
  const perUnit = price.data.readBigUInt64LE(1);
  if (perUnit > MAX_MICROLAMPORTS_PER_UNIT) {
    return payloadFault(
      `${PRICE}_too_high`,
      'the compute unit price is too high: at most 5 lamports per unit are accepted',
    );
  }
  const lamports = priorityFee(units, perUnit);
  if (lamports <= MAX_PRIORITY_FEE_LAMPORTS) return undefined;
  return payloadFault(
    `${PRICE}_too_high`,
    `the compute unit price is too high: limit times price is a priority fee of ${lamports} lamports, at most ` +
      `${MAX_PRIORITY_FEE_LAMPORTS} are accepted`,
  );
}

/** Whether an instruction uses the fee payer, which could then lose more than the fee. */
export function usesFeePayer({ instructions, keys }: SolanaTransaction): boolean {
  const others = keys.slice(1);
  return (
    others.includes(keys[0] ?? '') ||
    instructions.some(({ program, accounts }) => program === 0 || accounts.includes(0))
  );
}

/** The fees in lamports of a transaction in which `feeFault` finds no fault. */
export function feeOf({ signatures, instructions }: SolanaTransaction): bigint {
  const [limit, price] = limitFirst(instructions);
  if (!limit || !price) throw new Error('the transaction does not set its compute budget');
  return (
    BigInt(signatures) * LAMPORTS_PER_SIGNATURE +
    priorityFee(limit.data.readUInt32LE(1), price.data.readBigUInt64LE(1))
  );
}

/** Whether the compute unit limit comes before its price. */
export function hasLimitFirst({ instructions: [first] }: SolanaTransaction): boolean {
  return first?.data.length === LIMIT_BYTES;
}

/** The two compute budget instructions, the limit first. Their lengths tell which is which. */
function limitFirst([first, second]: readonly Instruction[]): (Instruction | undefined)[] {
  return first?.data.length === LIMIT_BYTES ? [first, second] : [second, first];
}

const LIMIT = 'transaction_instructions_compute_limit_instruction';
const PRICE = 'transaction_instructions_compute_price_instruction';

/** A fault with a code from x402's scheme exact on SVM, or a similar code if the scheme has none. */
export function payloadFault(reason: string, message: string): FeeFault {
  return { reason: `invalid_exact_svm_payload_${reason}`, message };
}

function isBudget({ program, data }: Instruction, keys: Key[], type: number, length: number): boolean {
  return keys[program] === COMPUTE_BUDGET && data[0] === type && data.length === length;
}

/** The priority fee in lamports, rounded up. */
function priorityFee(units: number, microLamportsPerUnit: bigint): bigint {
  const microLamports = BigInt(units) * microLamportsPerUnit;
  return (microLamports + MICROLAMPORTS_PER_LAMPORT - 1n) / MICROLAMPORTS_PER_LAMPORT;
}
