import type { SampleMints } from './sample-mints.js';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What `sandbox.json` in the state folder says: where the sandbox is and who is who on its chain. */
export type SandboxInfo = {
  /** The server's address. */
  url: string;
  rpcUrl: string;
  facilitatorUrl: string;
  marketUrl: string | null;
  network: string;
  v1Network: string;
  usdcMint: string;
  payTo: string;
  feePayer: string;
  buyer: string;
  mints: SampleMints;
  /** The chain's name; every HTTP answer of the sandbox carries it in the header `coinslot-sandbox`. */
  id: string;
  pid: number;
  /** The process that started this one and takes it along when it ends; null for one started by hand. */
  parent: number | null;
};

const PROBE_MS = 2000;

export function infoFile(stateDir: string): string {
  return join(stateDir, 'sandbox.json');
}

/** The last sandbox that ran on a state folder, alive or not; null if there was none. */
export function readInfo(stateDir: string): SandboxInfo | null {
  try {
    const info = JSON.parse(readFileSync(infoFile(stateDir), 'utf8')) as SandboxInfo;
    return typeof info.rpcUrl === 'string' && typeof info.id === 'string' ? info : null;
  } catch {
    return null;
  }
}

/** Whether that very sandbox answers, and not another program on its port. */
export async function isAlive({ rpcUrl, id }: SandboxInfo): Promise<boolean> {
  try {
    const response = await fetch(`${rpcUrl}/health`, { signal: AbortSignal.timeout(PROBE_MS) });
    await response.arrayBuffer();
    return response.ok && response.headers.get('coinslot-sandbox') === id;
  } catch {
    return false;
  }
}
