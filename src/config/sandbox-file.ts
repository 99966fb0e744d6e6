import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The mints of the sandbox's chain. */
export type SampleMints = {
  /** The mint in the contract's examples, so that these can be bought in the sandbox unchanged. */
  example: string;
  classic: string;
  noAuthorities: string;
  token2022: string;
  untraded: string;
  uninitialised: string;
  /** A token with every warning sign: a multisig can mint, a program can freeze, few holders have most of it, its market looks faked. */
  doubtful: string;
  /** New accounts are frozen, and cannot be thawed. */
  frozenForEver: string;
};

/** The contents of `sandbox.json` in the state folder: the URLs of the sandbox and the addresses on its chain. */
export type SandboxInfo = {
  /** URL of the server. */
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
  /** Id of the chain; every HTTP answer of the sandbox has it in the header `coinslot-sandbox`. */
  id: string;
  pid: number;
  /** The process that started the sandbox; the sandbox ends when it does. Null for a sandbox started by hand. */
  parent: number | null;
};

const PROBE_MS = 2000;

export function infoFile(stateDir: string): string {
  return join(stateDir, 'sandbox.json');
}

/** The last sandbox that ran on a state folder, whether or not it is still running; null if there was none. */
export function readInfo(stateDir: string): SandboxInfo | null {
  try {
    const info = JSON.parse(readFileSync(infoFile(stateDir), 'utf8')) as SandboxInfo;
    return typeof info.rpcUrl === 'string' && typeof info.id === 'string' ? info : null;
  } catch {
    return null;
  }
}

/** Whether it is this sandbox that answers, and not another program on its port. */
export async function isAlive({ rpcUrl, id }: SandboxInfo): Promise<boolean> {
  try {
    const response = await fetch(`${rpcUrl}/health`, { signal: AbortSignal.timeout(PROBE_MS) });
    await response.arrayBuffer();
    return response.ok && response.headers.get('coinslot-sandbox') === id;
  } catch {
    return false;
  }
}
