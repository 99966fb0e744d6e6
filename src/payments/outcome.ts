import type { Limit } from '../ledger/store.js';
import type { Receipt } from './wire.js';

/** An answer as bytes, checked against the contract: what is stored, and sent once it is paid. */
export type Answer = { status: number; headers: Record<string, string>; body: Buffer };

/** The row whose answer is being handed out; `claim` where this server sold it just now. */
export type Sale = { id: string; claim?: number };

export type Outcome =
  /** To be sent as it is. With a receipt when it was paid. */
  | { kind: 'answer'; answer: Answer; receipt?: Receipt; sale?: Sale }
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

export const MAX_RUNS = 3;

const ANSWER_LIFE_MS = 10 * 60_000;
const IDENTIFIED_ANSWER_LIFE_MS = 24 * 60 * 60_000;
const IDENTIFIED_ANSWER_BYTES = 256 * 1024;

/** How long the answer of an `authorization` operation is kept after its delivery, by its payment-identifier and size. */
export function answerLifeMs(identifier: string | null, bytes: number): number {
  return identifier !== null && bytes < IDENTIFIED_ANSWER_BYTES ? IDENTIFIED_ANSWER_LIFE_MS : ANSWER_LIFE_MS;
}

export const NOT_CHARGED = 'You were not charged';

export function refused(error: string, fresh = true): Outcome & { kind: 'refused' } {
  return { kind: 'refused', error, fresh };
}

export function unavailable(error: string, retryAfterSeconds: number): Outcome & { kind: 'unavailable' } {
  return { kind: 'unavailable', error: `${error}.`, retryAfterSeconds };
}

export function inProgress(): Outcome {
  return unavailable('This payment is being worked on. Send the same payment again', 1);
}

export function failure(status: number, error: string): Answer {
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    body: Buffer.from(JSON.stringify({ error })),
  };
}

export function otherCall(asked: string, operation: string): Outcome {
  const what = operation === asked ? 'with another body' : `of ${operation}`;
  return refused(
    `the same transaction was sent for another call, ${what}: sign a new one for this call, over the new blockhash or with a memo of its own`,
    false,
  );
}

export function otherIdentifier(): Outcome {
  return refused('this payment carried a payment-identifier and is redeemed only with that same id', false);
}

export function overLimit(reason: Limit): Outcome {
  if (reason === 'runs') {
    return refused(
      `the work for this payment failed ${MAX_RUNS} times and nothing was charged: sign a new payment`,
      false,
    );
  }
  if (reason === 'answers')
    return unavailable(`The store of paid answers is full. ${NOT_CHARGED}; try later`, 30);
  if (reason === 'aliases') {
    return unavailable(
      `Too many new signatures for a call that was paid for before. ${NOT_CHARGED} again; send the payment that paid for it`,
      30,
    );
  }
  const what = reason === 'payments' ? 'Too many' : 'Too much in';
  return unavailable(
    `${what} unsettled payments of this payer. ${NOT_CHARGED}; send the same payment again`,
    2,
  );
}

/** A simulation failure says in Solana's words what a buyer can mend. */
export function explain(reason: string): string {
  if (/blockhash not found|BlockhashNotFound/i.test(reason)) {
    return `blockhash: expired or unknown, sign a new payment (${reason})`;
  }
  if (/insufficient|custom program error: #?(0x)?1\b|Custom":\s*"?1\b/i.test(reason)) {
    return `funds: the payer has too little USDC (${reason})`;
  }
  if (/AccountNotFound|InvalidAccountData|could not find account/i.test(reason)) {
    return `funds: the payer has no USDC account (${reason})`;
  }
  return `refused by the facilitator: ${reason}`;
}
