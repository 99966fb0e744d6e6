import type { Contract } from '../../contract/contract.js';

const MAX_ROWS = 30;

/** A table of what a shop sells: each operation with its price and address. */
export function soldTable({ paid }: Contract, url: string): string {
  const rows = paid.slice(0, MAX_ROWS).map(({ id, price, method, path }) => {
    return [id, price.shown, `${method} ${url}${path}`] as const;
  });
  const widths = [0, 1].map(column => Math.max(0, ...rows.map(row => row[column as 0 | 1].length)));
  const lines = rows.map(([id, price, address]) =>
    [id.padEnd(widths[0] ?? 0), price.padEnd(widths[1] ?? 0), address].join('  '),
  );
  const more = paid.length > MAX_ROWS ? [`and ${paid.length - MAX_ROWS} more`] : [];
  const all = [...lines, ...more];
  return `${all.map(line => `  ${line}\n`).join('')}${all.length > 0 ? '\n' : '  Nothing: openapi.yaml has no x-price.\n\n'}`;
}
