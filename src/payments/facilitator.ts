import type { PaymentRequirements } from '@x402/core/types';
import { readAddress } from '../solana/address.js';
import { HttpClient } from '../net/http-client.js';

/** A request to the facilitator: our own offer and our own encoding of the buyer's transaction; nothing is echoed from the buyer. */
export type FacilitatorRequest = { transaction: string; requirements: PaymentRequirements };

export type VerifyResult =
  | { kind: 'valid' }
  /** The facilitator refused the payment. */
  | { kind: 'refused'; reason: string }
  /** The facilitator could not be reached or gave no usable answer. */
  | { kind: 'unavailable'; detail: string };

export type SettleResult =
  | { kind: 'settled'; signature: string }
  /** A reason from the fixed list of refusals before signing: this request has not moved the money and will not. */
  | { kind: 'refused'; reason: string }
  /** Anything else: the money may have moved. */
  | { kind: 'unknown'; reason: string; signature: string };

/** The v2 kind of our network as `/supported` lists it. */
export type Supported = { feePayer: string };

/** Verifies and settles payments. The adapter never retries. */
export type Facilitator = {
  /** @throws FacilitatorUnreachable, or FacilitatorFault if it does not serve our network in x402 v2. */
  supported(network: string): Promise<Supported>;
  verify(ask: FacilitatorRequest): Promise<VerifyResult>;
  settle(ask: FacilitatorRequest): Promise<SettleResult>;
  close(): Promise<void>;
};

/** The facilitator can't be used with this configuration. The server does not start. */
export class FacilitatorFault extends Error {}
/** The facilitator did not answer. The server starts with the fee payer that the ledger has. */
export class FacilitatorUnreachable extends Error {}

/** Reasons with which a facilitator refuses before it signs (x402 scheme exact on SVM). Any other reason proves nothing. */
const REFUSALS_BEFORE_SIGNING = new Set([
  'insufficient_funds',
  'invalid_exact_svm_unsupported_scheme',
  'invalid_exact_svm_network_mismatch',
  'invalid_exact_svm_payload_missing_fee_payer',
  'invalid_exact_svm_fee_payer_not_managed_by_facilitator',
  'invalid_exact_svm_payload_transaction',
  'invalid_exact_svm_payload_transaction_could_not_be_decoded',
  'invalid_exact_svm_payload_signature_invalid',
  'invalid_exact_svm_payload_excessive_signers',
  'invalid_exact_svm_payload_transaction_instructions_length',
  'invalid_exact_svm_payload_transaction_instructions_compute_limit_instruction',
  'invalid_exact_svm_payload_transaction_instructions_compute_limit_instruction_too_high',
  'invalid_exact_svm_payload_transaction_instructions_compute_price_instruction',
  'invalid_exact_svm_payload_transaction_instructions_compute_price_instruction_too_high',
  'invalid_exact_svm_payload_unknown_fourth_instruction',
  'invalid_exact_svm_payload_unknown_fifth_instruction',
  'invalid_exact_svm_payload_unknown_sixth_instruction',
  'invalid_exact_svm_payload_unknown_seventh_instruction',
  'invalid_exact_svm_payload_unknown_optional_instruction',
  'invalid_exact_svm_payload_no_transfer_instruction',
  'invalid_exact_svm_payload_transaction_fee_payer_transferring_funds',
  'invalid_exact_svm_payload_mint_mismatch',
  'invalid_exact_svm_payload_recipient_mismatch',
  'invalid_exact_svm_payload_amount_mismatch',
  'invalid_exact_svm_payload_memo_mismatch',
  'invalid_exact_svm_payload_memo_count',
]);

/** The reference facilitator waits up to 30 s for the confirmation of a settlement. */
const DEADLINES: Deadlines = { supportedMs: 5_000, verifyMs: 10_000, settleMs: 45_000 };
const MAX_ANSWER_BYTES = 256 * 1024;

type JsonAnswer = { status: number; json: Record<string, unknown> };

/** How long a facilitator may take for each request. */
export type Deadlines = { supportedMs: number; verifyMs: number; settleMs: number };

/**
 * A facilitator over HTTP (x402 v2 `/supported`, `/verify`, `/settle`). User, password and query of its URL are sent with every
 * request and never appear in a message.
 */
export function httpFacilitator(url: string, deadlines: Deadlines = DEADLINES): Facilitator {
  // No automatic resend: a settlement may have been carried out although its connection ended.
  const client = new HttpClient(url, {
    connections: 128,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    headers: { accept: 'application/json' },
    resend: false,
  });
  const { name, conceal } = client;

  async function ask(path: string, ms: number, body?: string): Promise<JsonAnswer> {
    const { status, text } = await client.request(
      body === undefined ? { method: 'GET', path, ms } : { method: 'POST', path, body, ms },
    );
    const json: unknown = JSON.parse(text);
    if (typeof json !== 'object' || json === null) throw new Error('the answer is not a JSON object');
    return { status, json: json as Record<string, unknown> };
  }

  return {
    async supported(network) {
      let answer: JsonAnswer;
      try {
        answer = await ask('/supported', deadlines.supportedMs);
      } catch (error) {
        throw new FacilitatorUnreachable(
          `facilitator ${name} did not answer /supported: ${conceal(messageOf(error))}`,
        );
      }
      if (answer.status !== 200) {
        throw new FacilitatorUnreachable(`facilitator ${name} answered /supported with ${answer.status}`);
      }
      return readSupported(answer.json, network, name);
    },
    async verify(request) {
      try {
        return concealed(readVerdict(await ask('/verify', deadlines.verifyMs, bodyOf(request))), conceal);
      } catch (error) {
        return { kind: 'unavailable', detail: conceal(messageOf(error)) };
      }
    },
    async settle(request) {
      try {
        return concealed(readSettlement(await ask('/settle', deadlines.settleMs, bodyOf(request))), conceal);
      } catch (error) {
        return { kind: 'unknown', reason: conceal(messageOf(error)), signature: '' };
      }
    },
    close: () => client.close(),
  };
}

/** Removes credentials from a reason, because reasons go into logs and to buyers and some repeat the request URL. */
function concealed<T extends VerifyResult | SettleResult>(found: T, conceal: (text: string) => string): T {
  return 'reason' in found ? { ...found, reason: conceal(found.reason) } : found;
}

const offers = new WeakMap<PaymentRequirements, string>();

/** The JSON body for verify and settle. It contains the offer twice, and thousands of calls share one offer, so its text is cached. */
function bodyOf({ transaction, requirements }: FacilitatorRequest): string {
  let offer = offers.get(requirements);
  if (offer === undefined) offers.set(requirements, (offer = JSON.stringify(requirements)));
  const payload = `{"x402Version":2,"payload":{"transaction":${JSON.stringify(transaction)}},"accepted":${offer}}`;
  return `{"x402Version":2,"paymentPayload":${payload},"paymentRequirements":${offer}}`;
}

function readSupported(json: Record<string, unknown>, network: string, name: string): Supported {
  const kinds = Array.isArray(json.kinds) ? (json.kinds as unknown[]) : [];
  const ours = kinds
    .filter(kind => typeof kind === 'object' && kind !== null)
    .map(
      kind =>
        kind as {
          x402Version?: unknown;
          scheme?: unknown;
          network?: unknown;
          extra?: { feePayer?: unknown };
        },
    )
    .filter(kind => kind.x402Version === 2 && kind.scheme === 'exact' && kind.network === network);
  if (ours.length === 0) {
    throw new FacilitatorFault(
      `facilitator ${name} does not support x402 v2, scheme exact, on ${network}: set FACILITATOR_URL to one that does`,
    );
  }
  const feePayer = ours.map(kind => kind.extra?.feePayer).find(isAddress);
  if (feePayer === undefined) {
    throw new FacilitatorFault(
      `facilitator ${name} names no fee payer for ${network}: set FACILITATOR_URL to one that does`,
    );
  }
  return { feePayer };
}

function isAddress(value: unknown): value is string {
  return typeof value === 'string' && readAddress(value) !== undefined;
}

/** Any other text would be stored in the ledger and sent in headers as if it were a signature. */
const SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{64,88}$/;

function readVerdict({ status, json }: JsonAnswer): VerifyResult {
  if (json.isValid === true && status === 200) return { kind: 'valid' };
  // Some facilitators refuse with 400. Only a reason makes it a refusal.
  if (json.isValid === false && status < 500 && status !== 429) {
    const reason = typeof json.invalidReason === 'string' ? json.invalidReason : 'refused without a reason';
    const detail = typeof json.invalidMessage === 'string' ? `: ${json.invalidMessage}` : '';
    return { kind: 'refused', reason: plain(reason + detail) };
  }
  return { kind: 'unavailable', detail: `status ${status}` };
}

function readSettlement({ status, json }: JsonAnswer): SettleResult {
  const named = typeof json.transaction === 'string' ? json.transaction : '';
  const signature = SIGNATURE.test(named) ? named : '';
  const ok = status >= 200 && status < 300;
  if (ok && json.success === true && signature) return { kind: 'settled', signature };
  const reason = typeof json.errorReason === 'string' ? json.errorReason : `status ${status}`;
  if (ok && json.success === false && !named && REFUSALS_BEFORE_SIGNING.has(reason)) {
    return { kind: 'refused', reason };
  }
  return { kind: 'unknown', reason: plain(reason), signature };
}

const MAX_REASON = 300;

/** Reduces a facilitator's text, which goes into answers and headers, to one bounded line of printable ASCII. */
function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, MAX_REASON);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
