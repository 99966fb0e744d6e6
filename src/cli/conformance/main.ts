import '../../rails/solana/silence-bigint-warning.js';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { toAtomic } from '../../price/amount.js';
import type { Finding } from './findings.js';
import { checkShop } from './check-shop.js';
import type { Purse } from './purchase-checks.js';
import { writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: coinslot conformance URL [options], or make conformance URL=https://… [KEYPAIR=file MAX_PRICE=0.01]

Checks an x402 shop, whoever wrote it: challenge, prices, headers, discovery, errors, CORS, and what proxies do to them.
URL is the address of the shop, or of one paid operation.

  --keypair FILE     with --max-price: buys the cheapest operation once (USDC on Solana, scheme exact)
  --max-price USDC   the highest price to pay for it
  --rpc URL          the Solana RPC server that the buyer reads (default: the network's public one)
  --json             one JSON object per finding
  --help             print this text

Exit status 0: every client can pay; 1: some promise is broken. Advice (affects only some clients) does not count.`;

class UsageFault extends Error {}

type Task = { url: string; purse: Purse | undefined; json: boolean };

function readTask(): Task | undefined {
  const text = { type: 'string' } as const;
  const { values, positionals } = parsed({
    keypair: text,
    'max-price': text,
    rpc: text,
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) return undefined;
  const [url, ...rest] = positionals;
  if (!url || rest.length > 0) throw new UsageFault(USAGE);
  if (!/^https?:/.test(url) || !URL.canParse(url)) throw new UsageFault(`${url} is not an http(s) URL.`);
  const { keypair, 'max-price': price, rpc } = values;
  if ((keypair === undefined) !== (price === undefined))
    throw new UsageFault('A purchase needs both --keypair and --max-price; without them nothing is paid.');
  const purse =
    keypair === undefined
      ? undefined
      : { keypair: readKeypair(keypair), maxPrice: readPrice(price), rpcUrl: rpc };
  return { url, purse, json: values.json === true };
}

function parsed<T extends NonNullable<Parameters<typeof parseArgs>[0]>['options']>(options: T) {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new UsageFault(`${(error as Error).message}\n\n${USAGE}`);
  }
}

/** npm changes to the package's folder, but relative paths refer to the caller's folder. */
function readKeypair(file: string): Uint8Array {
  const path = resolve(process.env.INIT_CWD ?? process.cwd(), file);
  try {
    const numbers = JSON.parse(readFileSync(path, 'utf8')) as number[];
    if (Array.isArray(numbers) && numbers.length === 64) return Uint8Array.from(numbers);
  } catch {
    // The sentence below explains what is needed.
  }
  throw new UsageFault(`${path} is not a keypair file (a JSON array of 64 numbers).`);
}

function readPrice(text: unknown): bigint {
  try {
    return toAtomic(text);
  } catch (error) {
    throw new UsageFault(`--max-price ${(error as Error).message}`);
  }
}

function lineOf({ promise, fault, advice }: Finding): string {
  if (fault === undefined) return `ok      ${promise}\n`;
  return `${advice ? 'advice ' : 'FAILED '} ${promise}\n          ${fault}\n`;
}

async function run({ url, purse, json }: Task): Promise<void> {
  const findings = await checkShop(url, purse);
  const broken = findings.filter(({ fault }) => fault !== undefined);
  const failed = broken.filter(({ advice }) => !advice).length;
  for (const finding of findings) writeOut(json ? `${JSON.stringify(finding)}\n` : lineOf(finding));
  const summary = [
    `${findings.length - broken.length} kept, ${failed} broken`,
    ...(broken.length > failed
      ? [`${broken.length - failed} ${broken.length - failed === 1 ? 'piece' : 'pieces'} of advice`]
      : []),
    ...(purse ? [] : ['nothing was paid']),
  ];
  if (!json) writeOut(`${summary.join(', ')}\n`);
  process.exitCode = failed ? 1 : 0;
}

try {
  const task = readTask();
  if (task) await run(task);
  else writeOut(`${USAGE}\n`);
} catch (error) {
  writeErr(`${(error as Error).message}\n`);
  process.exitCode = 2;
}
