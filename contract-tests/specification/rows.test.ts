import { expect } from 'chai';
import { existsSync, readFileSync } from 'node:fs';
import { loadContract } from '../../src/contract/parse-contract.js';
import type { Json } from '../../src/contract/json.js';
import { titlesOf } from '../support/test-titles.js';
import { namedTest, PAGE, readParts, ROOT, sectionLines, writtenSection, type Row } from './rows.js';

const contract = loadContract(new URL('openapi.yaml', ROOT));
const { document } = contract;
const parts = readParts();
const rows = parts.flatMap(({ rows }) => rows);

const readText = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8');
const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null;

/** Follows one `$ref`. */
function follow(value: unknown): unknown {
  if (!isJson(value) || typeof value.$ref !== 'string') return value;
  return value.$ref
    .slice(2)
    .split('/')
    .reduce<unknown>((node, key) => (node as Json)[key], document);
}

const { schemas, responses } = document.components as Record<string, Json>;
const operations = new Map<string, Json>();
for (const [path, methods] of Object.entries(document.paths as Record<string, Record<string, Json>>))
  for (const [method, operation] of Object.entries(methods))
    operations.set(String(operation.operationId), { ...operation, path, method });

const SHORT: Record<string, string[]> = {
  request: ['requestBody', 'content', 'application/json', 'schema'],
  answer: ['responses', '200', 'content', 'application/json', 'schema'],
};

/** The value at the place in the contract that a row names. */
function placed(words: string): unknown {
  const [first = '', ...rest] = words.split(' ');
  const start = operations.get(first) ?? schemas?.[first] ?? responses?.[first] ?? document[first];
  return rest
    .flatMap(word => SHORT[word] ?? [word])
    .reduce<unknown>((node, key) => {
      const parent = follow(node);
      return isJson(parent) ? parent[key] : undefined;
    }, start);
}

/** The places where `found` differs from `wanted`. Objects may have additional members, lists may not. */
function lacks(wanted: unknown, found: unknown, place: string): string[] {
  const there = follow(found);
  if (!isJson(wanted) || Array.isArray(wanted))
    return JSON.stringify(wanted) === JSON.stringify(there)
      ? []
      : [`${place} is ${JSON.stringify(there)}, not ${JSON.stringify(wanted)}`];
  if (!isJson(there)) return [`${place} is missing`];
  return Object.entries(wanted).flatMap(([key, value]) => lacks(value, there[key], `${place} ${key}`));
}

function wrongTests({ tests = [], at = [] }: Row): string[] {
  const named = tests.map(namedTest).filter(({ file, title }) => {
    if (!existsSync(new URL(`contract-tests/${file}`, ROOT))) return true;
    return !titlesOf(file).some(known => known.includes(title));
  });
  const files = at.filter(file => !existsSync(new URL(file, ROOT)));
  return [...named.map(({ file, title }) => `${file}: ${title}`), ...files];
}

function wrongPackages({ packages = {}, package: own = {} }: Row): string[] {
  const folders = ['', 'packages/sandbox/', 'handlers/', 'contract-tests/tools/'];
  const files = folders.map(folder => JSON.parse(readText(`${folder}package.json`)) as Json);
  const versions = Object.assign(
    {},
    ...files.flatMap(({ dependencies, devDependencies }) => [dependencies, devDependencies]),
  ) as Record<string, string>;
  const others = Object.entries(packages).filter(([name, start]) => !versions[name]?.startsWith(start));
  return [...others.map(([name]) => `${name} is ${versions[name]}`), ...lacks(own, files[0], 'package.json')];
}

function wrongContract({ contract: places = {}, atomic = {} }: Row): string[] {
  const prices = Object.fromEntries(contract.paid.map(({ id, price }) => [id, String(price.atomic)]));
  return [
    ...Object.entries(places).flatMap(([words, wanted]) => lacks(wanted, placed(words), words)),
    ...lacks(atomic, prices, 'atomic'),
  ];
}

describe('The specification of the service, row by row', () => {
  for (const { part, rows: own } of parts)
    describe(part, () => {
      for (const row of own)
        it(row.says, () => {
          expect([...wrongContract(row), ...wrongPackages(row), ...wrongTests(row)]).to.deep.equal([]);
        });
    });

  it('gives a reason for each row that does not fully hold, and a proof for each that does', () => {
    const silent = rows.filter(row => row.verdict !== 'holds' && !row.why);
    const unshown = rows.filter(
      ({ verdict, contract: places, atomic, packages, package: own, tests, at }) =>
        verdict !== 'not shown' && !(places ?? atomic ?? packages ?? own ?? tests ?? at),
    );
    expect([...silent, ...unshown].map(({ says }) => says)).to.deep.equal([]);
  });

  it('is in docs/reports/conformance.md as make conformance-rows writes it', () => {
    expect(writtenSection(readFileSync(PAGE, 'utf8'))).to.equal(sectionLines(parts).join('\n'));
  });

  it('reports a row that the contract contradicts, a missing test and a package of another version', () => {
    const row: Row = {
      says: '',
      verdict: 'holds',
      contract: {
        'summarize request': { required: ['text', 'title'] },
        'brandFeedback x-price amount': '0.05',
      },
      atomic: { summarize: '1000' },
      packages: { koa: '2.' },
      tests: ['contract/frozen.test.ts: what nobody tests', 'contract/gone.test.ts'],
      at: ['src/gone.ts'],
    };
    expect([...wrongContract(row), ...wrongPackages(row), ...wrongTests(row)]).to.have.length(7);
  });
});
