import type { Registry } from 'prom-client';
import type { Sold } from './observer.js';
import { countIn, type Count } from './series.js';
import { usdcCounter } from './usdc-counter.js';

/** The sales of this process by operation, with a separate count of those to the operator's own wallets. */
export type SaleCounts = { add(sale: Sold): void; sales: Count; own: Count };

/** @param own the operator's own addresses */
export function saleCountsIn(
  registry: Registry,
  operations: readonly { id: string }[],
  own: ReadonlySet<string>,
): SaleCounts {
  const labelNames = ['operation'];
  const count = (name: string, help: string): Count => countIn(registry, { name, help, labelNames });
  const sales = count('coinslot_sales_total', 'Calls that this process sold, by operation.');
  const revenue = usdcCounter(
    registry,
    'coinslot_revenue_usdc_total',
    'USDC that this process earned, by operation. Exact: sums are kept in atomic units.',
  );
  const ownSales = count(
    'coinslot_own_sales_total',
    'Calls that this process sold to the wallets in OWN_WALLETS, by operation.',
  );
  const ownRevenue = usdcCounter(
    registry,
    'coinslot_own_revenue_usdc_total',
    'USDC that this process earned from the wallets in OWN_WALLETS, by operation.',
  );
  for (const { id } of operations) {
    for (const each of [sales, ownSales]) each.begin(id);
    for (const each of [revenue, ownRevenue]) each.add(id, 0n);
  }
  return {
    sales,
    own: ownSales,
    add({ operation, payer, amount }) {
      sales.add(operation);
      revenue.add(operation, amount);
      if (!own.has(payer)) return;
      ownSales.add(operation);
      ownRevenue.add(operation, amount);
    },
  };
}
