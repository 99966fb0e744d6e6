import type { PricedOperation } from '../contract/contract.js';
import type { Carrier, Credential, Made, Method } from '../methods/method.js';
import type { Methods } from '../methods/methods.js';
import type { Checked, Rail } from '../rails/rail.js';
import type { MadePayment } from './made-payments.js';

/** A payment that passed the local check of its rail. Neither ledger nor facilitator has seen it yet. */
export type Payment = {
  method: Method;
  identifier: string | null;
  checked: Checked;
  /** Why it does not match the current offer. It may match an earlier offer. */
  mismatch?: string;
  /** The id of the challenge that it answers, if its method has challenge ids. */
  challenge?: string;
  /** The buyer sent the transfer before the request: the money has moved, however the call ends. */
  moved?: boolean;
};

export type PaymentCheck =
  | { kind: 'unpaid' }
  /** `made`: the buyer names a transfer that was already sent, so the money may have moved. */
  | { kind: 'refused'; method: Method; error: string; made?: true }
  /** The chain can't be read, or does not show such a transfer yet: 503. */
  | { kind: 'unavailable'; method: Method; error: string; retryAfterSeconds: number; made: true }
  /** It does not match the current offer: 402, unless the ledger knows it. */
  | { kind: 'mismatch'; error: string; payment: Payment }
  | { kind: 'payment'; payment: Payment };

/** Finds the signed transaction of a transfer that the buyer already sent. */
export type FindMade = (credential: Credential, made: Made) => Promise<MadePayment>;

/**
 * Reads and checks the payment of a request, without its body. Makes no network call and does not read the ledger, unless the buyer
 * names a transfer that was already sent, which `find` then looks up.
 */
export async function checkPayment(
  methods: Methods,
  rail: Pick<Rail, 'check'>,
  carrier: Carrier,
  operation: PricedOperation,
  find: FindMade = findNone,
): Promise<PaymentCheck> {
  const reading = methods.read(carrier, operation);
  if (!reading) return { kind: 'unpaid' };
  if (reading.kind === 'refused') return reading;
  const { credential } = reading;
  if (credential.made) return checkMade(rail, credential, credential.made, find);
  const { method, evidence, challenge } = credential;
  const check = await rail.check(evidence, operation.price.atomic, challenge?.named);
  const fault = check.ok ? undefined : check.error;
  if (!check.checked) return { kind: 'refused', method, error: fault ?? UNREADABLE };
  return checkedOf(credential, check.checked, credential.mismatch ?? fault);
}

/** The transfer must pay what its challenge asked for, because it was sent already and can't be changed. */
async function checkMade(
  rail: Pick<Rail, 'check'>,
  credential: Credential,
  made: Made,
  find: FindMade,
): Promise<PaymentCheck> {
  const { method, challenge, mismatch } = credential;
  const found = await find(credential, made);
  if (found.kind !== 'found') return { method, made: true, ...found };
  const check = await rail.check(found.evidence, made.amount, challenge?.named);
  if (check.checked && (check.ok || found.ours)) {
    const error = made.live && mismatch !== undefined ? `${mismatch}; ${NOT_THIS}` : mismatch;
    return checkedOf(credential, check.checked, error);
  }
  return {
    kind: 'refused',
    method,
    made: true,
    error: check.ok ? UNREADABLE : `${check.error}; ${NOT_THIS}`,
  };
}

const UNREADABLE = 'the payment cannot be read';
const NOT_THIS = 'the transfer has bought nothing; the operator of this shop can pay it back';

async function findNone(): Promise<MadePayment> {
  return {
    kind: 'refused',
    error: 'payload: this endpoint does not look up transfers that were already sent',
  };
}

function checkedOf(
  { method, identifier, challenge, made }: Credential,
  checked: Checked,
  error: string | undefined,
): PaymentCheck {
  const payment = {
    ...{ method, identifier, checked },
    ...(challenge && { challenge: challenge.id }),
    ...(made && { moved: true }),
  };
  return error === undefined
    ? { kind: 'payment', payment }
    : { kind: 'mismatch', error, payment: { ...payment, mismatch: error } };
}
