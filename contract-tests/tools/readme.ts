import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { PricedOperation } from '../../src/contract/contract.js';
import { loadContract } from '../../src/contract/parse-contract.js';

/** Writes the prices of openapi.yaml into the table of README.md, between its two markers. Run by `make build`. */

const ROOT = new URL('../../../', import.meta.url);
export const README = new URL('README.md', ROOT);
const TABLE = /(<!-- prices:[^>]*-->\n)([^]*?)(\n<!-- end of prices -->)/;

/** The README with the calls and prices of the contract. Rows of removed operations are deleted; new ones get a row with their summary. */
export function withPrices(readme: string, paid: PricedOperation[]): string {
  if (!TABLE.test(readme))
    throw new Error('README.md has no table between <!-- prices: … --> and <!-- end of prices -->');
  return readme.replace(TABLE, (_all, begin: string, table: string, end: string) => {
    const [header = '', line = '', ...rows] = table.trim().split('\n');
    const answers = new Map(rows.map(row => [idOf(row), row.split(' | ').at(-1) ?? '']));
    const written = paid.map(operation =>
      rowOf(operation, answers.get(operation.id) ?? `${operation.summary} |`),
    );
    return `${begin}\n${[header, line, ...written].join('\n')}\n${end}`;
  });
}

const idOf = (row: string): string => /^\| `(\w+)`/.exec(row)?.[1] ?? '';

function rowOf({ id, method, path, parameters, request, price }: PricedOperation, answer: string): string {
  const { properties = {}, required = [] } = (request?.plain ?? {}) as {
    properties?: Record<string, unknown>;
    required?: string[];
  };
  const fields = Object.keys(properties).map(name => (required.includes(name) ? name : `${name}?`));
  const query = parameters
    .filter(each => each.in === 'query')
    .map(each => (each.required ? each.name : `${each.name}?`));
  const sent = [
    ...(query.length ? [`?${query.join('&')}`] : []),
    ...(fields.length ? [`{${fields.join(', ')}}`] : []),
  ];
  return `| \`${id}\` | \`${method} ${path}\`${sent.map(text => ` \`${text}\``).join('')} | ${price.amount} | ${answer}`;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const before = readFileSync(README, 'utf8');
  const after = withPrices(before, loadContract(new URL('openapi.yaml', ROOT)).paid);
  if (after !== before) writeFileSync(README, after);
}
