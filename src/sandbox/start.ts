import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { NETWORKS } from '../rails/solana/networks.js';
import { Chain } from './chain.js';
import { serveFacilitator } from './facilitator-server.js';
import { openGenesis, walletOf, writeAtomically, type Genesis } from './genesis.js';
import { infoFile, isAlive, readInfo, type SandboxInfo } from '../config/sandbox-file.js';
import { takeLock } from './lock.js';
import { startMarket, type MarketOptions } from './market-server.js';
import { serveRpc } from './rpc-http.js';
import { readMint, uiAmount } from './tokens.js';
import { Vm } from './vm.js';

export type SandboxOptions = {
  stateDir: string;
  host?: string;
  /** 0 chooses a free port, here and below. */
  rpcPort?: number;
  facilitatorPort?: number;
  /** Length of a slot in ms; 400 as on Solana. A blockhash lives 150 slots, finality takes 32. */
  slotMs?: number;
  /** URL of the server, for `sandbox.json`. */
  publicUrl?: string;
  /** The id of the process with which the sandbox ends; null if there is none. */
  parent?: number | null;
  /** Receives log lines about failed settlements. */
  log?: (line: string) => void;
};

export type Sandbox = {
  info: SandboxInfo;
  rpc: { url: string };
  facilitator: { url: string };
  chain: Chain;
  /** Closes the ports and the journal. The next start on the state folder resumes the same chain. */
  close(): Promise<void>;
};

/** The beginning of the error message if another sandbox is running on the state folder. */
const ALREADY_RUNNING = 'Another sandbox is already running on';

const LOCK_WAIT_MS = 5000;

/**
 * Starts the local Solana of a state folder, or resumes it: chain, RPC and facilitator; writes `buyer.json` and
 * `sandbox.json` there.
 * @throws Error if the folder or a port is in use, or a file is damaged
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { stateDir } = options;
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  // A sandbox that is closing releases the lock soon; one that still answers does not.
  const answers = async (): Promise<boolean> => {
    const other = readInfo(stateDir);
    return other !== null && (await isAlive(other));
  };
  const release = await takeLock(join(stateDir, 'sandbox.lock'), LOCK_WAIT_MS, answers);
  if (!release) {
    const other = readInfo(stateDir);
    const who = other ? ` (process ${other.pid}, ${other.rpcUrl})` : '';
    throw new Error(
      `${ALREADY_RUNNING} ${stateDir}${who}. Use that one, stop it, or set STATE_DIR to another folder.`,
    );
  }
  // Closed in reverse order: the lock is released last, after the journal is closed.
  const closers: (() => Promise<void> | void)[] = [release];
  const close = async (): Promise<void> => {
    for (let closer = closers.pop(); closer; closer = closers.pop()) await closer();
  };
  try {
    return { ...(await open(options, closers)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function open(
  options: SandboxOptions,
  closers: (() => Promise<void> | void)[],
): Promise<Omit<Sandbox, 'close'>> {
  const { stateDir, host = '127.0.0.1', rpcPort = 8899, facilitatorPort = 8403, slotMs = 400 } = options;
  const vm = await Vm.load();
  const genesis = await openGenesis(join(stateDir, 'chain-genesis.json'), vm, slotMs);
  const chain = new Chain({ genesis, vm, journalFile: join(stateDir, 'chain-journal.jsonl'), slotMs });
  closers.push(() => chain.close());
  const rpc = await serveRpc(chain, { host, port: rpcPort });
  closers.push(() => rpc.close());
  const facilitator = await serveFacilitator({
    host,
    port: facilitatorPort,
    rpcUrl: rpc.url,
    feePayer: walletOf(genesis.keys.feePayer).secret,
    id: genesis.id,
    log: options.log ?? (() => undefined),
  });
  closers.push(() => facilitator.close());
  const market = await openMarket(stateDir, {
    host,
    mints: genesis.mints,
    supplies: suppliesOf(chain, genesis),
  });
  closers.push(() => market.close());
  const urls = { rpcUrl: rpc.url, facilitatorUrl: facilitator.url, marketUrl: market.url };
  const info = describeSandbox(options, genesis, urls);
  writeAtomically(join(stateDir, 'buyer.json'), `${JSON.stringify(genesis.keys.buyer)}\n`);
  writeAtomically(infoFile(stateDir), `${JSON.stringify(info, null, 2)}\n`);
  return { info, rpc: { url: rpc.url }, facilitator: { url: facilitator.url }, chain };
}

/** Uses the same port as last time, where running servers expect the market, unless another program has taken it. */
async function openMarket(
  stateDir: string,
  options: Omit<MarketOptions, 'port'>,
): ReturnType<typeof startMarket> {
  const before = Number(new URL(readInfo(stateDir)?.marketUrl ?? 'http://none').port);
  return startMarket({ ...options, port: before }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    return startMarket({ ...options, port: 0 });
  });
}

/** Supplies of the sample mints as decimal strings, so that the market figures match the chain. */
function suppliesOf(chain: Chain, { mints }: Genesis): Record<string, string> {
  const found = Object.values(mints).map(address => {
    const mint = readMint(chain.account(address));
    return [address, mint ? uiAmount(mint.supply, mint.decimals).uiAmountString : '0'];
  });
  return Object.fromEntries(found) as Record<string, string>;
}

type Urls = Pick<SandboxInfo, 'rpcUrl' | 'facilitatorUrl' | 'marketUrl'>;

function describeSandbox(options: SandboxOptions, genesis: Genesis, urls: Urls): SandboxInfo {
  const { keys, mints, id } = genesis;
  return {
    url: options.publicUrl ?? 'http://127.0.0.1:8402',
    ...urls,
    network: NETWORKS.sandbox.caip2,
    v1Network: NETWORKS.sandbox.v1,
    usdcMint: NETWORKS.sandbox.usdcMint,
    payTo: walletOf(keys.seller).address,
    feePayer: walletOf(keys.feePayer).address,
    buyer: walletOf(keys.buyer).address,
    mints,
    id,
    pid: process.pid,
    parent: options.parent ?? null,
  };
}
