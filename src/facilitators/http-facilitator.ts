import { messageOf } from '../ledger/fault.js';
import { isSignature, readAddress } from '../rails/solana/address.js';
import type { Authorize } from './cdp-token.js';
import { isKeyLike } from '../net/endpoint.js';
import { backoffSeconds } from '../net/failure.js';
import { HttpClient, NoAnswer, type HttpAnswer } from '../net/http-client.js';
import {
  FacilitatorFault,
  FacilitatorUnreachable,
  plain,
  REFUSALS_BEFORE_SIGNING,
  REFUSALS_OF_LANDED_TRANSFERS,
  type Facilitator,
  type FacilitatorRequest,
  type ListingVerdict,
  type Supported,
} from './facilitator.js';
import { EXTENSION_RESPONSES, readListingVerdict, TakesListings } from './listing-answers.js';
import type { SettleResult, Trouble, VerifyResult } from '../rails/rail.js';

/** The reference facilitator waits up to 30 s for the confirmation of a settlement. */
export const DEADLINES: Deadlines = { supportedMs: 5_000, verifyMs: 10_000, settleMs: 45_000 };
const MAX_ANSWER_BYTES = 256 * 1024;
const MAX_SIGNERS = 64;

/** `trouble`: a fault of the facilitator, as its status shows. */
type JsonAnswer = {
  status: number;
  json: Record<string, unknown>;
  trouble: Trouble | undefined;
  /** The facilitator's answer about the extensions of the request. */
  extensions: string | undefined;
};

/** An answer that is not a JSON object. */
class Unreadable extends Error {
  readonly trouble: Trouble;

  constructor(message: string, trouble: Trouble) {
    super(message);
    this.trouble = trouble;
  }
}

/** How long a facilitator may take for each request. */
export type Deadlines = { supportedMs: number; verifyMs: number; settleMs: number };

/** Headers sent with every request. */
export type Credentials = {
  /** Fixed headers, with names in lower case. */
  headers?: Record<string, string> | undefined;
  /** Makes the headers of each request. */
  authorize?: Authorize | undefined;
};

/** Host and path of a facilitator's URL, without credentials: its name in the ledger, in logs and on /health. */
export function facilitatorName(url: string): string {
  const { host, pathname } = new URL(url);
  return (
    host +
    pathname
      .split('/')
      .map(part => (isKeyLike(part) ? '…' : part))
      .join('/')
  );
}

/**
 * A facilitator over HTTP (x402 v2 `/supported`, `/verify`, `/settle`). User, password and query of its URL, and the credentials, are
 * sent with every request and never appear in a message.
 * @param heard called with its answers about listings
 */
export function httpFacilitator(
  url: string,
  deadlines: Deadlines = DEADLINES,
  credentials: Credentials = {},
  heard: (verdict: ListingVerdict) => void = () => {},
): Facilitator {
  const { name, conceal, ask, close } = clientOf(url, credentials);
  const listings = new TakesListings(heard);
  const verify = async (request: FacilitatorRequest): Promise<VerifyResult> => {
    try {
      const answer = await askFor(request, '/verify', deadlines.verifyMs);
      return concealed(readVerdict(answer), conceal);
    } catch (error) {
      return { kind: 'unavailable', detail: conceal(messageOf(error)), trouble: troubleOf(error) };
    }
  };
  const settle = async (request: FacilitatorRequest): Promise<SettleResult> => {
    try {
      const answer = await askFor(request, '/settle', deadlines.settleMs);
      return concealed(readSettlement(answer), conceal);
    } catch (error) {
      const reason = conceal(messageOf(error));
      return { kind: 'unknown', reason, signature: '', trouble: troubleOf(error) };
    }
  };

  async function askFor(request: FacilitatorRequest, path: string, ms: number): Promise<JsonAnswer> {
    const answer = await ask(path, ms, bodyOf(request));
    const verdict = request.listing && readListingVerdict(answer.extensions, request.listing);
    if (verdict) heard(verdict);
    return answer;
  }

  return {
    async supported(network) {
      let answer: JsonAnswer;
      try {
        answer = await ask('/supported', deadlines.supportedMs);
      } catch (error) {
        throw new FacilitatorUnreachable(
          `facilitator ${name} did not answer /supported: ${conceal(messageOf(error))}`,
          troubleOf(error),
        );
      }
      if (answer.status !== 200) {
        const failed = `facilitator ${name} answered /supported with ${answer.status}`;
        throw new FacilitatorUnreachable(failed, answer.trouble ?? USELESS);
      }
      return readSupported(answer.json, network, name);
    },
    verify: request => listings.verify(request, verify),
    settle: request => listings.settle(request, settle),
    close,
  };
}

type Client = {
  name: string;
  /** Removes the credentials from a text. */
  conceal: (text: string) => string;
  ask: (path: string, ms: number, body?: string) => Promise<JsonAnswer>;
  close: () => Promise<void>;
};

function clientOf(url: string, { headers = {}, authorize }: Credentials): Client {
  // No automatic resend: a settlement may have been carried out although its connection ended.
  const client = new HttpClient(url, {
    connections: 128,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    headers: { ...headers, accept: 'application/json' },
    resend: false,
  });
  const { name } = client;
  const { host, pathname } = new URL(url);
  const target = host + (pathname.endsWith('/') ? pathname.slice(0, -1) : pathname);
  const conceal = concealing(client, headers);

  async function ask(path: string, ms: number, body?: string): Promise<JsonAnswer> {
    const method = body === undefined ? 'GET' : 'POST';
    const authorization = authorize ? { headers: await authorize(method, target + path) } : {};
    const answer = await client.request({
      method,
      path,
      ms,
      ...authorization,
      ...(body === undefined ? {} : { body }),
    });
    const trouble = troubleIn(answer);
    const json = parsed(answer.text);
    if (!json) throw new Unreadable(`status ${answer.status}, not a JSON object`, trouble ?? USELESS);
    return { status: answer.status, json, trouble, extensions: answer.header(EXTENSION_RESPONSES) };
  }

  return { name, conceal, ask, close: () => client.close() };
}

const TOKEN = /\beyJ[\w-]+\.[\w-]+\.[\w-]*/g;
/** Shorter words in a header, such as `Bearer`, are not secrets. */
const MIN_SECRET_LENGTH = 7;

/** Removes the credentials from a text. */
function concealing({ conceal }: HttpClient, headers: Record<string, string>): (text: string) => string {
  const secrets = Object.values(headers)
    .flatMap(value => [value, ...value.split(' ')])
    .filter(each => each.length >= MIN_SECRET_LENGTH);
  return text =>
    secrets.reduce((shown, secret) => shown.replaceAll(secret, '…'), conceal(text)).replace(TOKEN, '…');
}

const USELESS: Trouble = { rest: false, answered: true };
/** Statuses of a gateway whose service is down, or of an unavailable service. */
const DOWN = new Set([502, 503, 504]);

/** Too many requests, or a failure of the service. */
function troubleIn(answer: HttpAnswer): Trouble | undefined {
  const { status } = answer;
  if (status !== 429 && status < 500) return undefined;
  const seconds = backoffSeconds({
    'retry-after': answer.header('retry-after'),
    'x-ratelimit-reset': status === 429 ? answer.header('x-ratelimit-reset') : undefined,
  });
  if (seconds !== undefined) return { rest: true, seconds };
  return status === 429 || DOWN.has(status) ? { rest: status === 429 } : USELESS;
}

function troubleOf(error: unknown): Trouble {
  if (error instanceof Unreadable) return error.trouble;
  return { rest: error instanceof NoAnswer && error.kind === 'unreachable' };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Removes credentials from a reason, because reasons go into logs and to buyers and some repeat the request URL. */
function concealed<T extends VerifyResult | SettleResult>(found: T, conceal: (text: string) => string): T {
  return 'reason' in found ? { ...found, reason: conceal(found.reason) } : found;
}

/** The JSON body for verify and settle. */
function bodyOf({ transaction, requirements, listing }: FacilitatorRequest): string {
  const accepted = JSON.stringify(requirements);
  const payload = `"payload":${JSON.stringify({ transaction })},"accepted":${accepted}`;
  const members = listing ? `,${listing.members}` : '';
  return `{"x402Version":2,"paymentPayload":{"x402Version":2,${payload}${members}},"paymentRequirements":${accepted}}`;
}

/** Each member may be of any type. */
type Kind = {
  x402Version?: unknown;
  scheme?: unknown;
  network?: unknown;
  extra?: { feePayer?: unknown } | null;
};

function readSupported(json: Record<string, unknown>, network: string, name: string): Supported {
  const kinds = (Array.isArray(json.kinds) ? json.kinds : []) as (Kind | null)[];
  const ours = kinds.filter(
    kind => kind?.x402Version === 2 && kind.scheme === 'exact' && kind.network === network,
  );
  if (ours.length === 0) {
    throw new FacilitatorFault(
      `facilitator ${name} does not support x402 v2, scheme exact, on ${network}: set FACILITATOR_URL to one that does`,
    );
  }
  const feePayer = ours.map(kind => kind?.extra?.feePayer).find(isAddress);
  if (feePayer === undefined) {
    throw new FacilitatorFault(
      `facilitator ${name} names no fee payer for ${network}: set FACILITATOR_URL to one that does`,
    );
  }
  return { feePayer, signers: signersOf(json.signers) };
}

/** `signers` lists addresses by network pattern, for example `{ "solana:*": ["…"] }`. */
function signersOf(signers: unknown): string[] {
  if (typeof signers !== 'object' || signers === null) return [];
  return Object.entries(signers)
    .filter(([networks]) => networks.startsWith('solana'))
    .flatMap(([, addresses]) => (Array.isArray(addresses) ? (addresses as unknown[]) : []))
    .slice(0, MAX_SIGNERS)
    .filter(isAddress);
}

/** A status such as 401 without a verdict concerns the facilitator, not the payment. */
function withoutVerdict(ok: boolean, json: Record<string, unknown>): Trouble | undefined {
  return ok || json.success === false ? undefined : USELESS;
}

function isAddress(value: unknown): value is string {
  return typeof value === 'string' && readAddress(value) !== undefined;
}

function readVerdict({ status, json, trouble = USELESS }: JsonAnswer): VerifyResult {
  if (json.isValid === true && status === 200) return { kind: 'valid' };
  // Some facilitators refuse with 400, so the status alone does not decide.
  if (json.isValid === false && status < 500 && status !== 429) {
    const reason = typeof json.invalidReason === 'string' ? json.invalidReason : 'refused without a reason';
    const detail = typeof json.invalidMessage === 'string' ? `: ${json.invalidMessage}` : '';
    return { kind: 'refused', reason: plain(reason + detail) };
  }
  return { kind: 'unavailable', detail: `status ${status}`, trouble };
}

function readSettlement({ status, json, trouble }: JsonAnswer): SettleResult {
  const named = typeof json.transaction === 'string' ? json.transaction : '';
  // Any other text would be stored in the ledger and sent in headers as if it were a signature.
  const signature = isSignature(named) ? named : '';
  const ok = status >= 200 && status < 300;
  if (ok && json.success === true && signature) return { kind: 'settled', signature };
  const reason = typeof json.errorReason === 'string' ? json.errorReason : `status ${status}`;
  if (ok && json.success === false && !named && REFUSALS_BEFORE_SIGNING.has(reason)) {
    return REFUSALS_OF_LANDED_TRANSFERS.has(reason)
      ? { kind: 'refused', reason, mayHaveLanded: true }
      : { kind: 'refused', reason };
  }
  const failed = trouble ?? withoutVerdict(ok, json);
  return { kind: 'unknown', reason: plain(reason), signature, ...(failed ? { trouble: failed } : {}) };
}
