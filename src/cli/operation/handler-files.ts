import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { OperationFault } from './contract-text.js';
import type { NewOperation } from './describe-operation.js';

/** Split, so that the check for unfinished code does not match this file. */
const UNFINISHED = 'TO' + 'DO';

/** The paths of a handler's files, which depend on the kind of shop folder. */
type Layout = {
  handler: (id: string) => string;
  test: (id: string) => string;
  writeTest: (id: string) => string;
};

/** This repository is also a shop; its tests are among those of the server. */
function layoutOf(folder: string): Layout {
  const handler = (id: string): string => join(folder, 'handlers', `${id}.ts`);
  if (existsSync(join(folder, 'src', 'contract', 'operation.ts')))
    return {
      handler,
      test: id => join(folder, 'contract-tests', 'handlers', `${id}.test.ts`),
      writeTest: repositoryTest,
    };
  return {
    handler,
    test: id => join(folder, 'test', `${id}.test.ts`),
    writeTest: shopTest,
  };
}

/**
 * Writes a handler that sells nothing until it is implemented, its entry in handlers/index.ts, and a test that fails until then.
 * @returns the names of the files
 */
export function addHandler(folder: string, operation: NewOperation): string[] {
  const { id } = operation;
  const layout = layoutOf(folder);
  const index = join(folder, 'handlers', 'index.ts');
  const [handler, test] = [layout.handler(id), layout.test(id)];
  for (const file of [handler, test])
    if (existsSync(file)) throw new OperationFault(`${file} already exists. Nothing was changed.`);
  const indexText = withEntry(readFileSync(index, 'utf8'), operation);
  write(handler, handlerText(operation));
  write(test, layout.writeTest(id));
  write(index, indexText);
  return [handler, test, index];
}

/**
 * Removes whatever still exists of what `addHandler` wrote, and the handler even if it was edited. Other files in the folder of the
 * operation stay. @returns the names of the files
 */
export function removeHandler(folder: string, id: string): string[] {
  const layout = layoutOf(folder);
  const index = join(folder, 'handlers', 'index.ts');
  const name = existsSync(index) ? moduleOf(readFileSync(index, 'utf8'), id) : id;
  const touched: string[] = [];
  for (const file of [layout.handler(name), layout.test(name)]) {
    if (!existsSync(file)) continue;
    rmSync(file);
    touched.push(file);
  }
  if (!existsSync(index)) return touched;
  removeIfEmpty(dirname(layout.test(name)));
  const before = readFileSync(index, 'utf8');
  const after = withoutEntry(before, id);
  if (after === before) return touched;
  writeFileSync(index, after);
  return [...touched, index];
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // The folder contains other tests, or does not exist.
  }
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function handlerText({ id, summary, flow, answer, price }: NewOperation): string {
  const fields = Object.keys(answer).join(', ');
  const lines = [
    "import { UpstreamFailure, type Entry } from 'coinslot';",
    "import type { operations } from '../generated/openapi.js';",
    '',
    '/**',
    ` * Sells: ${summary}.`,
    ` * A failure is an {@link UpstreamFailure}: 'invalid' becomes 400, 'failed' 502, 'unavailable' 503. ${failed(flow)}`,
    ' */',
    `export const ${id}: Entry<operations['${id}']> = () => ({`,
    '  call: async ({ signal }) => {',
    `    // ${UNFINISHED}: do the work with the call's body, and return { status: 200, body: { ${fields} } }.`,
    '    signal.throwIfAborted();',
    `    throw new UpstreamFailure('unavailable', '${id} is not implemented yet.');`,
    '  },',
    ...(price.mode === 'handler' ? priceLines(String(price.max)) : []),
    ...(flow === 'upfront' ? readyLines(id) : []),
    '});',
  ];
  return `${lines.join('\n')}\n`;
}

function failed(flow: NewOperation['flow']): string {
  return flow === 'upfront'
    ? 'After a failure in `ready`, the call is not charged; after one in `call`, the answer is owed and the work is tried again.'
    : 'A call that fails is not charged.';
}

function priceLines(max: string): string[] {
  return [
    '  // Returns the price of a call, always the same for the same call. It runs for every 402 and every payment.',
    `  price: () => '${max}',`,
  ];
}

/** An upfront call is paid before its handler runs, so `ready` must refuse it until the handler is written. */
function readyLines(id: string): string[] {
  return [
    '  // Runs before the payment. If it throws, the call is refused and not charged.',
    '  ready: async () => {',
    `    // ${UNFINISHED}: refuse what could not be delivered, or remove this function.`,
    `    throw new UpstreamFailure('unavailable', '${id} is not implemented yet.');`,
    '  },',
  ];
}

function repositoryTest(id: string): string {
  return `import { expect } from 'chai';
import { answerOfExample } from 'coinslot';

describe('${id}', () => {
  it('answers the example of the contract as the contract says', async () => {
    // Rejects if the answer breaks its schema.
    const { status } = await answerOfExample('${id}');
    expect(status).to.equal(200);
  });
});
`;
}

function shopTest(id: string): string {
  return `import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import { answerOfExample } from 'coinslot';

test('${id} answers the example of the contract as the contract says', async () => {
  // Rejects if the answer breaks its schema.
  const { status } = await answerOfExample('${id}');
  equal(status, 200);
});
`;
}

const TABLE = 'export const handlers = {';
const END = /^\} satisfies .*;$/;

function withEntry(text: string, { id }: NewOperation): string {
  const lines = text.replace(`${TABLE}}`, `${TABLE}\n}`).split('\n');
  const end = lines.findIndex(line => END.test(line));
  const lastImport = lines.findLastIndex(
    line => /^(import .*|\} )from '.*';$/.test(line) || /^import .*;$/.test(line),
  );
  if (end < 0 || !lines.includes(TABLE))
    throw new OperationFault(
      `handlers/index.ts must have the lines '${TABLE}' and '} satisfies …;'. Nothing was changed.`,
    );
  lines.splice(end, 0, `  ${id},`);
  lines.splice(lastImport + 1, 0, `import { ${id} } from './${id}.js';`);
  return lines.join('\n');
}

/** The module in handlers/ from which the index imports the handler of an operation: `textStats`, or `text-stats/text-stats`. */
function moduleOf(text: string, id: string): string {
  const imports = text.matchAll(/^import \{([^}]*)\} from '\.\/([\w./-]+)\.js';$/gm);
  const found = [...imports].find(([, names = '']) => names.split(',').some(name => name.trim() === id));
  return found?.[2] ?? id;
}

function withoutEntry(text: string, id: string): string {
  const imports = new RegExp(`^import [^;]* from '\\./${moduleOf(text, id)}\\.js';\\n`, 'm');
  const lines = text.replace(imports, '').split('\n');
  const table = lines.indexOf(TABLE);
  const first = lines.findIndex((line, at) => at > table && new RegExp(`^  ${id}\\b`).test(line));
  if (table < 0 || first < 0) return lines.join('\n');
  lines.splice(first, entryLength(lines.slice(first)));
  return lines.join('\n').replace(`${TABLE}\n}`, `${TABLE}}`);
}

/** The number of lines of an entry: up to the line that closes its brackets. */
function entryLength(lines: string[]): number {
  let depth = 0;
  for (const [at, line] of lines.entries()) {
    for (const character of line) {
      if ('([{'.includes(character)) depth += 1;
      if (')]}'.includes(character)) depth -= 1;
    }
    if (depth <= 0) return at + 1;
  }
  return 1;
}
