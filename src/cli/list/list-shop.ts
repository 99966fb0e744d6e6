import { publicUrlFault } from '../../checks/public-url-check.js';
import { Findings, type Finding } from '../conformance/findings.js';
import { askCoinbase, COINBASE, COINBASE_STEPS } from './coinbase.js';
import type { Standing } from './directory.js';
import { askMcpRegistry, MCP_REGISTRY } from './mcp-registry.js';
import { askPayAi, PAYAI, PAYAI_STEPS } from './payai.js';
import { paySkillsUnwritten, writeProvider } from './pay-skills.js';
import { checkAgentcash, checkBazaars } from './published-rules.js';
import { readShop, type ReadShop } from './read-shop.js';
import { register, X402SCAN, x402scanUnasked } from './x402scan.js';

/** The URLs of the directories. */
export type Directories = { coinbase: string; payai: string; x402scan: string; mcpRegistry: string };

export const DIRECTORIES: Directories = {
  coinbase: COINBASE,
  payai: PAYAI,
  x402scan: X402SCAN,
  mcpRegistry: MCP_REGISTRY,
};

export type Task = {
  url: string;
  directories: Directories;
  /** If true, no directory is contacted. */
  offline: boolean;
  /** Registers at x402scan with this key: 64 bytes, seed and public key. */
  secretKey?: Uint8Array;
  /** Writes the files for pay-skills into a folder. */
  provider?: { folder: string; name: string; category?: string };
};

/** `notes`: what was not done, and why. `failed`: whether something that the user requested did not succeed. */
export type Listing = { findings: Finding[]; standings: Standing[]; notes: string[]; failed: boolean };

/** Reports whether directories can list a shop, its standing in each, and what to do next. */
export async function listShop(task: Task): Promise<Listing> {
  const findings = new Findings();
  const notes: string[] = [];
  const shop = await readShop(task.url, findings);
  if (!shop) return { findings: findings.all, standings: [], notes, failed: true };
  await checkAgentcash(shop, findings);
  if (!(await checkBazaars(shop.asked, findings)))
    notes.push(
      'the validators of @x402/extensions did not run: npm install --save-dev @x402/extensions@2.27.0 (120 MB), then run this command again',
    );
  const standings = await standingsOf(shop, task, findings, notes);
  const registered = standings.find(({ directory }) => directory === 'x402scan')?.state;
  const unregistered = task.secretKey !== undefined && registered !== 'listed';
  const broken = findings.all.some(({ fault, advice }) => fault !== undefined && !advice);
  return { findings: findings.all, standings, notes, failed: broken || unregistered };
}

async function standingsOf(
  shop: ReadShop,
  { url, directories, offline, secretKey, provider }: Task,
  findings: Findings,
  notes: string[],
): Promise<Standing[]> {
  // Directories can't reach a shop whose URL is not public, and have no entries for it.
  const hidden = publicUrlFault(new URL(url)) !== undefined;
  const asks = (name: keyof Directories): boolean =>
    !offline && !(hidden && directories[name] === DIRECTORIES[name]);
  if (offline) notes.push('no directory was contacted (--offline)');
  else if (hidden) notes.push('no directory was contacted: directories cannot reach this address');
  const unasked = (directory: string, next: string[]): Standing => ({
    directory,
    state: 'unknown',
    found: 'it was not asked',
    next,
  });
  return [
    asks('payai') ? await askPayAi(shop, directories.payai) : unasked('PayAI', PAYAI_STEPS),
    asks('coinbase')
      ? await askCoinbase(shop, directories.coinbase, findings)
      : unasked('Coinbase', COINBASE_STEPS),
    secretKey && asks('x402scan')
      ? await register(shop, directories.x402scan, secretKey)
      : x402scanUnasked(directories.x402scan),
    provider ? writeProvider(shop, provider.folder, provider.name, provider.category) : paySkillsUnwritten(),
    await askMcpRegistry(shop, asks('mcpRegistry') ? directories.mcpRegistry : undefined, findings),
  ];
}
