import type { Json } from '../../contract/json.js';
import { isObject, textOf } from '../conformance/http-call.js';
import { askDirectory, posted, type Heard, type Standing } from './directory.js';
import type { ReadShop } from './read-shop.js';
import { signIn, SignInFault } from './sign-in-with-x.js';

/** The URL of x402scan. AgentCash searches the shops registered there. */
export const X402SCAN = 'https://www.x402scan.com';

const DIRECTORY = 'x402scan';
const REGISTER = '/api/x402/registry/register-origin';
/** A long timeout, because x402scan calls every operation before it answers. */
const REGISTER_MS = 90_000;
const MAX_FAILED = 5;

/** The state of the listing if no registration was requested. It is unknown, because looking up a shop there costs money. */
export function x402scanUnasked(url: string): Standing {
  const found = 'it was not asked, because a look-up there costs 0.01 USDC. Registering again does no harm';
  const next = [
    'coinslot list <url> --register --keypair <file> registers the shop; the file is any Solana key pair of yours, which signs in and pays nothing',
    `or fill in its form: ${url}/resources/register`,
  ];
  return { directory: DIRECTORY, state: 'unknown', found, next };
}

/**
 * Registers a shop. The first request has no signature; the second one is signed with the key pair, as the 402 requires.
 * @param secretKey 64 bytes: seed and public key
 */
export async function register(shop: ReadShop, url: string, secretKey: Uint8Array): Promise<Standing> {
  const { origin } = new URL(shop.catalogue.base);
  const asked = url + REGISTER;
  const first = await askDirectory(asked, posted({ origin }));
  if ('why' in first) return failed(`it ${first.why}`, url);
  if (first.status !== 402) return verdictOf(first, url, shop);
  let header: string;
  try {
    header = signIn(extensionOf(first.json), secretKey, asked);
  } catch (error) {
    if (!(error instanceof SignInFault)) throw error;
    return failed(`it ${error.message}`, url);
  }
  const second = await askDirectory(asked, posted({ origin }, { 'sign-in-with-x': header }), REGISTER_MS);
  return 'why' in second ? failed(`it ${second.why}`, url) : verdictOf(second, url, shop);
}

function extensionOf({ extensions }: Json): unknown {
  return isObject(extensions) ? extensions['sign-in-with-x'] : undefined;
}

/** The result of the registration: the number of accepted operations, and why the others were rejected. */
function verdictOf(heard: Exclude<Heard, { why: string }>, url: string, shop: ReadShop): Standing {
  const { status, json } = heard;
  const result = isObject(json['result']) ? json['result'] : json;
  const reasons = reasonsOf(result['failedDetails']);
  const { registered } = result;
  const all = shop.catalogue.sold.length;
  if (status === 200 && typeof registered === 'number' && registered > 0) {
    if (registered >= all && reasons.length === 0)
      return {
        directory: DIRECTORY,
        state: 'listed',
        found: `it registered all ${registered} operations`,
        next: [],
      };
    const found = `it registered ${registered} of ${all} operations`;
    const next = [...reasons, 'correct these, and register again'];
    return { directory: DIRECTORY, state: 'partly listed', found, next };
  }
  const { error } = json;
  const { message } = isObject(error) ? error : { message: error };
  const why = message === undefined ? '' : `: ${textOf(message).slice(0, 300)}`;
  return failed(`it answered ${status}${why}`, url, reasons);
}

function reasonsOf(details: unknown): string[] {
  return (Array.isArray(details) ? (details as unknown[]) : [])
    .filter(isObject)
    .slice(0, MAX_FAILED)
    .map(({ url, error, reason }) => `${textOf(url)}: ${textOf(error ?? reason)}`.slice(0, 300));
}

function failed(found: string, url: string, reasons: string[] = []): Standing {
  const next = [
    ...reasons,
    `correct this and register again, or fill in its form: ${url}/resources/register`,
  ];
  return { directory: DIRECTORY, state: 'not listed', found: `not registered: ${found}`, next };
}
