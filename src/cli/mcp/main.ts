import '../../rails/solana/silence-bigint-warning.js';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { toAtomic } from '../../price/amount.js';
import { messageOf } from '../../ledger/fault.js';
import { KeyPairFault, readSecretKeyFile } from '../../rails/solana/key-pair.js';
import { answerFilesOf, openWallet, usualFolder } from '../../wallet/open-wallet.js';
import { PaidTools } from '../../wallet/paid-tools.js';
import { PurseFault } from '../../wallet/purse.js';
import { BuyFault } from '../../wallet/shop-client.js';
import { endpointOf, Shop } from '../../wallet/shop-connection.js';
import { walletServer } from './wallet-server.js';
import { consoleOnStderr, writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: coinslot mcp --url <shop> --keypair <file> [options]
An MCP server over stdio for hosts that can't pay: it offers the tools of a shop that speaks MCP and x402, and pays for them.

  --url URL          the shop, or its MCP endpoint (a URL without a path gets /mcp)
  --keypair FILE     keypair file of the payer, in the format of solana-keygen, with mode 0600
  --max-price USDC   the highest price to pay for one call (default 0.05)
  --budget USDC      the most to pay in a day, UTC (default 1.00)
  --rpc URL          Solana RPC server (default: the public one of the network)
  --state FOLDER     the wallet's own folder (default ~/.coinslot/wallets/<address>); wallets with one folder share the budget
  --timeout SECONDS  how long a tool call may take (default 50): hosts end one at about 60
  --allow-http       pay a shop on another machine without TLS, where anybody on the way can change who is paid
  --help             print this text

docs/how-to/mcp.md has the configuration of the common hosts.`;

const MAX_SECONDS = 3_600;

/** An option is wrong. */
class OptionFault extends Error {}

function options() {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: {
      url: text,
      keypair: text,
      'max-price': { ...text, default: '0.05' },
      budget: { ...text, default: '1.00' },
      rpc: text,
      state: text,
      timeout: { ...text, default: '50' },
      'allow-http': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  });
  return values;
}

function secretKeyOf(file: string | undefined): Uint8Array {
  if (file === undefined) throw new OptionFault(`--keypair is missing.\n\n${USAGE}`);
  try {
    return readSecretKeyFile(resolve(file));
  } catch (error) {
    if (error instanceof KeyPairFault) throw new OptionFault(`--keypair ${file}: ${error.message}`);
    throw error;
  }
}

function amountOf(option: string, text: string): bigint {
  try {
    return toAtomic(text);
  } catch (error) {
    throw new OptionFault(`${option} ${messageOf(error)}`);
  }
}

function secondsOf(text: string): number {
  const seconds = Number(text);
  if (seconds > 0 && seconds <= MAX_SECONDS) return seconds;
  throw new OptionFault(`--timeout must be a number of seconds, more than 0 and at most ${MAX_SECONDS}`);
}

function rpcOf(text: string | undefined): string | undefined {
  if (text === undefined || (/^https?:/.test(text) && URL.canParse(text))) return text;
  throw new OptionFault('--rpc is not an http(s) URL.');
}

function versionOf(): string {
  const text = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

async function run(values: ReturnType<typeof options>): Promise<void> {
  if (values.url === undefined) throw new OptionFault(`--url is missing.\n\n${USAGE}`);
  const shop = new Shop(endpointOf(values.url, values['allow-http']));
  const { state, rpc } = values;
  const limits = {
    maxPrice: amountOf('--max-price', values['max-price']),
    budget: amountOf('--budget', values.budget),
  };
  const timeoutMs = secondsOf(values.timeout) * 1_000;
  const folderOf = state === undefined ? usualFolder : () => resolve(state);
  const secretKey = secretKeyOf(values.keypair);
  const wallet = await openWallet(secretKey, { folderOf, rpcUrl: rpcOf(rpc), limits, timeoutMs });
  const paid = new PaidTools({ ...wallet, shop, files: answerFilesOf(wallet) });
  const version = versionOf();
  serveStdio(() => walletServer({ ...wallet, shop, paid, version }), {
    onerror: error => writeErr(`${error.message}\n`),
  });
}

// Nothing but the protocol may go to stdout, whatever a package wants to say.
globalThis.console = consoleOnStderr();
try {
  const values = options();
  if (values.help) writeOut(`${USAGE}\n`);
  else await run(values);
} catch (error) {
  const known = [OptionFault, BuyFault, PurseFault, TypeError].some(each => error instanceof each);
  writeErr(`${known ? messageOf(error) : `The wallet could not start: ${messageOf(error)}`}\n`);
  process.exitCode = 1;
}
