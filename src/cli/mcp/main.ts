import '../../rails/solana/silence-bigint-warning.js';
import { readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { messageOf } from '../../ledger/fault.js';
import { answerFilesOf, openWallet, usualFolder } from '../../wallet/open-wallet.js';
import { PaidTools } from '../../wallet/paid-tools.js';
import { PurseFault } from '../../wallet/purse.js';
import { BuyFault } from '../../wallet/shop-client.js';
import { Shop } from '../../wallet/shop-connection.js';
import { install, type Surroundings } from './install.js';
import { OptionFault, WALLET_OPTIONS, walletSettings, type WalletValues } from './wallet-options.js';
import { walletServer } from './wallet-server.js';
import { consoleOnStderr, writeErr, writeOut } from '../terminal.js';

const USAGE = `Usage: coinslot mcp --url <shop> --keypair <file> [options]
       coinslot mcp install --host <host> --url <shop> --keypair <file> [options]

An MCP server over stdio for hosts that can't pay: it offers the tools of a shop that supports MCP and x402, and pays for them.

  --url URL          the shop, or its MCP endpoint (a URL without a path gets /mcp)
  --keypair FILE     keypair file of the payer, in the format of solana-keygen, with mode 0600
  --max-price USDC   the highest price to pay for one call (default 0.05)
  --budget USDC      the most to pay per day, UTC (default 1.00)
  --rpc URL          Solana RPC server (default: the public one for the network)
  --state FOLDER     the wallet's own folder (default ~/.coinslot/wallets/<address>); wallets with the same folder share the budget
  --timeout SECONDS  how long a tool call may take (default 50): hosts give up after about 60
  --allow-http       pay a shop on another machine without TLS, where anybody on the network path can change the receiver
  --help             print this text

install writes this command, with its options, into the settings of a host, after showing the changes.

  --host HOST        claude-code, claude-desktop, codex, cursor, goose or vscode
  --name NAME        the server's name in the host (default: from the host name of the shop)
  --yes              write without asking

See docs/how-to/mcp.md for what else hosts need.`;

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...WALLET_OPTIONS,
      host: { type: 'string' },
      name: { type: 'string' },
      yes: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  });
  return { values, command: positionals.join(' ') };
}

function surroundings(): Surroundings {
  const { platform, argv } = process;
  const program = realpathSync(argv[1] ?? '');
  const place = { home: homedir(), folder: process.cwd(), platform, env: process.env };
  return { ...place, program, print: writeOut, allowed };
}

async function allowed(): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question('Write this? [y/N] ');
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

function versionOf(): string {
  const text = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

async function serve(values: WalletValues): Promise<void> {
  const { endpoint, secretKey, folder, ...rest } = walletSettings(values);
  const shop = new Shop(endpoint);
  const wallet = await openWallet(secretKey, {
    ...rest,
    folderOf: folder === undefined ? usualFolder : () => folder,
  });
  const paid = new PaidTools({ ...wallet, shop, files: answerFilesOf(wallet) });
  const version = versionOf();
  serveStdio(() => walletServer({ ...wallet, shop, paid, version }), {
    onerror: error => writeErr(`${error.message}\n`),
  });
}

// Stdout is reserved for the protocol, so packages' console output goes to stderr.
globalThis.console = consoleOnStderr();
try {
  const { values, command } = options();
  if (values.help) writeOut(`${USAGE}\n`);
  else if (command === 'install') process.exitCode = (await install(values, surroundings())) ? 0 : 1;
  else if (command === '') await serve(values);
  else throw new OptionFault(`There is no coinslot mcp ${command}.\n\n${USAGE}`);
} catch (error) {
  const known = [OptionFault, BuyFault, PurseFault, TypeError].some(each => error instanceof each);
  writeErr(`${known ? messageOf(error) : `The wallet could not start: ${messageOf(error)}`}\n`);
  process.exitCode = 1;
}
