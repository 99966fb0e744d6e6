import '../../rails/solana/silence-bigint-warning.js';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readConfig, type Config } from '../../config.js';
import { commandLine } from '../../config/command-line.js';
import { readInfo } from '../../config/sandbox-file.js';
import { ConfigFault } from '../../config/setting-reader.js';
import { messageOf } from '../../ledger/fault.js';
import { toAtomic } from '../../price/amount.js';
import { readSecretKeyFile } from '../../rails/solana/key-pair.js';
import { openWallet } from '../../wallet/open-wallet.js';
import { PurseFault } from '../../wallet/purse.js';
import { withoutSlash } from '../conformance/http-call.js';
import { adminOf, NoServerFault } from '../running-server.js';
import { writeErr, writeOut } from '../terminal.js';
import { buyAsCanary, lineOf, type CanaryParts } from './buy-as-canary.js';
import { RunReports } from './report-runs.js';

const USAGE = `Usage: ${commandLine('canary')} [options]

Buys the cheapest operation of your own shop through PUBLIC_URL, with the example of the contract and a wallet of its own, and compares
the answer with the contract, the receipts with the payment, and the transfer with the chain. It reports to the server: the operator
page shows the last purchases, and a failed one sends the event canary.failed.

  --every MINUTES    buys again at this interval until stopped (default: once)
  --operation ID     the operation to buy (default: the cheapest)
  --max-price USDC   the highest price to pay for one call (default 0.10)
  --budget USDC      the most to pay per day, UTC (default 1.00)
  --timeout SECONDS  how long to wait for an answer (default 120)
  --json             prints each purchase as one line of JSON
  --help             print this text

Settings are those of the server: PUBLIC_URL, NETWORK, PAY_TO, SOLANA_RPC_URL, STATE_DIR, ADMIN_URL and ADMIN_TOKEN, and CANARY_KEYPAIR,
the file with the key pair of the wallet (in the sandbox: its buyer). A payment without an answer is kept in the folder wallets of
STATE_DIR, and the next run continues with it: nothing is paid twice.
Exit status of a single purchase: 0, all is well; 1, something is wrong; 2, the options are wrong. docs/how-to/canary.md`;

class OptionFault extends Error {}

const MINUTE_MS = 60_000;
const MAX_MINUTES = 1440;
const MAX_SECONDS = 3_600;

type Options = ReturnType<typeof parsed>;

function parsed() {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    const { values } = parseArgs({
      options: {
        every: text,
        operation: text,
        'max-price': { ...text, default: '0.10' },
        budget: { ...text, default: '1.00' },
        timeout: { ...text, default: '120' },
        json: { ...flag, default: false },
        help: { ...flag, short: 'h' },
      },
    });
    return values;
  } catch (error) {
    throw new OptionFault(`${messageOf(error)}\n\n${USAGE}`);
  }
}

function amountOf(option: string, text: string): bigint {
  try {
    return toAtomic(text);
  } catch (error) {
    throw new OptionFault(`${option} ${messageOf(error)}`);
  }
}

function numberOf(option: string, text: string, most: number): number {
  const number = Number(text);
  if (number > 0 && number <= most) return number;
  throw new OptionFault(`${option} must be a number, more than 0 and at most ${most}`);
}

/** What a run needs: the server with these settings, as a buyer sees it, and the wallet. */
async function partsOf(config: Config, options: Options): Promise<CanaryParts> {
  const { stateDir, network, payTo } = config;
  const sandbox = network.name === 'sandbox' ? readInfo(stateDir) : null;
  const shop = config.publicUrl ?? sandbox?.url ?? `http://127.0.0.1:${config.port}`;
  const rpcUrl = config.rpcUrls[0] ?? sandbox?.rpcUrl;
  const file = config.variable('CANARY_KEYPAIR') ?? (sandbox ? join(stateDir, 'buyer.json') : undefined);
  if (file === undefined)
    throw new ConfigFault(
      'CANARY_KEYPAIR: set it to the file with the key pair of a wallet that has some USDC',
    );
  const secretKey = readSecretKeyFile(resolve(file));
  const maxPrice = amountOf('--max-price', options['max-price']);
  const budget = amountOf('--budget', options.budget);
  const wallet = await openWallet(secretKey, {
    folderOf: payer => join(stateDir, 'wallets', payer),
    rpcUrl,
    limits: { maxPrice, budget },
    timeoutMs: numberOf('--timeout', options.timeout, MAX_SECONDS) * 1_000,
  });
  const { operation } = options;
  return { ...wallet, shop: withoutSlash(shop), payTo: payTo ?? sandbox?.payTo, operation };
}

/** @returns whether all was well */
async function runOnce(parts: CanaryParts, config: Config, json: boolean): Promise<boolean> {
  const reports = new RunReports(parts.purse.folder);
  const run = await buyAsCanary(parts);
  reports.add(run);
  writeOut(`${json ? JSON.stringify(run) : lineOf(run)}\n`);
  const untold = await told(reports, config);
  if (untold !== undefined) writeErr(`The server did not get the report; the next run sends it. ${untold}\n`);
  return run.fault === undefined;
}

async function told(reports: RunReports, config: Config): Promise<string | undefined> {
  try {
    return await reports.tell(adminOf(config));
  } catch (error) {
    if (error instanceof NoServerFault) return error.message;
    throw error;
  }
}

async function run(options: Options): Promise<void> {
  const every = options.every === undefined ? undefined : numberOf('--every', options.every, MAX_MINUTES);
  const config = readConfig();
  const parts = await partsOf(config, options);
  const isRight = await runOnce(parts, config, options.json);
  if (every === undefined) return void (process.exitCode = isRight ? 0 : 1);
  for (;;) {
    await sleep(every * MINUTE_MS);
    await runOnce(parts, config, options.json);
  }
}

try {
  const options = parsed();
  if (options.help) writeOut(`${USAGE}\n`);
  else await run(options);
} catch (error) {
  const known = [OptionFault, ConfigFault, PurseFault].some(each => error instanceof each);
  writeErr(`${known ? '' : 'The canary could not buy: '}${messageOf(error)}\n`);
  process.exitCode = error instanceof OptionFault ? 2 : 1;
}
