import type { Json } from '../../contract/json.js';
import { isResourceOf, type Sold } from '../conformance/catalogue.js';
import { call, isObject, jsonOf } from '../conformance/http-call.js';
import { nameOf, type ReadShop } from './read-shop.js';

/** The standing of a shop in a directory. `found` is a sentence without its full stop; `next` are the steps that its seller may take. */
export type Standing = {
  directory: string;
  state: 'listed' | 'partly listed' | 'not listed' | 'unknown';
  found: string;
  next: string[];
};

/** A directory's answer, or the reason why there is none. */
export type Heard = { status: number; json: Json } | { why: string };

const MAX_ANSWER_BYTES = 8 << 20;
const ASK_MS = 20_000;

/** Sends a request to a directory, limited in time and size. Never throws, because a directory that does not answer is not the shop's fault. */
export async function askDirectory(url: string, init: RequestInit = {}, ms = ASK_MS): Promise<Heard> {
  try {
    const headers = { accept: 'application/json', ...(init.headers as Record<string, string> | undefined) };
    const reply = await call(url, { ...init, headers }, ms, MAX_ANSWER_BYTES);
    return { status: reply.status, json: readJson(reply) };
  } catch (error) {
    const { name, message, cause } = error as Error;
    const reason = cause instanceof Error ? ((cause as NodeJS.ErrnoException).code ?? cause.message) : '';
    const slow = name === 'TimeoutError' ? `did not answer within ${ms / 1000} s` : undefined;
    return { why: slow ?? (reason ? `can't be reached (${reason})` : message) };
  }
}

/** A POST request with JSON as its body. */
export function posted(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  };
}

/** An error may have any content; its status is enough. */
function readJson(reply: Parameters<typeof jsonOf>[0]): Json {
  if (reply.status < 400) return jsonOf(reply);
  try {
    return jsonOf(reply);
  } catch {
    return {};
  }
}

/** The operations that are among the entries of a directory (`resource` of x402's DiscoveryResource). */
export function listedIn(entries: readonly unknown[], { catalogue }: ReadShop): Sold[] {
  const urls = entries.flatMap(entry => {
    const resource = isObject(entry) ? entry['resource'] : undefined;
    const url = isObject(resource) ? resource['url'] : resource;
    return typeof url === 'string' ? [url] : [];
  });
  const { sold, base } = catalogue;
  return sold.filter(operation => urls.some(url => isResourceOf(operation, base, url)));
}

/** The standing of a shop in a directory where these operations were found. */
export function standingOf(
  directory: string,
  listed: readonly Sold[],
  { catalogue: { sold } }: ReadShop,
  next: string[],
): Standing {
  const missing = sold.filter(operation => !listed.includes(operation)).map(nameOf);
  if (missing.length === 0)
    return { directory, state: 'listed', found: `all ${sold.length} operations are listed there`, next: [] };
  if (listed.length === 0)
    return { directory, state: 'not listed', found: 'none of the operations is listed there', next };
  const found = `${listed.length} of ${sold.length} operations are listed there, but not ${missing.slice(0, 5).join(', ')}`;
  return { directory, state: 'partly listed', found, next };
}
