import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { Contract } from '../contract/contract.js';
import { productName } from '../contract/product-name.js';
import { objectOf } from '../contract/references.js';
import type { Ledger, Payment, Repayment } from '../ledger/store.js';
import { LeakyBuckets } from '../net/leaky-buckets.js';
import { asset, html, PAGE_HEADERS } from '../pages/page-responses.js';
import type { Explorer } from '../rails/solana/explorer.js';
import type { AnswerKeys } from './answer-keys.js';
import { noReceiptHtml, RECEIPT_STYLE, receiptHtml, type Seller } from './receipt-page.js';
import { NOT_INDEXED } from './responses.js';

const RECEIPTS_PATH = '/receipts';

/** The same limit as for fetching an answer. */
const LIMIT = { capacity: 20, perSecond: 2, maxKeys: 10_000 };

type Parts = {
  contract: Contract;
  terms: { publicUrl: string; payTo: string };
  network: string;
  ledger: Pick<Ledger, 'find' | 'repaymentsOf'>;
  answerKeys: Pick<AnswerKeys, 'callerOf'>;
  explorer: Explorer | undefined;
  now?: () => number;
};

/** The data of a receipt: a payment whose money moved, and its refunds. */
type Found = { payment: Payment; repayments: Repayment[] };

/**
 * The receipt of a payment as a page to print, for anyone who has the key of its answer. Mounted after the contract's own paths.
 */
export function buyersReceipts(parts: Parts): Middleware {
  const { contract, explorer, answerKeys } = parts;
  const seller = sellerOf(parts);
  const asked = new LeakyBuckets({ ...LIMIT, ...(parts.now ? { now: parts.now } : {}) });
  const router = new Router({ strict: true, sensitive: true });
  router.get(`${RECEIPTS_PATH}/style.css`, ctx => asset(ctx, 'text/css; charset=utf-8', RECEIPT_STYLE));
  router.get(`${RECEIPTS_PATH}/:key`, async ctx => {
    // Keeps scripts of other sites from reading the receipt.
    ctx.remove('Access-Control-Allow-Origin');
    ctx.remove('Access-Control-Expose-Headers');
    ctx.set({ ...PAGE_HEADERS, ...NOT_INDEXED, 'Referrer-Policy': 'no-referrer' });
    const caller = answerKeys.callerOf(keyOf(ctx));
    if (!caller) return html(ctx, 404, noReceiptHtml(seller, 'This shop has no receipt at this link.'));
    if (asked.take(caller.id, 1) > 0) {
      ctx.set('Retry-After', '5');
      return html(ctx, 503, noReceiptHtml(seller, 'Too many requests for this receipt. Try again later.'));
    }
    const found = await paidBy(parts.ledger, caller.id);
    if (typeof found === 'string') return html(ctx, 404, noReceiptHtml(seller, found));
    const title = contract.paid.find(({ id }) => id === found.payment.operation)?.summary;
    html(ctx, 200, receiptHtml(seller, { ...found, title, explorer }));
  });
  return router.routes() as Middleware;
}

function sellerOf({ contract, terms, network }: Parts): Seller {
  const { contact, termsOfService } = objectOf(contract.document.info);
  const { name, email, url } = objectOf(contact);
  const texts = [name, email, url, termsOfService].filter(each => typeof each === 'string');
  return { shop: productName(contract), contact: texts, url: terms.publicUrl, payTo: terms.payTo, network };
}

/** The payment that was charged, or the reason why there is none. */
async function paidBy(ledger: Parts['ledger'], id: string): Promise<Found | string> {
  const own = await ledger.find(id);
  const payment = own?.aliasOf ? await ledger.find(own.aliasOf) : own;
  if (!payment || payment.state === 'claimed' || payment.state === 'released')
    return 'Nothing was charged for this call, so there is no receipt.';
  if (payment.settledAt === null)
    return 'It is not known yet whether this call was charged. Open this page again in a few minutes.';
  return { payment, repayments: await ledger.repaymentsOf(payment.id) };
}

function keyOf(ctx: Context): string {
  return (ctx as unknown as { params: Record<string, string> }).params['key'] ?? '';
}
