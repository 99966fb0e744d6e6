import { existsSync } from 'node:fs';
import { ConfigFault } from '../config/setting-reader.js';
import { programVersion } from '../contract/program-version.js';
import { importFromSandbox } from '../endpoints/sandbox-package.js';
import { writeErr, writeOut } from './terminal.js';

/** The commands. Each is a separate program under src/, which reads `process.argv` without the name of the command. */
const COMMANDS: Record<string, [program: string, summary: string]> = {
  run: ['main.js', 'start the server that sells what the folder describes'],
  dev: ['cli/dev/main.js', 'sell in the sandbox while you write, and rebuild the shop at every save'],
  build: ['cli/build/main.js', 'compile the contract and the handlers of the folder'],
  init: ['cli/init/main.js', 'write a new shop into the folder'],
  import: ['cli/import/main.js', 'write openapi.yaml from the OpenAPI document of an existing API'],
  contract: ['cli/contract/main.js', 'print openapi.yaml with everything that the server adds to it'],
  operation: ['cli/operation/main.js', 'add an operation to openapi.yaml, or remove one'],
  check: ['cli/check/main.js', 'show what the server would find when it starts, without starting it'],
  mock: ['cli/mock/main.js', 'serve examples of every answer, paid and unpaid, without a chain'],
  buy: ['cli/buy/main.js', 'buy one call'],
  canary: ['cli/canary/main.js', 'buy from your own shop as a buyer does, and report whether all is well'],
  mcp: ['cli/mcp/main.js', 'buy for an MCP host that has no wallet; the host starts it'],
  ledger: ['cli/ledger/main.js', 'show revenue and open payments; refund, move, verify'],
  upgrade: [
    'cli/upgrade/main.js',
    'show what a newer Coinslot changes for the shop, and whether the shop builds with it',
  ],
  webhooks: ['cli/webhooks/main.js', 'show events for the operator as they happen, and send sample events'],
  'verify-receipt': ['cli/verify-receipt/main.js', 'verify receipts that a shop signed'],
  conformance: ['cli/conformance/main.js', 'check any running x402 shop, whatever its software'],
  list: ['cli/list/main.js', 'show where a shop is listed and what directories require; register it'],
  testing: ['cli/testing/main.js', 'start the shop in a sandbox for tests, and inject faults'],
  sandbox: ['sandbox/main.js', 'start only the local chain, facilitator and market'],
};

/** The commands in the sandbox's package: those that buy, or need a local chain. */
const OF_SANDBOX = ['buy', 'canary', 'mcp', 'conformance', 'list', 'testing', 'sandbox'];

const USAGE = [
  'Usage: coinslot <command> [options]',
  '',
  ...Object.entries(COMMANDS).map(([name, [, summary]]) => `  ${name.padEnd(14)} ${summary}`),
  '',
  'coinslot <command> --help describes a command. The shop is the current folder. Settings (NETWORK, PAY_TO, PORT, …) come from the',
  'environment or from a file .env in it; docs/reference/settings.md lists them.',
].join('\n');

/** The commands without options, which read only the environment. */
const WITHOUT_OPTIONS = ['run', 'sandbox'];

/** Runs the program of a command with its own arguments. */
async function start(name: string, program: string): Promise<void> {
  process.argv.splice(2, 1);
  if (OF_SANDBOX.includes(name)) await importFromSandbox(program, `coinslot ${name}`);
  else await import(new URL(`../${program}`, import.meta.url).href);
}

const [, , name = ''] = process.argv;
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (command && WITHOUT_OPTIONS.includes(name) && process.argv.length > 3) {
  writeOut(`coinslot ${name}: ${command[1]}. It takes no options; its settings come from the environment.\n`);
  process.exitCode = process.argv[3] === '--help' ? 0 : 2;
} else if (command) {
  // Variables that are already set take precedence over those in the file.
  if (existsSync('.env')) process.loadEnvFile('.env');
  await start(name, command[0]).catch((error: unknown) => {
    if (!(error instanceof ConfigFault)) throw error;
    writeErr(`${error.message}\n`);
    process.exitCode = 1;
  });
} else if (name === '--version') {
  writeOut(`${programVersion()}\n`);
} else if (['', 'help', '--help', '-h'].includes(name)) {
  writeOut(`${USAGE}\n`);
} else {
  writeErr(`There is no command ${name}. Commands: ${Object.keys(COMMANDS).join(', ')}.\n`);
  process.exitCode = 1;
}
