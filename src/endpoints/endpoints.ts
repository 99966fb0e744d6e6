import type { Log } from '../net/log.js';
import type { Config } from '../config.js';
import type { FacilitatorConfig } from '../config/facilitator-settings.js';
import { ConfigFault } from '../config/setting-reader.js';
import type { KeyPair } from '../rails/solana/key-pair.js';
import { readInfo, type SandboxInfo } from '../config/sandbox-file.js';
import type { spawnSandbox as SpawnSandbox } from '../sandbox/child.js';
import type { sandboxFeePayer as SandboxFeePayer } from '../sandbox/fee-payer.js';
import { importFromSandbox } from './sandbox-package.js';

/** The part of the sandbox's package that is used here. */
type Child = { spawnSandbox: typeof SpawnSandbox };
type FeePayer = { sandboxFeePayer: typeof SandboxFeePayer };

/** The chain, the facilitators, the market and the receiver. `stop` ends the sandbox if one was started. */
export type Endpoints = {
  rpcUrls: string[];
  facilitators: readonly FacilitatorConfig[];
  /** The fee payer of the embedded facilitator, if one is configured. */
  feePayer: KeyPair | undefined;
  payTo: string;
  marketUrl: string | undefined;
  stop(): Promise<void>;
};

export type SandboxOptions = { config: Config; publicUrl: string; log: Log; onSandboxExit: () => void };

/**
 * The endpoints in the configuration, or those of a sandbox started for this server.
 * @throws ConfigFault
 */
export async function resolveEndpoints(options: SandboxOptions): Promise<Endpoints> {
  const { rpcUrls, facilitators, payTo, network, stateDir } = options.config;
  if (rpcUrls.length === 0 || facilitators.length === 0) return startSandbox(options);
  if (!payTo) throw new ConfigFault('PAY_TO: must be set: the address that receives the USDC');
  const marketUrl = network.name === 'sandbox' ? readInfo(stateDir)?.marketUrl : undefined;
  return {
    rpcUrls: [...rpcUrls],
    facilitators,
    feePayer: await feePayerOf(options.config, rpcUrls),
    payTo,
    marketUrl: marketUrl ?? undefined,
    stop: async () => {},
  };
}

/**
 * Starts a sandbox as configured.
 * @param what the feature that needs it, for the message if its package is not installed
 * @throws ConfigFault
 */
export async function spawnConfigured(
  { stateDir, host, sandboxRpcPort: rpcPort, sandboxFacilitatorPort: facilitatorPort }: Config,
  { publicUrl, onExit }: Pick<Parameters<typeof SpawnSandbox>[0], 'publicUrl' | 'onExit'>,
  what: string,
): Promise<Awaited<ReturnType<typeof SpawnSandbox>>> {
  const { spawnSandbox } = await importFromSandbox<Child>('sandbox/child.js', what);
  return spawnSandbox({ stateDir, host, rpcPort, facilitatorPort, publicUrl, onExit }).catch(
    (error: unknown) => {
      throw new ConfigFault((error as Error).message);
    },
  );
}

async function startSandbox({ config, publicUrl, log, onSandboxExit }: SandboxOptions): Promise<Endpoints> {
  const sandbox = await spawnConfigured(config, { publicUrl, onExit: onSandboxExit }, 'The sandbox');
  const { info } = sandbox;
  announce(info, config.stateDir, log);
  const own = { kind: 'http', url: info.facilitatorUrl } as const;
  const feePayer = await feePayerOf(config, [info.rpcUrl]).catch(async (error: unknown) => {
    await sandbox.stop();
    throw error;
  });
  return {
    rpcUrls: [info.rpcUrl],
    facilitators: config.facilitators.length > 0 ? config.facilitators : [own],
    feePayer,
    payTo: config.payTo ?? info.payTo,
    marketUrl: info.marketUrl ?? undefined,
    stop: () => sandbox.stop(),
  };
}

/** The configured key pair; in the sandbox, one that is created and funded there. */
export async function feePayerOf(
  { facilitators, feePayer, network, stateDir }: Config,
  rpcUrls: readonly string[],
): Promise<KeyPair | undefined> {
  if (!facilitators.some(({ kind }) => kind === 'embedded')) return undefined;
  if (feePayer.keyPair || network.name !== 'sandbox') return feePayer.keyPair;
  const { sandboxFeePayer } = await importFromSandbox<FeePayer>('sandbox/fee-payer.js', 'The sandbox');
  return sandboxFeePayer(stateDir, rpcUrls[0] ?? '').catch((error: unknown) => {
    throw new ConfigFault(
      `the sandbox has no fee payer for the embedded facilitator: ${(error as Error).message}`,
    );
  });
}

function announce(info: SandboxInfo, stateDir: string, log: Log): void {
  const { buyer, feePayer, usdcMint, rpcUrl, facilitatorUrl, marketUrl, mints } = info;
  log.info(
    {
      buyer,
      keypair: `${stateDir}/buyer.json`,
      feePayer,
      usdcMint,
      rpcUrl,
      facilitatorUrl,
      marketUrl,
      mints,
    },
    'sandbox: local Solana with a funded buyer',
  );
}
