import type { Log } from '../net/log.js';
import { ConfigFault, type Config, type FacilitatorConfig } from '../config.js';
import { readInfo, type SandboxInfo } from './info.js';

/** The chain, the facilitators and the market, and the receiver. `stop` ends the sandbox if one was started. */
export type Endpoints = {
  rpcUrls: string[];
  facilitators: readonly FacilitatorConfig[];
  payTo: string;
  marketUrl: string | undefined;
  stop(): Promise<void>;
};

export type SandboxOptions = { config: Config; publicUrl: string; log: Log; onSandboxExit: () => void };

/**
 * The endpoints in the configuration, or those of a sandbox that is started for this server.
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
    payTo,
    marketUrl: marketUrl ?? undefined,
    stop: async () => {},
  };
}

async function startSandbox({ config, publicUrl, log, onSandboxExit }: SandboxOptions): Promise<Endpoints> {
  const { spawnSandbox } = await import('./child.js');
  const sandbox = await spawnSandbox({
    stateDir: config.stateDir,
    host: config.host,
    rpcPort: config.sandboxRpcPort,
    facilitatorPort: config.sandboxFacilitatorPort,
    publicUrl,
    onExit: onSandboxExit,
  }).catch((error: unknown) => {
    throw new ConfigFault((error as Error).message);
  });
  const { info } = sandbox;
  announce(info, config.stateDir, log);
  return {
    rpcUrls: [info.rpcUrl],
    facilitators: [{ kind: 'http', url: info.facilitatorUrl }],
    payTo: config.payTo ?? info.payTo,
    marketUrl: info.marketUrl ?? undefined,
    stop: () => sandbox.stop(),
  };
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
