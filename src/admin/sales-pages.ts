import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { Context } from 'koa';
import type { Reports } from '../ledger/replica.js';
import type { Ledger, SalesWanted } from '../ledger/store.js';
import { monthOf } from '../books/booked-sums.js';
import { exported, FILES, FORMATS, type Format } from '../books/export-formats.js';
import { movements } from '../books/movements.js';
import { csvLine } from '../operator/csv-line.js';
import { PageFault } from '../pages/form.js';
import { toDecimal } from '../price/amount.js';
import type { OperatorParts } from './operator-sources.js';
import { booksHtml } from './books-page.js';
import type { Shown } from './operator-layout.js';
import { paymentsInProgress } from './owed-payments.js';
import { payerHtml } from './payer-page.js';
import { readFilter, wantedOf } from './sales-filter.js';
import { PAGE_SIZE, salesHtml } from './sales-list.js';

type Parts = Pick<OperatorParts, 'ledger' | 'reports' | 'ownWallets' | 'counted' | 'explorer'>;
/** Sends a page to a signed-in operator. */
type Send = (ctx: Context, title: string, main: (now: number) => Promise<string>) => Promise<void>;

const CSV_SLICE = 500;
/** The maximum number of exports at a time, because each one holds resources until its download ends. */
const MAX_EXPORTS = 2;
const COLUMNS = [
  'settled_at',
  'payment',
  'operation',
  'usdc',
  'repaid_usdc',
  'state',
  'payer',
  'own',
  'transaction',
];

/** The pages of sales and of payers, and sales as a file. */
export class SalesPages {
  readonly #parts: Parts;
  readonly #reports: Reports;
  readonly #send: Send;
  #exports = 0;

  constructor(parts: Parts, send: Send) {
    this.#parts = parts;
    this.#reports = parts.reports ?? parts.ledger;
    this.#send = send;
  }

  readonly sales = (ctx: Context): Promise<void> => {
    const { counted } = this.#parts;
    return this.#send(ctx, 'Sales', async now => {
      const filter = readFilter(ctx.query);
      const page = await this.#reports.listSales({ ...wantedOf(filter), limit: PAGE_SIZE });
      const operations = counted().operations.map(({ operation }) => operation);
      return salesHtml(page, filter, { ...(await this.#shown(now)), operations });
    });
  };

  readonly payer = (ctx: Context): Promise<void> => {
    return this.#send(ctx, 'Payer', async now => {
      const payer = payerOf(ctx);
      const totals = await this.#reports.payerTotals(payer);
      if (totals.sales === 0) throw new PageFault(404, 'Nothing was sold to this payer.');
      const { before } = readFilter(ctx.query);
      const page = await this.#reports.listSales({
        ...wantedOf({ payer, ...(before ? { before } : {}) }),
        limit: PAGE_SIZE,
      });
      return payerHtml(payer, totals, page, await this.#shown(now));
    });
  };

  async #shown(now: number): Promise<Shown> {
    const { ledger, ownWallets: own, explorer } = this.#parts;
    return { now, own, explorer, inProgress: paymentsInProgress(await ledger.openOrders(), now) };
  }

  readonly books = (ctx: Context): Promise<void> => this.#send(ctx, 'Books', async now => booksHtml(now));

  /** The movements of a month. To be called only for a signed-in operator. */
  readonly movements = (ctx: Context): void => {
    const { month = '', format = '' } = paramsOf(ctx);
    if (!isFormat(format)) throw new PageFault(404, 'There is no such file.');
    const { type, ending } = FILES[format];
    const within = monthOf(month);
    this.#download(ctx, exported(format, movements(this.#reports, within)), {
      type,
      name: `movements-${month}.${ending}`,
    });
  };

  /** To be called only for a signed-in operator. */
  readonly export = (ctx: Context): void => {
    const wanted = wantedOf(readFilter(ctx.query));
    this.#download(ctx, csvOf(this.#reports, wanted, this.#parts.ownWallets), {
      type: 'text/csv; charset=utf-8',
      name: 'sales.csv',
    });
  };

  #download(ctx: Context, text: AsyncIterable<string>, { type, name }: { type: string; name: string }): void {
    if (this.#exports >= MAX_EXPORTS)
      throw new PageFault(503, 'Two exports are already running. Wait until one of them has ended.', {
        'Retry-After': '10',
      });
    this.#exports += 1;
    const lines = Readable.from(text, { objectMode: false });
    lines.once('close', () => (this.#exports -= 1));
    ctx.set({
      'Content-Type': type,
      'Content-Disposition': `attachment; filename="${name}"`,
    });
    ctx.body = lines;
  }
}

/** The sales as CSV, newest first, in pieces with pauses for other work. */
async function* csvOf(
  ledger: Pick<Ledger, 'listSales'>,
  wanted: SalesWanted,
  own: ReadonlySet<string>,
): AsyncGenerator<string> {
  yield csvLine(COLUMNS);
  let place = wanted;
  for (;;) {
    const { sales, next } = await ledger.listSales({ ...place, limit: CSV_SLICE });
    const lines = sales.map(each =>
      csvLine([
        new Date(each.settledAt).toISOString(),
        each.id,
        each.operation,
        toDecimal(each.amount),
        toDecimal(each.repaid),
        each.state,
        each.payer,
        own.has(each.payer) ? 'yes' : 'no',
        each.settlement,
      ]),
    );
    if (lines.length > 0) yield lines.join('');
    if (!next) return;
    place = { ...wanted, before: next };
    await turn();
  }
}

function isFormat(name: string): name is Format {
  return Object.hasOwn(FORMATS, name);
}

function payerOf(ctx: Context): string {
  return paramsOf(ctx)['payer'] ?? '';
}

function paramsOf(ctx: Context): Record<string, string> {
  return (ctx as unknown as { params: Record<string, string> }).params;
}
