import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  importContract,
  type Imported,
  type ImportOptions,
  type Row,
} from '../../contract/import/import-contract.js';
import { ImportFault } from '../../contract/import/source-document.js';
import { objectOf } from '../../contract/references.js';
import { writeErr, writeOut } from '../terminal.js';
import { askPrices } from './ask-prices.js';
import { contractYaml, overlayOf } from './contract-yaml.js';
import { placeOf, readDocument } from './read-document.js';

const USAGE = `Usage: coinslot import <file or URL> --price PATTERN=USD [options]

Writes an openapi.yaml that sells the calls of an API, from its own OpenAPI document: Swagger 2.0, or OpenAPI 3.0 to 3.2, in JSON or
YAML. Then coinslot run sells them. It prints what is sold, what is left out, and why.

  --price PATTERN=USD   what calls cost: 'POST /report=0.50', '*=0.01'. A pattern is a method and path, a path, a tag or an operationId;
                        * stands for anything. Can be repeated: the pattern with the most characters besides * wins, and
                        the last of several equal ones. Operations without a price are not sold. Without this option, a
                        terminal lists what can be sold, and asks
  --price-by PATTERN=RULE
                        what makes the price rise; --price is then the lowest:
                        'POST /report=length of /body/text, 0.001 per 1000, at most 0.50' (or value, items or bytes); can be repeated
  --only PATTERN        import only matching operations; can be repeated
  --upstream URL        the address of the API (default: the first of the document's servers); may begin with \${NAME}. It also
                        replaces the x-upstream of the document
  --secret HEADER=TEXT  a header for the API, with the variable that holds the key: 'Authorization=Bearer \${API_TOKEN}'. Without it,
                        the credentials in the document are sent from variables, which are printed
  --flow FLOW           authorization (default): charged only for an answer; upfront: paid before the work, for slow work
  --keep                leave the document where it is: openapi.yaml is then an overlay of it (OpenAPI Overlay 1.0) with prices and the
                        address of the API, and every build reads both, so that the document may be regenerated
  --out FILE            the file to write (default openapi.yaml)
  --replace             overwrite the file if it exists
  --help                print this text`;

const MAX_ADDRESSES = 5;

const OPTIONS = {
  price: { type: 'string', multiple: true },
  'price-by': { type: 'string', multiple: true },
  only: { type: 'string', multiple: true },
  secret: { type: 'string', multiple: true },
  upstream: { type: 'string' },
  flow: { type: 'string' },
  out: { type: 'string' },
  replace: { type: 'boolean' },
  keep: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

type Values = ReturnType<typeof parsed>['values'];

function parsed() {
  try {
    return parseArgs({ options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new ImportFault(`${(error as Error).message}\n\n${USAGE}`);
  }
}

function flowOf(flow: string | undefined): 'authorization' | 'upfront' {
  if (flow === undefined || flow === 'authorization') return 'authorization';
  if (flow === 'upfront') return flow;
  throw new ImportFault(`--flow must be authorization or upfront, not ${flow}.`);
}

async function run(name: string, values: Values): Promise<void> {
  const { price = [], out = 'openapi.yaml', keep = false } = values;
  const isAsked = price.length === 0;
  if (isAsked && !(process.stdin.isTTY && process.stdout.isTTY))
    throw new ImportFault(`--price is missing: --price '*=0.01'\n\n${USAGE}`);
  const place = placeOf(name);
  const document = place.protocol === 'file:' ? fileURLToPath(place) : undefined;
  checkFiles(document, resolve(out), values);
  const { text, at } = await readDocument(place);
  const prices = isAsked ? await chosenPrices(text, optionsOf(at, ['*=0.01'], values)) : price;
  const imported = await importContract(text, optionsOf(at, prices, values));
  writeOut(tableOf(imported.table));
  const sold = imported.table.filter(({ leftOut }) => leftOut === undefined);
  if (sold.length === 0)
    throw new ImportFault(
      ['Nothing in the document can be sold, so nothing was written.', ...imported.notes.map(noteOf)].join(
        '\n',
      ),
    );
  const kept = keep && document !== undefined ? relative(dirname(resolve(out)), document) : undefined;
  const written =
    kept === undefined ? imported.contract : overlayOf(imported, `./${kept.replaceAll('\\', '/')}`);
  writeFileSync(out, contractYaml(written, `Written by coinslot import from ${kept ?? at.href}`));
  writeOut(`\n${summaryOf(imported, sold.length, out)}\n`);
}

/** The rules for --price that the user gives at the terminal. */
async function chosenPrices(text: string, options: ImportOptions): Promise<string[]> {
  const { table } = await importContract(text, options);
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const nothing = (): never => {
    throw new ImportFault('Nothing was chosen, so nothing was written.');
  };
  const closed = once(terminal, 'close').then(nothing);
  // `question` rejects at Ctrl-C.
  const ask = (question: string): Promise<string> => terminal.question(question).catch(nothing);
  try {
    return await askPrices(table, question => Promise.race([ask(question), closed]), writeOut);
  } finally {
    closed.catch(() => undefined);
    terminal.close();
  }
}

/** @param document undefined if it is on the web */
function checkFiles(document: string | undefined, out: string, { replace, keep }: Values): void {
  if (document === out)
    throw new ImportFault(
      `${document} is the document itself: rename it, for example to api.yaml, and import that file.`,
    );
  if (!existsSync(dirname(out)))
    throw new ImportFault(`There is no folder ${dirname(out)}: create it, or name another file with --out.`);
  if (existsSync(out) && replace !== true)
    throw new ImportFault(`${out} already exists: name another file with --out, or add --replace.`);
  if (keep === true && document === undefined)
    throw new ImportFault(
      '--keep needs a file, because every build reads it: save the document next to openapi.yaml.',
    );
}

function optionsOf(at: URL, prices: string[], values: Values): ImportOptions {
  const { only, secret, upstream, flow, 'price-by': pricesBy } = values;
  return {
    at,
    prices,
    ...(pricesBy ? { pricesBy } : {}),
    flow: flowOf(flow),
    ...(only ? { only } : {}),
    ...(secret ? { secrets: secret } : {}),
    ...(upstream === undefined ? {} : { upstream }),
    load: async file => (await readDocument(file, file.origin)).text,
  };
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ method, path, price, leftOut, notes }) => [
    `${method} ${path}`,
    leftOut === undefined ? (price ?? '') : '',
    [...(leftOut === undefined ? ['sells'] : [`left out: ${leftOut}`]), ...notes].join('; '),
  ]);
  const widths = [0, 1].map(column =>
    Math.min(60, Math.max(0, ...lines.map(line => line[column]?.length ?? 0))),
  );
  return lines
    .map(
      ([call = '', price = '', what = '']) =>
        `${call.padEnd(widths[0] ?? 0)}  ${price.padStart(widths[1] ?? 0)}  ${what}\n`,
    )
    .join('');
}

function summaryOf({ contract, table, asked, notes }: Imported, sold: number, out: string): string {
  const left = table.length - sold;
  return [
    `${sold} ${sold === 1 ? 'operation' : 'operations'} for sale in ${out}${left > 0 ? `, ${left} left out` : ''}.`,
    ...[...notes, ...leftovers(resolve(out))].map(noteOf),
    `Calls are sent to ${addressesOf(contract).join(', ')}.`,
    ...asked.map(({ variable, what }) => `Set ${variable} before you start the server: ${what}.`),
    `Next: ${isPrivate(contract) ? 'ALLOW_PRIVATE_UPSTREAMS=true ' : ''}npx coinslot run${out === 'openapi.yaml' ? '' : `, in a folder with ${out} as its openapi.yaml`}`,
  ].join('\n');
}

function noteOf(note: string): string {
  return `Note: ${note}.`;
}

/** What is left from the contract that `out` replaces. No imported operation has a handler. */
function leftovers(out: string): string[] {
  const isShop = basename(out) === 'openapi.yaml' && existsSync(join(dirname(out), 'handlers'));
  return isShop
    ? ['handlers/ is for the previous contract and would stop the build: delete it and its tests in test/']
    : [];
}

/** The first few addresses that calls are sent to: `https://api.example.com`, or a variable that holds an address. */
function addressesOf({ paths }: Imported['contract']): string[] {
  const urls = Object.values(objectOf(paths)).flatMap(item =>
    Object.values(objectOf(item)).map(each => String(objectOf(objectOf(each)['x-upstream']).url)),
  );
  const all = [...new Set(urls.map(url => /^(https?:\/\/)?[^/?]+/i.exec(url)?.[0] ?? url))];
  return all.length > MAX_ADDRESSES
    ? [...all.slice(0, MAX_ADDRESSES), `and ${all.length - MAX_ADDRESSES} more`]
    : all;
}

/** Whether the API is on this machine. The server calls such an API only if it is allowed to. */
function isPrivate(contract: Imported['contract']): boolean {
  return addressesOf(contract).some(url =>
    /^https?:\/\/(localhost|127\.|\[::1\]|10\.|192\.168\.)/i.test(url),
  );
}

try {
  const { values, positionals } = parsed();
  const [name, ...rest] = positionals;
  if (values.help) writeOut(`${USAGE}\n`);
  else if (name === undefined || rest.length > 0) throw new ImportFault(USAGE);
  else await run(name, values);
} catch (error) {
  if (!(error instanceof ImportFault)) throw error;
  writeErr(`${error.message}\n`);
  process.exitCode = 1;
}
