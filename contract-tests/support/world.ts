import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { ExactSvmSchemeV1 } from '@x402/svm/exact/v1/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { Connection, PublicKey, type Keypair } from '@solana/web3.js';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { readConfig } from '../../src/config.js';
import { compose, type Running } from '../../src/compose.js';
import { variablesOf } from '../../src/contract/read-upstream.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.js';
import type { Recipe } from './craft.js';
import { countingProxy, type CountingProxy } from './proxy.js';
import { SOLD } from './sold.js';

const PATIENCE_MS = 40_000;

/** A real local chain with its facilitator, and a server that reaches both through counting proxies. */
export type World = {
  url: string;
  stateDir: string;
  sandbox: Sandbox;
  rpc: CountingProxy;
  facilitator: CountingProxy;
  server: Running;
  connection: Connection;
  buyer: Uint8Array;
  env: Record<string, string>;
  /** The receiver's USDC in atomic units. */
  earned(): Promise<bigint>;
  close(): Promise<void>;
};

/**
 * The chain and the server belong to this process; the caller sets the addresses of the APIs that the contract names
 * (`x-upstream`). @param chain the length of its slots; at 100 ms, a transaction is final after three seconds and a
 * blockhash expires after fifteen
 */
export async function openWorld(
  env: Record<string, string> | ((facilitatorUrl: string) => Record<string, string>) = {},
  chain: { slotMs?: number } = {},
): Promise<World> {
  const disposers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const dispose of disposers.splice(0)) await dispose();
  };
  try {
    const settings = typeof env === 'function' ? env : () => env;
    return { ...(await buildWorld(settings, chain, disposers)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** `disposers` close everything that was opened, in order, even if the world could not be built. */
async function buildWorld(
  settings: (facilitatorUrl: string) => Record<string, string>,
  chain: { slotMs?: number },
  disposers: (() => Promise<unknown>)[],
): Promise<Omit<World, 'close'>> {
  const stateDir = await mkdtemp(join(tmpdir(), 'coinslot-'));
  disposers.unshift(() => rm(stateDir, { recursive: true, force: true }));
  const sandbox = await startSandbox({ stateDir, rpcPort: 0, facilitatorPort: 0, ...chain });
  disposers.unshift(() => sandbox.close());
  const rpc = await countingProxy(sandbox.rpc.url);
  disposers.unshift(() => rpc.close());
  const facilitator = await countingProxy(sandbox.facilitator.url);
  disposers.unshift(() => facilitator.close());
  const environment = {
    NETWORK: 'sandbox',
    STATE_DIR: stateDir,
    PORT: '0',
    SOLANA_RPC_URL: rpc.url,
    FACILITATOR_URL: facilitator.url,
    PAY_TO: sandbox.info.payTo,
    LOG_LEVEL: 'silent',
    ...upstreamSettings(),
    ...settings(facilitator.url),
  };
  const server = await compose(readConfig(environment));
  disposers.unshift(() => server.stop());
  const connection = new Connection(sandbox.rpc.url, 'confirmed');
  const { payTo, usdcMint } = sandbox.info;
  const receiver = getAssociatedTokenAddressSync(new PublicKey(usdcMint), new PublicKey(payTo), true);
  return {
    url: server.url,
    stateDir,
    sandbox,
    rpc,
    facilitator,
    server,
    connection,
    env: environment,
    buyer: Uint8Array.from(JSON.parse(await readFile(join(stateDir, 'buyer.json'), 'utf8')) as number[]),
    earned: async () => BigInt((await connection.getTokenAccountBalance(receiver)).value.amount),
  };
}

/** The environment variables of the APIs that this repository sells through `x-upstream`. */
function upstreamSettings(): Record<string, string> {
  const texts = SOLD.paid.flatMap(({ upstream }) =>
    upstream ? [upstream.url, ...Object.values(upstream.headers)] : [],
  );
  const names = ['ALLOW_PRIVATE_UPSTREAMS', ...texts.flatMap(variablesOf)];
  return Object.fromEntries(names.flatMap(name => (process.env[name] ? [[name, process.env[name]]] : [])));
}

/** The payer (a key pair of 64 bytes), the server, and the RPC server of its chain. */
export type Payer = Pick<World, 'url' | 'buyer'> & { sandbox: { rpc: { url: string } } };

/** The official client, with the buyer's key and the local chain. */
async function buyerOf(world: Payer): Promise<x402HTTPClient> {
  const signer = await createKeyPairSignerFromBytes(world.buyer);
  const rpcUrl = world.sandbox.rpc.url;
  const client = new x402Client()
    .register('solana:*', new ExactSvmScheme(signer, { rpcUrl }))
    .registerV1('solana-devnet', new ExactSvmSchemeV1(signer, { rpcUrl }));
  return new x402HTTPClient(client);
}

export type Answer = { status: number; headers: Headers; body: Buffer; json: () => Record<string, unknown> };

export async function call(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { signal: AbortSignal.timeout(60_000), ...init });
  const body = Buffer.from(await response.arrayBuffer());
  const json = (): Record<string, unknown> => JSON.parse(body.toString('utf8')) as Record<string, unknown>;
  return { status: response.status, headers: response.headers, body, json };
}

export async function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return call(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: text,
  });
}

/** Sends a paid call again while the answer is 503, as buyers do: a busy machine may not serve it in time. */
export async function postPatiently(
  url: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<Answer> {
  for (const end = Date.now() + PATIENCE_MS; ; await pause(500)) {
    const answer = await post(url, body, headers);
    if (answer.status !== 503 || Date.now() > end) return answer;
  }
}

/** Signs a challenge with the official client. Without `unpaid`, first fetches the challenge of a POST operation. */
export async function signFor(
  world: Payer,
  path: string,
  version: 1 | 2 = 2,
  unpaid?: Answer,
): Promise<Record<string, string>> {
  const client = await buyerOf(world);
  const challenge = unpaid ?? (await post(`${world.url}${path}${version === 1 ? '?x402Version=1' : ''}`, {}));
  // A v1 client reads only the body; the v2 reader prefers the header.
  const header = (name: string): string | null => (version === 1 ? null : challenge.headers.get(name));
  const required = client.getPaymentRequiredResponse(header, challenge.json());
  return client.encodePaymentSignatureHeader(await client.createPaymentPayload(required));
}

/** The settlement receipt of an answer, without the signed receipt in it. */
export function receiptOf(answer: Answer): {
  success: boolean;
  transaction: string;
  network: string;
  errorReason?: string;
} {
  const header = answer.headers.get('payment-response') ?? answer.headers.get('x-payment-response') ?? '';
  const receipt = JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as ReturnType<typeof receiptOf>;
  delete (receipt as { extensions?: object }).extensions;
  return receipt;
}

/** The challenge of a refusal, after checking that header and body agree. A v1 challenge has no header. */
export function challengeOf(answer: Answer): {
  x402Version: number;
  error?: string;
  accepts: Record<string, unknown>[];
} {
  const challenge = answer.json() as ReturnType<typeof challengeOf>;
  const header = answer.headers.get('payment-required');
  const expected = challenge.x402Version === 1 ? null : answer.body.toString('base64');
  if (header !== expected)
    throw new Error(`the PAYMENT-REQUIRED header of a v${challenge.x402Version} challenge is ${header}`);
  return challenge;
}

export const TEXT =
  'The harbour bridge will close for repairs on Monday. Ferries run every ten minutes until it opens again. ' +
  'The city expects the work to take six weeks.';

export type Offer = { extra: { feePayer: string; recentBlockhash: string }; payTo: string };

/** What a server charges for a summary, according to its challenge. */
export async function offerOf(url: string): Promise<Offer> {
  return challengeOf(await post(`${url}/v1/summarize`, {})).accepts[0] as Offer;
}

/** How to craft a payment for an offer. */
export function recipeOf({ extra, payTo }: Offer, payer: Keypair): Recipe {
  return { feePayer: extra.feePayer, blockhash: extra.recentBlockhash, payTo, payer };
}
