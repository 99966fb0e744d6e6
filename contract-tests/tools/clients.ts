import { readFileSync } from 'node:fs';
import { record, recordMissing } from './record.js';

/**
 * Records the results of `make clients`, one row of docs/reports/conformance.md for each tool. Reads the file that
 * run.sh writes: a line for each step with `ok`, `FAILED` or `not run`, then `<what it does>: <tools>`, then why it was
 * not run, separated by tabs.
 */

const FOLDER = new URL('../../../contract-tests/clients/', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, FOLDER), 'utf8');
const first = (pattern: RegExp, text: string): string => pattern.exec(text)?.[1] ?? 'unknown';

/** Versions as the package files pin them, which run.sh installs. */
const npm = (folder: string) => (tool: string) =>
  (JSON.parse(read(`${folder}/package.json`)) as { dependencies: Record<string, string> }).dependencies[
    tool
  ] ?? 'unknown';
const pip =
  (name: string, folder = 'python') =>
  () =>
    first(new RegExp(`^${name}==(\\S+)`, 'm'), read(`${folder}/requirements.txt`));

const BUYS = 'buys a call in the sandbox';
const BUYS_ALL = 'buys every operation of the sandbox';
const WITHOUT_RPC = `${BUYS_ALL} without an RPC server`;
const BUYS_TOOLS = 'buys every tool of the sandbox over MCP';
const IN_A_HOST =
  'buys every tool of the sandbox, directly and through coinslot mcp; never passes a model more than 4 KB of text';
const GENERATES = 'generates a client from the served description; the client compiles and buys';

type Client = { tool: string; checks: string; version: (tool: string) => string };

/** Every tool that a step of run.sh names, in the order of the table. */
export const CLIENTS: Client[] = [
  { tool: 'openapi-typescript', checks: GENERATES, version: npm('typescript') },
  { tool: 'openapi-fetch', checks: BUYS, version: npm('typescript') },
  { tool: '@hey-api/openapi-ts', checks: GENERATES, version: npm('typescript') },
  { tool: 'orval', checks: GENERATES, version: npm('typescript') },
  { tool: '@x402/fetch', checks: BUYS, version: npm('typescript') },
  { tool: '@x402/axios', checks: BUYS, version: npm('typescript') },
  { tool: 'x402-fetch', checks: BUYS, version: npm('first-generation') },
  { tool: 'x402-axios', checks: BUYS, version: npm('first-generation') },
  { tool: 'x402-solana', checks: BUYS, version: npm('first-generation') },
  { tool: '@payai/x402-solana', checks: BUYS, version: npm('first-generation') },
  {
    tool: 'x402',
    checks: 'its PaymentRequirementsSchema accepts every v1 challenge',
    version: npm('first-generation'),
  },
  {
    tool: 'mcpay',
    checks: `${BUYS_TOOLS}, in x402 v1; never passes a model more than 4 KB of text`,
    version: npm('first-generation'),
  },
  {
    tool: '@agentcash/discovery',
    checks: 'finds every paid operation, without error or warning',
    version: npm('crawlers'),
  },
  {
    tool: '@x402/extensions',
    checks: 'its validators accept bazaar and payment-identifier of every challenge',
    version: npm('crawlers'),
  },
  {
    tool: 'a directory of @x402/extensions',
    checks:
      'lists every operation after its first sale, over HTTP and as a tool; the official client finds them there, and buys',
    version: () => npm('catalogue')('@x402/extensions'),
  },
  {
    tool: 'a registry of @x402/extensions',
    checks:
      'its verifier accepts the signature of coinslot list, which registers with a stand-in for x402scan',
    version: () => npm('catalogue')('@x402/extensions'),
  },
  {
    tool: '@x402/core',
    checks: 'its parsePaymentRequired reads every challenge, header and body',
    version: npm('crawlers'),
  },
  { tool: 'mppx', checks: 'its discovery validator reports no problem', version: npm('crawlers') },
  { tool: '@faremeter/fetch', checks: `${WITHOUT_RPC}, in both versions`, version: npm('faremeter') },
  {
    tool: 'agentcash',
    checks: `${BUYS_ALL} in ten consecutive calls, and makes ten concurrent calls at one price, without a memo; its mainnet is stubbed`,
    version: npm('agentcash'),
  },
  { tool: 'solana-pay-kit', checks: WITHOUT_RPC, version: pip('solana-pay-kit', 'pay-kit') },
  {
    tool: '@solana/mpp',
    checks: `${WITHOUT_RPC}, and an order with a transfer that it sends itself`,
    version: npm('mpp'),
  },
  { tool: 'openapi-python-client', checks: GENERATES, version: pip('openapi-python-client') },
  { tool: 'x402 for Python', checks: `${BUYS}, and every operation of the mock`, version: pip('x402') },
  { tool: 'pytest', checks: 'tests a shop that coinslot testing starts', version: pip('pytest') },
  {
    tool: '@usebruno/cli',
    checks: 'the answers of the mock satisfy the assertions of every request in generated/bruno',
    version: npm('bruno'),
  },
  { tool: '@modelcontextprotocol/sdk', checks: BUYS_TOOLS, version: npm('mcp') },
  {
    tool: '@modelcontextprotocol/client',
    checks: `${BUYS_TOOLS}, in both protocol eras`,
    version: npm('mcp'),
  },
  { tool: 'mcp-remote', checks: `${BUYS_TOOLS}, for a host that starts commands`, version: npm('mcp') },
  { tool: 'the MCP session of x402 for Python', checks: BUYS_TOOLS, version: pip('x402', 'mcp') },
  {
    tool: 'an MCP server of x402 for Python',
    checks: 'coinslot conformance finds nothing wrong with it; coinslot mcp buys from it',
    version: pip('x402', 'mcp'),
  },
  { tool: '@modelcontextprotocol/inspector-cli', checks: 'lists all tools', version: npm('mcp') },
  {
    tool: '@modelcontextprotocol/conformance',
    checks: 'the scenarios for a tool server, except those that need tools defined by the suite',
    version: npm('mcp'),
  },
  {
    tool: '@ai-sdk/mcp 1',
    checks: IN_A_HOST,
    version: () => first(/@([^@]+)$/, npm('hosts')('ai-sdk-mcp-1')),
  },
  { tool: '@ai-sdk/mcp', checks: IN_A_HOST, version: npm('hosts') },
  { tool: '@openai/agents', checks: IN_A_HOST, version: npm('hosts') },
  { tool: '@langchain/mcp-adapters', checks: IN_A_HOST, version: npm('hosts') },
  { tool: 'openai-agents', checks: IN_A_HOST, version: pip('openai-agents', 'hosts') },
  { tool: 'langchain-mcp-adapters', checks: IN_A_HOST, version: pip('langchain-mcp-adapters', 'hosts') },
  { tool: 'fastmcp', checks: IN_A_HOST, version: pip('fastmcp', 'hosts') },
  {
    tool: 'oapi-codegen',
    checks: GENERATES,
    version: () => first(/oapi-codegen\/v2 v(\S+)/, read('go/go.mod')),
  },
  {
    tool: 'v1challenge',
    checks: 'Go finds a v1 challenge in the body only, without the header that means v2',
    version: () => 'contract-tests/clients/go/v1challenge',
  },
  {
    tool: 'x402-reqwest',
    checks: `${BUYS_ALL} in both versions`,
    version: () => first(/x402-reqwest = \{ version = "=([^"]+)"/, read('rust/Cargo.toml')),
  },
  {
    tool: 'solana-pay-kit for Rust',
    checks: WITHOUT_RPC,
    version: () => first(/solana-pay-kit = \{ version = "=([^"]+)"/, read('rust-pay-kit/Cargo.toml')),
  },
  { tool: 'github.com/coinbase/x402/go', checks: BUYS, version: () => 'none' },
  {
    tool: 'openapi-generator',
    checks: GENERATES,
    version: () =>
      first(/openapi-generator-maven-plugin<\/artifactId>\s*<version>([^<]+)/, read('java/pom.xml')),
  },
];

/** The name of a tool's record. */
export const noteOf = (tool: string): string => `client-${tool.replace(/\W+/g, '-')}`;

type Step = { word: string; does: string; tools: string[]; why: string };

function stepOf(line: string): Step {
  const [word = '', name = '', why = ''] = line.split('\t');
  const [does = '', tools = ''] = name.split(': ');
  return { word, does, tools: tools.split(', '), why };
}

/** @throws Error if a step names a tool that has no row */
function main(file: string): void {
  const steps = readFileSync(file, 'utf8').trim().split('\n').map(stepOf);
  const known = CLIENTS.map(({ tool }) => tool);
  const strangers = steps.flatMap(({ tools }) => tools).filter(tool => !known.includes(tool));
  if (strangers.length) throw new Error(`contract-tests/tools/clients.ts has no row for ${strangers.join()}`);
  for (const { tool, checks, version } of CLIENTS) {
    const taken = steps.filter(({ tools }) => tools.includes(tool));
    if (taken.length === 0) continue;
    const missing = taken.find(({ word }) => word === 'not run');
    if (missing) {
      recordMissing(noteOf(tool), tool, missing.why);
      continue;
    }
    const failed = taken.filter(({ word }) => word === 'FAILED').map(({ does }) => does);
    record(noteOf(tool), {
      tool,
      version: version(tool),
      checks,
      cases: taken.map(({ does }) => does).join(', '),
      result: failed.length === 0 ? 'no failure' : `failed: ${failed.join(', ')}`,
    });
  }
}

const [, program = '', file] = process.argv;
if (file && program.endsWith('clients.js')) main(file);
