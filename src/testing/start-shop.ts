import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { toDecimal } from '../price/amount.js';
import { balanceOf, signCall, type Answer, type SignedCall, type Wallet } from './buyer.js';
import { Deployment } from './deployment.js';
import { editShop, type EditedShop } from './edited-shop.js';
import { injector, type Fault } from './inject.js';
import { Services, type Closers } from './services.js';
import { startProgram, type Program } from './program.js';

export type { Answer, SignedCall } from './buyer.js';
export type { Fault } from './inject.js';

export type ShopOptions = {
  /** The folder of the shop, which must be built. Default: the current folder. The folder is only read. */
  folder?: string;
  /**
   * Settings of the shop as environment variables, such as those that its upstreams need. The shop gets no other variables from this
   * process.
   */
  settings?: Record<string, string>;
  /** Receives the log of the shop and of the sandbox, line by line. */
  log?: (line: string) => void;
};

/** A shop that runs in its own sandbox, with a buyer who owns 1 000 000 test USDC. */
export type TestShop = {
  url: string;
  /** The buyer's RPC server, which is not affected by faults. */
  rpcUrl: string;
  /** `keypairFile` is in the format of solana-keygen. */
  buyer: { address: string; keypairFile: string };
  network: string;
  usdcMint: string;
  payTo: string;
  /** Buys a call. `input` has the members of body, query and path; without it, they are the examples of the contract. */
  buy(operationId: string, input?: object): Promise<Answer>;
  /** Like `buy`, but in two steps: a test can act between signing the payment and sending it. */
  sign(operationId: string, input?: object): Promise<SignedCall>;
  /** What the buyer has paid since the shop started, in USDC: a decimal string. */
  spent(): Promise<string>;
  /** Makes a fault happen from now on, until `clear`. Several may be injected. */
  inject(fault: Fault): Promise<void>;
  /** Ends every fault. */
  clear(): Promise<void>;
  /** Ends the processes and deletes their files. */
  stop(): Promise<void>;
};

/** The settings that contain URLs of backends. Each of these backends gets a proxy, too. */
const BACKENDS = ['SUMMARIZER_URL', 'PIPER_URL'];

type SandboxFacts = Wallet & {
  facilitatorUrl: string;
  marketUrl: string | null;
  network: string;
  payTo: string;
  buyer: string;
};

/**
 * Starts a sandbox and a shop in it, on free ports. Each runs in a process of its own, which ends with this one.
 * @throws Error that says what did not start, and why
 */
export async function startShop(options: ShopOptions = {}): Promise<TestShop> {
  const folder = resolve(options.folder ?? '.');
  if (!existsSync(join(folder, 'openapi.yaml')))
    throw new Error(`There is no openapi.yaml in ${folder}: set folder to that of your shop.`);
  const state = mkdtempSync(join(tmpdir(), 'coinslot-testing-'));
  // Closed in reverse order.
  const closers: Closers = [() => rmSync(state, { recursive: true, force: true })];
  const stop = async (): Promise<void> => {
    for (let closer = closers.pop(); closer; closer = closers.pop()) await closer();
  };
  try {
    return await open({ ...options, folder }, state, closers, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function open(
  { folder, settings = {}, log = () => undefined }: ShopOptions & { folder: string },
  state: string,
  closers: Closers,
  stop: () => Promise<void>,
): Promise<TestShop> {
  const sandbox = await startSandbox(join(state, 'sandbox'), log);
  closers.push(() => sandbox.stop());
  const { facts } = sandbox;
  const services = new Services(closers);
  const shop = editShop(folder, join(state, 'shop'));
  const shopState = join(state, 'state');
  const [rpcUrl, facilitatorUrl] = [
    await services.rpc(facts.rpcUrl),
    await services.facilitator(facts.facilitatorUrl),
  ];
  const marketUrl = facts.marketUrl === null ? null : await services.upstream(facts.marketUrl);
  writeSandboxFile(shopState, facts, { rpcUrl, facilitatorUrl, marketUrl });
  const deployment = new Deployment(shop, log, {
    ...settings,
    ...(await redirected(shop, settings, services)),
    NETWORK: 'sandbox',
    STATE_DIR: shopState,
    DATABASE_URL: `file:${join(shopState, 'ledger.db')}`,
    SOLANA_RPC_URL: rpcUrl,
    FACILITATOR_URL: facilitatorUrl,
    PAY_TO: facts.payTo,
    HOST: '127.0.0.1',
    LOG_LEVEL: 'info',
    ALLOW_PRIVATE_UPSTREAMS: 'true',
  });
  closers.push(() => deployment.stop());
  const url = await deployment.start();
  const wallet: Wallet = { ...facts, address: facts.buyer };
  const before = await balanceOf(wallet);
  const { keypairFile, network, usdcMint, payTo } = facts;
  return {
    url,
    rpcUrl: facts.rpcUrl,
    buyer: { address: facts.buyer, keypairFile },
    network,
    usdcMint,
    payTo,
    sign: (operationId, input) => signCall(url, wallet, operationId, input),
    buy: async (operationId, input) => (await signCall(url, wallet, operationId, input)).send(),
    spent: async () => toDecimal(before - (await balanceOf(wallet))),
    ...injector(services, deployment),
    stop,
  };
}

/** Routes the shop's upstreams through proxies, in its contract and in its settings. */
async function redirected(
  shop: EditedShop,
  settings: Record<string, string>,
  services: Services,
): Promise<Record<string, string>> {
  for (const origin of shop.upstreams.origins) shop.redirect(origin, await services.upstream(origin));
  const changed: Record<string, string> = {};
  for (const name of [...shop.upstreams.variables, ...BACKENDS])
    if (settings[name] !== undefined) changed[name] = await services.upstream(settings[name]);
  return changed;
}

async function startSandbox(
  stateDir: string,
  log: (line: string) => void,
): Promise<Program & { facts: SandboxFacts }> {
  mkdirSync(stateDir, { recursive: true });
  const { facts, ...program } = await startProgram({
    command: 'sandbox',
    folder: stateDir,
    settings: { STATE_DIR: stateDir, SANDBOX_RPC_PORT: '0', SANDBOX_FACILITATOR_PORT: '0' },
    ready: ({ message }) => {
      const { type, sandbox } = (message ?? {}) as { type?: string; sandbox?: SandboxFacts };
      return type === 'ready' ? sandbox : undefined;
    },
    log,
  });
  return { ...program, facts: { ...facts, keypairFile: join(stateDir, 'buyer.json') } };
}

/** Writes the file `sandbox.json` into the state folder of the shop, with the URLs of the proxies. */
function writeSandboxFile(stateDir: string, facts: SandboxFacts, urls: object): void {
  mkdirSync(stateDir, { recursive: true });
  copyFileSync(facts.keypairFile, join(stateDir, 'buyer.json'));
  writeFileSync(join(stateDir, 'sandbox.json'), JSON.stringify({ ...facts, ...urls }));
}
