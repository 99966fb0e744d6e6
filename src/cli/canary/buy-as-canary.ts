import { randomUUID } from 'node:crypto';
import type { Json } from '../../contract/json.js';
import { isSoldStatus } from '../../contract/sold-status.js';
import type { CanaryRun } from '../../operator/canary-runs.js';
import { Buyer, type BuyerParts } from '../../wallet/purchase.js';
import type { PendingPayment, Purse } from '../../wallet/purse.js';
import {
  BuyFault,
  findOperation,
  overHttp,
  reasonOf,
  requestOf,
  type ServerAnswer,
} from '../../wallet/shop-client.js';
import { readCatalogue, type Catalogue, type Sold } from '../conformance/catalogue.js';
import { Broken, must } from '../conformance/findings.js';
import { isObject } from '../conformance/http-call.js';
import { cheapest } from '../conformance/purchase-checks.js';
import { checkAnswer, faultsOf } from './compare.js';

export type CanaryParts = BuyerParts & {
  /** PUBLIC_URL, without trailing slash. */
  shop: string;
  /** The receiver; undefined if no setting names it. */
  payTo: string | undefined;
  /** The operation to buy; if undefined, the cheapest one is bought. */
  operation: string | undefined;
};

/** The call to buy. `body`: JSON. */
type Chosen = { operation: string; body: string };
type Facts = Pick<CanaryRun, 'operation' | 'payment' | 'amount' | 'settlement'>;

const MAX_FAULT = 500;
const NAME = 'canary ';

/**
 * Buys once and compares the result with the contract. An unanswered payment from this run or an earlier one is sent again instead of a new
 * one. Rejects if the wallet can't be used.
 */
export async function buyAsCanary(parts: CanaryParts): Promise<CanaryRun> {
  const startedAt = Date.now();
  const facts: Facts = {};
  const fault = await purchase(parts, facts).catch(faultIn);
  const tookMs = Date.now() - startedAt;
  return {
    ...{ id: randomUUID(), at: Date.now(), tookMs, payer: parts.signer.address },
    ...facts,
    ...(fault === undefined ? {} : { fault: fault.slice(0, MAX_FAULT) }),
  };
}

function faultIn(error: unknown): string {
  if (error instanceof Broken || error instanceof BuyFault) return error.message;
  if (error instanceof TypeError) return `The shop can't be reached: ${reasonOf(error)}`;
  throw error;
}

/** @returns what was wrong, if anything */
async function purchase(parts: CanaryParts, facts: Facts): Promise<string | undefined> {
  const { shop, purse, fates, timeoutMs, signer } = parts;
  const catalogue = await readCatalogue(shop);
  const { operation, body } = unfinished(purse, shop) ?? (await choose(catalogue, parts));
  facts.operation = operation;
  const listing = await findOperation(shop, operation);
  must(!listing.mock, `${shop} is a mock: nothing was paid.`);
  const outcome = await new Buyer(parts).buy<ServerAnswer>({
    ...{ name: nameOf({ operation, body }), shop, tool: operation },
    signal: new AbortController().signal,
    send: overHttp(requestOf(listing, body)).send,
    onKept: payment => note(facts, payment),
  });
  const { document = {} } = catalogue;
  const described = descriptionOf(catalogue, operation);
  if (outcome.kind === 'answered') {
    const { payment, answer, landed } = outcome;
    if (landed) facts.settlement = landed;
    const bought = { document, described, url: listing.url, payer: signer.address, payment, answer };
    return (await faultsOf(bought, fates)).join(' ') || undefined;
  }
  if (outcome.kind === 'unpriced') return freeFault(document, described, outcome.answer);
  if (outcome.kind !== 'kept') return outcome.error;
  const waited = `There was no answer within ${Math.round(timeoutMs / 1000)} s: ${outcome.error}`;
  return `${waited} The payment is kept, and the next run continues with it.`;
}

/** A free call (x-free) is answered without a payment. */
function freeFault(document: Json, described: Json, answer: ServerAnswer): string | undefined {
  const said = answer.body.toString('utf8').slice(0, 200);
  must(isSoldStatus(answer.status), `The shop answered ${answer.status} instead of a price: ${said}`);
  checkAnswer({ document, described, answer });
  return undefined;
}

function note(facts: Facts, { id, amount, landed }: PendingPayment): void {
  Object.assign(facts, { payment: id, amount, ...(landed === undefined ? {} : { settlement: landed }) });
}

/** The key of a call contains the whole call, so that a later run can continue with its payment even if the contract has changed. */
const nameOf = (chosen: Chosen): string => NAME + JSON.stringify(chosen);

function unfinished(purse: Purse, shop: string): Chosen | undefined {
  const found = purse.pending().find(each => each.shop === shop && each.call.startsWith(NAME));
  return found && (JSON.parse(found.call.slice(NAME.length)) as Chosen);
}

/** @throws Broken, BuyFault: nothing was paid */
async function choose(catalogue: Catalogue, parts: CanaryParts): Promise<Chosen> {
  const { shop, operation: wanted, payTo } = parts;
  const named = catalogue.sold.filter(({ described }) => typeof described?.operationId === 'string');
  const sold = wanted === undefined ? paidFirst(named) : named.filter(each => idOf(each) === wanted);
  must(
    sold.length > 0,
    `${shop} sells nothing${wanted === undefined ? '' : ` named ${wanted}`}. Nothing was paid.`,
  );
  const asked = await cheapest({ sold });
  must(asked, `${shop} asks for no payment in USDC on Solana. Nothing was paid.`);
  for (const { payTo: other } of asked.challenge.accepts)
    must(
      payTo === undefined || other === payTo,
      `The shop asks for payment to ${other}, but PAY_TO is ${payTo}: the receiver may have been changed without your knowledge. Nothing was paid.`,
    );
  const operation = idOf(asked.operation);
  const { example } = await findOperation(shop, operation);
  return { operation, body: JSON.stringify(example ?? {}) };
}

/** The operations without free calls, or all operations if every one has free calls. */
function paidFirst(sold: Sold[]): Sold[] {
  const never = sold.filter(({ described }) => !isObject(described?.['x-free']));
  return never.length > 0 ? never : sold;
}

const idOf = ({ described }: Sold): string => String(described?.operationId);

function descriptionOf({ sold }: Catalogue, operation: string): Json {
  return sold.find(each => idOf(each) === operation)?.described ?? {};
}

/** One line that reports the result of a run. */
export function lineOf({ operation, fault, settlement, tookMs }: CanaryRun): string {
  const what = operation ?? 'nothing';
  if (fault !== undefined) return `FAILED  ${what}: ${fault}`;
  if (settlement === undefined) return `ok      ${what}: free; the answer matches the contract`;
  return `ok      ${what}: answer, receipts and chain agree, ${tookMs} ms, ${settlement}`;
}
