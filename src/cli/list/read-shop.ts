import { withAbortAfter } from '../../net/deadline.js';
import { askingPrice, readCatalogue, type Catalogue, type Sold } from '../conformance/catalogue.js';
import { checkOptions, readChallenge, type Asked, type Challenge } from '../conformance/challenge-checks.js';
import { must, type Findings } from '../conformance/findings.js';
import { call, expectStatus, type Reply } from '../conformance/http-call.js';
import { checkAddress, checkListing } from '../conformance/listing-checks.js';

/** A shop as a directory sees it. */
export type ReadShop = { catalogue: Catalogue; asked: Asked[] };

/** The maximum number of a shop's operations to call. */
const MAX_ASKED = 50;
const AT_ONCE = 4;
const ASK_MS = 15_000;
const CATALOGUE_MS = 60_000;
const NEVER = new AbortController().signal;

/**
 * Reads a shop as directories do: its description, and the 402 of each operation. What directories would object to is in the findings.
 * @returns undefined if nothing answers there
 */
export async function readShop(url: string, findings: Findings): Promise<ReadShop | undefined> {
  await checkAddress(url, findings, 'must');
  let catalogue: Catalogue | undefined;
  await findings.must(`a shop answers at ${url}`, async () => {
    catalogue = await withAbortAfter(CATALOGUE_MS, NEVER, signal => readCatalogue(url, signal));
  });
  if (!catalogue) return undefined;
  const { document, sold } = catalogue;
  await findings.must('/openapi.json describes it, which is all that x402scan reads', () =>
    must(document, 'it does not exist: serve your OpenAPI document at this path'),
  );
  await findings.must('something is sold here', () =>
    must(sold.length > 0, 'no operation has a price: write x-price, and 402 among its responses'),
  );
  const asked = await askAll(sold, findings);
  await checkListing(catalogue, asked, findings, 'must');
  await findings.should('a crawler that sends no body gets the price, too', () => askWithoutBody(asked));
  return { catalogue, asked };
}

async function askAll(sold: readonly Sold[], findings: Findings): Promise<Asked[]> {
  const first = sold.filter(({ method }) => method).slice(0, MAX_ASKED);
  const asked = await inTurns(first, ask);
  for (const { operation, reply, challenge, fault } of asked)
    await findings.must(`${nameOf(operation)} answers 402 with its price`, () => {
      if (fault !== undefined) throw fault;
      must(reply && challenge, 'it does not answer');
      checkOptions(challenge, operation);
    });
  return asked;
}

async function ask(operation: Sold): Promise<Asked & { fault?: Error }> {
  let reply: Reply | undefined;
  let challenge: Challenge | undefined;
  try {
    reply = await call(operation.url, askingPrice(operation), ASK_MS);
    challenge = readChallenge(reply);
    return { operation, reply, challenge };
  } catch (error) {
    return { operation, reply, challenge, fault: error as Error };
  }
}

/** Checks the answer to a call without a body, because crawlers at first have no example of a body. */
async function askWithoutBody(asked: readonly Asked[]): Promise<void> {
  const [first] = asked.filter(({ operation, challenge }) => challenge && operation.body !== undefined);
  if (!first) return;
  const { url, method } = first.operation;
  expectStatus(await call(url, { method }, ASK_MS), 402);
}

/** `POST /path`. */
export function nameOf({ method, path }: Sold): string {
  return `${method} ${path}`;
}

/** Runs work on all items, a few at a time, in order. */
export async function inTurns<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < all.length; at += AT_ONCE)
    results.push(...(await Promise.all(all.slice(at, at + AT_ONCE).map(work))));
  return results;
}
