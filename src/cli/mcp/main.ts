import '../../rails/solana/silence-bigint-warning.js';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { toAtomic } from '../../price/amount.js';
import { messageOf } from '../../ledger/fault.js';
import { isLocal } from '../../net/host-names.js';
import { KeyPairFault, readSecretKeyFile } from '../../rails/solana/key-pair.js';
import { Fates } from '../../wallet/fate.js';
import { Purse, PurseFault } from '../../wallet/purse.js';
import { createSigner } from '../../wallet/signer.js';
import { AnswerFiles } from './answer-files.js';
import { PaidTools } from './paid-tools.js';
import { Shop } from './shop-connection.js';
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

function endpointOf(text: string | undefined, allowHttp: boolean): string {
  if (text === undefined) throw new OptionFault(`--url is missing.\n\n${USAGE}`);
  if (!/^https?:/.test(text) || !URL.canParse(text))
    throw new OptionFault(`--url ${text} is not an http(s) URL.`);
  const url = new URL(text);
  if (url.protocol === 'http:' && !isLocal(url.hostname) && !allowHttp)
    throw new OptionFault(
      `--url ${text} has no TLS: anybody on the way could change who is paid. Use https, or --allow-http.`,
    );
  if (url.pathname === '/') url.pathname = '/mcp';
  return url.href;
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
  const shop = new Shop(endpointOf(values.url, values['allow-http']));
  const limits = {
    maxPrice: amountOf('--max-price', values['max-price']),
    budget: amountOf('--budget', values.budget),
  };
  const timeoutMs = secondsOf(values.timeout) * 1_000;
  const rpcUrl = rpcOf(values.rpc);
  const signer = await createSigner(secretKeyOf(values.keypair), rpcUrl);
  const payer = signer.address;
  const purse = new Purse(resolve(values.state ?? join(homedir(), '.coinslot', 'wallets', payer)));
  const files = new AnswerFiles(join(purse.folder, 'answers'));
  const paid = new PaidTools({ shop, purse, files, signer, fates: new Fates(rpcUrl), limits, timeoutMs });
  const version = versionOf();
  serveStdio(() => walletServer({ shop, paid, purse, limits, payer, version }), {
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
  const known = error instanceof OptionFault || error instanceof PurseFault || error instanceof TypeError;
  writeErr(`${known ? messageOf(error) : `The wallet could not start: ${messageOf(error)}`}\n`);
  process.exitCode = 1;
}
