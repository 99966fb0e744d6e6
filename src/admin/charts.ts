import { escapeHtml } from '../pages/escape.js';
import { toDecimal } from '../price/amount.js';
import { unitName } from './periods.js';
import type { History } from './sales-history.js';
import type { UnitSales } from './tally.js';

/** The number of operations that have their own colour. All others share one more colour. */
const MAX_SERIES = 6;
const OTHERS = 'others';

/** The part of the chart that has one colour: one operation, or all operations that have no colour of their own. */
type Series = { name: string; amounts: Map<number, bigint>; total: bigint };

/**
 * Revenue by hour or day, with a colour for each operation. The browser draws it from the table, which has the same numbers; without
 * scripts there is only the table.
 */
export function chartOf(history: History): string {
  const { sales, period, first, last } = history;
  const series = seriesOf(sales);
  const counts = new Map<number, number>();
  for (const { unit, sales: count } of sales) counts.set(unit, (counts.get(unit) ?? 0) + count);
  const units = Array.from({ length: last - first + 1 }, (_, index) => last - index);
  const rows = units.map(unit => {
    const cells = series.map(({ amounts }) => amounts.get(unit) ?? 0n);
    const all = cells.reduce((sum, each) => sum + each, 0n);
    const numbers = [...cells, all].map(
      each => `<td class="number">${each === 0n ? '0' : toDecimal(each)}</td>`,
    );
    return `<tr><th scope="row" data-at="${(unit * period.unitMs) / 1_000}">${unitName(period, unit)}</th>${numbers.join('')}<td class="number">${counts.get(unit) ?? 0}</td></tr>`;
  });
  const title = `USDC by ${period.unit} in the last ${period.title}, by operation`;
  const heads = [...series.map(({ name }) => name), 'All USDC', 'Sales'];
  return `<figure class="chart" data-chart data-unit="${period.unit}"><figcaption>${escapeHtml(title)}</figcaption>
<div class="plot" aria-hidden="true"></div>
${legend(series)}
<details><summary>Numbers by ${period.unit}</summary>
<div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(title)}"><table><thead><tr><th scope="col">${period.unit === 'hour' ? 'Hour' : 'Day'}</th>${heads.map(head => `<th scope="col" class="number">${escapeHtml(head)}</th>`).join('')}</tr></thead>
<tbody>${rows.join('\n')}</tbody></table></div></details>
</figure>`;
}

function legend(series: readonly Series[]): string {
  const items = series.map(
    ({ name, total }, index) =>
      `<li><span class="swatch of-${colourOf(name, index)}"></span>${name === OTHERS ? OTHERS : `<code>${escapeHtml(name)}</code>`} <span class="soft">${toDecimal(total)} USDC</span></li>`,
  );
  return `<ul class="legend" aria-label="Operations">${items.join('')}</ul>`;
}

/** `--series-7` is the colour that the other operations share. */
function colourOf(name: string, index: number): number {
  return name === OTHERS ? MAX_SERIES + 1 : index + 1;
}

/** The operations with the highest revenue, each with its amounts by unit; the others are added up in one more series. */
function seriesOf(sales: readonly UnitSales[]): Series[] {
  const of = new Map<string, Series>();
  for (const { operation, unit, amount } of sales) add(of, operation, unit, amount);
  const all = [...of.values()].toSorted((a, b) => (a.total < b.total ? 1 : a.total > b.total ? -1 : 0));
  if (all.length <= MAX_SERIES + 1) return all;
  const others = new Map<string, Series>();
  for (const { amounts } of all.slice(MAX_SERIES))
    for (const [unit, amount] of amounts) add(others, OTHERS, unit, amount);
  return [...all.slice(0, MAX_SERIES), ...others.values()];
}

function add(to: Map<string, Series>, name: string, unit: number, amount: bigint): void {
  const known = to.get(name) ?? { name, amounts: new Map<number, bigint>(), total: 0n };
  known.amounts.set(unit, (known.amounts.get(unit) ?? 0n) + amount);
  to.set(name, { ...known, total: known.total + amount });
}
