import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { addOperation } from '../operation/edit-shop.js';
import { EXAMPLE, FILES } from './shop-texts.js';
import { writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: coinslot init [folder]

Writes a new shop into a folder (default: the current one): an openapi.yaml that sells one call, its handler, and a test. Existing
files are kept; an existing package.json is completed.`;

const OWN_PACKAGE = new URL('../../../../package.json', import.meta.url);
/** The packages that compile a shop's handlers, in the versions that Coinslot itself is built with. */
const COMPILERS = ['@types/node', 'openapi-typescript', 'typescript'];

type Package = {
  version: string;
  devDependencies?: Record<string, string>;
  engines?: Record<string, string>;
};
type ShopPackage = Record<string, unknown> &
  Record<'scripts' | 'dependencies' | 'devDependencies', Record<string, string> | undefined>;

async function init(folder: string): Promise<void> {
  if (existsSync(join(folder, 'openapi.yaml')))
    throw new Error(`${folder} already has an openapi.yaml, so it is a shop. Nothing was changed.`);
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(FILES)) writeNew(join(folder, name), text);
  await addOperation(folder, EXAMPLE.operation);
  writeFileSync(join(folder, 'handlers', `${EXAMPLE.operation.id}.ts`), EXAMPLE.handler);
  writePackage(folder);
}

function writeNew(file: string, text: string): void {
  if (existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function writePackage(folder: string): void {
  const file = join(folder, 'package.json');
  const own = JSON.parse(readFileSync(OWN_PACKAGE, 'utf8')) as Package;
  const known = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ShopPackage) : undefined;
  const { scripts, dependencies, devDependencies, ...rest } = known ?? ({} as ShopPackage);
  const compilers = Object.entries(own.devDependencies ?? {}).filter(([name]) => COMPILERS.includes(name));
  const coinslot = dependencies?.['coinslot'] ?? own.version;
  const shop = {
    name: basename(folder)
      .toLowerCase()
      .replace(/[^a-z0-9._-]/g, '-'),
    private: true,
    ...rest,
    type: 'module',
    engines: own.engines,
    scripts: {
      build: 'coinslot build',
      start: 'coinslot run',
      // The server's messages name these scripts.
      buy: 'coinslot buy',
      check: 'coinslot check',
      ledger: 'coinslot ledger',
      ...scripts,
      test: 'coinslot build && node --test dist/test/',
    },
    dependencies: { coinslot, ...dependencies },
    devDependencies: {
      'coinslot-sandbox': sandboxBeside(coinslot) ?? own.version,
      ...Object.fromEntries(compilers),
      ...devDependencies,
    },
  };
  writeFileSync(file, `${JSON.stringify(shop, undefined, 2)}\n`);
}

/** `make package` packs the sandbox into a file next to Coinslot's. @returns undefined if Coinslot was not installed from a file */
function sandboxBeside(coinslot: string): string | undefined {
  const [, folder, version] = /^(file:(?:.*\/)?)coinslot-([^/]*\.tgz)$/.exec(coinslot) ?? [];
  return version === undefined ? undefined : `${folder}coinslot-sandbox-${version}`;
}

const [, , name = '.', ...rest] = process.argv;
if (name.startsWith('-') || rest.length) {
  writeOut(`${USAGE}\n`);
  process.exitCode = name === '--help' ? 0 : 2;
} else {
  try {
    const folder = resolve(name);
    await init(folder);
    writeOut(
      `A shop is in ${folder}. Next:${name === '.' ? '' : ` cd ${name} &&`} npm install && npm test && npm start\n`,
    );
  } catch (error) {
    writeErr(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
