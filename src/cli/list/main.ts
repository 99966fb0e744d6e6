import '../../rails/solana/silence-bigint-warning.js';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { KeyPairFault, readSecretKeyFile } from '../../rails/solana/key-pair.js';
import type { Finding } from '../conformance/findings.js';
import { withoutSlash } from '../conformance/http-call.js';
import { writeErr, writeOut } from '../terminal.js';
import type { Standing } from './directory.js';
import { DIRECTORIES, listShop, type Task } from './list-shop.js';
import { PaySkillsFault } from './pay-skills.js';

const USAGE = `Usage: coinslot list [URL] [options]

Checks for each directory whether it can list a shop, whether it does, and what to do next: PayAI, Coinbase, x402scan, pay-skills and the
MCP registry. It reads the shop as they do and applies the rules that they publish. URL is the shop's address (default: PUBLIC_URL).

  --register         with --keypair: registers the shop at x402scan
  --keypair FILE     a Solana key pair file of yours, mode 0600: it signs in there, and pays nothing
  --pay-skills NAME  writes the files of a pull request to pay-skills into ./providers; NAME is <operator>/<name>
  --category NAME    its category there, such as data, search or media
  --offline          contacts only the shop, no directory
  --coinbase URL     the address of Coinbase's facilitator (${DIRECTORIES.coinbase})
  --payai URL        the address of PayAI's facilitator (${DIRECTORIES.payai})
  --x402scan URL     the address of x402scan (${DIRECTORIES.x402scan})
  --mcp-registry URL the address of the MCP registry (${DIRECTORIES.mcpRegistry})
  --json             one JSON object per finding, and one per directory
  --help             print this text

Exit status 0: directories can list the shop; 1: something must be fixed first. Advice and directories that do not answer do not
count; a failed --register does.`;

class UsageFault extends Error {}

function readTask(): (Task & { json: boolean }) | undefined {
  const { values, positionals } = parsed();
  if (values.help) return undefined;
  const [url = process.env.PUBLIC_URL, ...rest] = positionals;
  if (!url || rest.length > 0) throw new UsageFault(USAGE);
  const { keypair, category, offline = false, json = false } = values;
  const provider = values['pay-skills'];
  checkTogether(values);
  return {
    url: readUrl(url, 'URL'),
    directories: {
      coinbase: readUrl(values.coinbase, '--coinbase'),
      payai: readUrl(values.payai, '--payai'),
      x402scan: readUrl(values.x402scan, '--x402scan'),
      mcpRegistry: readUrl(values['mcp-registry'], '--mcp-registry'),
    },
    offline,
    json,
    ...(keypair === undefined ? {} : { secretKey: readKey(inCallersFolder(keypair)) }),
    ...(provider === undefined
      ? {}
      : { provider: { folder: inCallersFolder('.'), name: provider, ...(category ? { category } : {}) } }),
  };
}

/** Checks options that need or exclude each other. */
function checkTogether(values: ReturnType<typeof parsed>['values']): void {
  const { register = false, keypair, category, offline } = values;
  if (register !== (keypair !== undefined))
    throw new UsageFault(
      'A registration needs both --register and --keypair; without them nothing is registered.',
    );
  if (register && offline)
    throw new UsageFault(
      '--register sends requests to x402scan, and --offline forbids requests: use only one of them.',
    );
  if (category !== undefined && values['pay-skills'] === undefined)
    throw new UsageFault('--category needs --pay-skills, which is missing.');
}

function parsed() {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const url = (standard: string) => ({ ...text, default: standard });
  try {
    return parseArgs({
      options: {
        register: flag,
        keypair: text,
        'pay-skills': text,
        category: text,
        offline: flag,
        coinbase: url(DIRECTORIES.coinbase),
        payai: url(DIRECTORIES.payai),
        x402scan: url(DIRECTORIES.x402scan),
        'mcp-registry': url(DIRECTORIES.mcpRegistry),
        json: flag,
        help: { type: 'boolean', short: 'h' },
      },
      allowPositionals: true,
    });
  } catch (error) {
    throw new UsageFault(`${(error as Error).message}\n\n${USAGE}`);
  }
}

function readUrl(text: string, what: string): string {
  if (/^https?:/.test(text) && URL.canParse(text)) return withoutSlash(text);
  throw new UsageFault(`${what}: ${text} is not an http(s) URL.`);
}

/** npm changes to the package's folder, but relative paths refer to the caller's folder. */
function inCallersFolder(path: string): string {
  return resolve(process.env.INIT_CWD ?? process.cwd(), path);
}

function readKey(file: string): Uint8Array {
  try {
    return readSecretKeyFile(file);
  } catch (error) {
    if (error instanceof KeyPairFault) throw new UsageFault(`--keypair ${file}: ${error.message}`);
    throw error;
  }
}

function lineOf({ promise, fault, advice }: Finding): string {
  if (fault === undefined) return `ok      ${promise}\n`;
  return `${advice ? 'advice ' : 'FIX    '} ${promise}\n          ${fault}\n`;
}

function linesOf({ directory, state, found, next }: Standing): string {
  const steps = next.map(step => `          - ${step}\n`).join('');
  return `${directory.padEnd(13)} ${state}: ${found}\n${steps}`;
}

async function run({ json, ...task }: Task & { json: boolean }): Promise<void> {
  const { findings, standings, notes, failed } = await listShop(task);
  if (json) {
    for (const each of [...findings, ...standings, ...notes.map(note => ({ note }))])
      writeOut(`${JSON.stringify(each)}\n`);
  } else {
    for (const finding of findings) writeOut(lineOf(finding));
    for (const note of notes) writeOut(`note    ${note}\n`);
    if (standings.length > 0) writeOut('\n');
    for (const standing of standings) writeOut(linesOf(standing));
  }
  process.exitCode = failed ? 1 : 0;
}

try {
  const task = readTask();
  if (task) await run(task);
  else writeOut(`${USAGE}\n`);
} catch (error) {
  if (!(error instanceof UsageFault || error instanceof PaySkillsFault)) throw error;
  writeErr(`${error.message}\n`);
  process.exitCode = 2;
}
