import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import {
  ACCOUNT_SIZE,
  AccountLayout,
  getAssociatedTokenAddressSync,
  TOKEN_PROGRAM_ID,
} from '@solana/spl-token';
import { PublicKey, SystemProgram } from '@solana/web3.js';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigFault, readConfig } from '../../src/config.js';
import { compose, type Running } from '../../src/compose.js';
import { FacilitatorFault } from '../../src/payments/facilitator.js';

const CAIP2 = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const GENESIS = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d';
const DEVNET_GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const PAY_TO = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4';
const FEE_PAYER = 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb';
const BLOCKHASH = 'EkSnNWid2cvwEVnVx9aBqawnmiCNiDgp3gUdkDPTKN1N';
const PUBLIC_URL = 'https://pay.example';
const RECEIVER = getAssociatedTokenAddressSync(new PublicKey(USDC), new PublicKey(PAY_TO)).toBase58();
const PAID = ['/v1/summarize', '/v1/sol-token-brief', '/v1/sol-mint-info', '/brand-feedback', '/v1/tts'];

const KIND = { x402Version: 2, scheme: 'exact', network: CAIP2, extra: { feePayer: FEE_PAYER } };

/** What the stub servers say; each test changes what it is about. */
let kinds: unknown[];
let genesis: string;
let receiverOwner: string | undefined;
let asked: string[];

function tokenAccount(): string {
  const data = Buffer.alloc(ACCOUNT_SIZE);
  const none = PublicKey.default;
  const rest = {
    delegateOption: 0,
    delegate: none,
    isNativeOption: 0,
    isNative: 0n,
    delegatedAmount: 0n,
    closeAuthorityOption: 0,
  } as const;
  const owned = {
    mint: new PublicKey(USDC),
    owner: new PublicKey(PAY_TO),
    amount: 0n,
    state: 1,
    closeAuthority: none,
  } as const;
  AccountLayout.encode({ ...rest, ...owned }, data);
  return data.toString('base64');
}

function resultOf(method: string, [address]: unknown[]): unknown {
  asked.push(method);
  const context = { slot: 300_000_000, apiVersion: '2.3.0' };
  switch (method) {
    case 'getGenesisHash':
      return genesis;
    case 'getLatestBlockhash':
      return { context, value: { blockhash: BLOCKHASH, lastValidBlockHeight: 280_000_150 } };
    case 'getAccountInfo': {
      if (address !== RECEIVER || receiverOwner === undefined) return { context, value: null };
      const account = {
        lamports: 2_039_280,
        owner: receiverOwner,
        executable: false,
        rentEpoch: 0,
        space: ACCOUNT_SIZE,
      };
      return { context, value: { ...account, data: [tokenAccount(), 'base64'] } };
    }
    case 'getHealth':
      return 'ok';
    case 'getVersion':
      return { 'solana-core': '2.3.0', 'feature-set': 1 };
    case 'getBlockHeight':
      return 280_000_000;
    default:
      throw new Error(`the stub does not know ${method}`);
  }
}

const servers: Server[] = [];
const addressOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function listen(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

async function bodyOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

const rpc: RequestListener = (message, response) => {
  void bodyOf(message).then(text => {
    const {
      id,
      method,
      params = [],
    } = JSON.parse(text) as { id: unknown; method: string; params?: unknown[] };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(method, params) }));
  });
};

const facilitator: RequestListener = (message, response) => {
  asked.push(String(message.url));
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ kinds, extensions: [], signers: {} }));
};

type Fetched = { status: number; headers: IncomingMessage['headers']; json: Json };

async function call(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Fetched> {
  const asking = request({ host: '127.0.0.1', port, method, path, headers, agent: false });
  asking.end(method === 'POST' ? '{}' : undefined);
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  return {
    status: response.statusCode!,
    headers: response.headers,
    json: JSON.parse(await bodyOf(response)) as Json,
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise(resolve => server.close(resolve));
  return port;
}

async function stopServer(server: Server): Promise<void> {
  server.closeAllConnections();
  if (server.listening) await new Promise(resolve => server.close(resolve));
}

describe('On mainnet', function () {
  this.timeout(60_000);
  let stateDir: string;
  let port: number;
  let rpcServer: Server;
  let facilitatorServer: Server;
  let running: Running | undefined;
  let rpcUrls: string | undefined;

  beforeEach(async () => {
    kinds = [{ ...KIND, x402Version: 1, network: 'solana' }, { ...KIND, scheme: 'upto' }, KIND];
    genesis = GENESIS;
    receiverOwner = TOKEN_PROGRAM_ID.toBase58();
    asked = [];
    rpcUrls = undefined;
    stateDir = await mkdtemp(join(tmpdir(), 'mainnet-'));
    port = await freePort();
    rpcServer = await listen(rpc);
    facilitatorServer = await listen(facilitator);
  });

  afterEach(async () => {
    await running?.stop();
    running = undefined;
    await Promise.all(servers.splice(0).map(stopServer));
    await rm(stateDir, { recursive: true, force: true });
  });

  async function open(): Promise<void> {
    const config = readConfig({
      NETWORK: 'mainnet',
      PORT: String(port),
      PUBLIC_URL,
      PAY_TO,
      STATE_DIR: stateDir,
      LOG_LEVEL: 'silent',
      SOLANA_RPC_URL: rpcUrls ?? `${addressOf(rpcServer)}/?key=1`,
      FACILITATOR_URL: `${addressOf(facilitatorServer)}/x402`,
    });
    running = await compose(config);
  }

  async function faultOfStart(kind: new (message: string) => Error): Promise<string> {
    const fault: unknown = await open().then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(fault, String((fault as Error | undefined)?.stack)).to.be.instanceOf(kind);
    const refused = await call(port, 'GET', '/health').catch((error: NodeJS.ErrnoException) => error.code);
    expect(refused).to.equal('ECONNREFUSED');
    return (fault as Error).message;
  }

  it('the challenges name mainnet and its USDC, whatever Host a caller sends', async () => {
    await open();
    expect(running!.url).to.equal(PUBLIC_URL);
    for (const path of PAID) {
      const { status, headers, json } = await call(port, 'POST', path, {
        host: 'evil.example',
        'x-forwarded-host': 'evil.example',
        forwarded: 'host=evil.example',
      });
      expect(status).to.equal(402);
      expect(
        JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString('utf8')),
      ).to.deep.equal(json);
      expect(JSON.stringify(json)).not.to.contain('evil');
      const accepts = json.accepts as (Json & { extra: Json })[];
      expect(accepts.map(option => option.network)).to.deep.equal([CAIP2]);
      expect((json.resource as Json).url).to.equal(PUBLIC_URL + path);
      for (const { asset, payTo, resource, extra } of accepts) {
        expect({ asset, payTo, resource }).to.deep.equal({
          asset: USDC,
          payTo: PAY_TO,
          resource: PUBLIC_URL + path,
        });
        expect(extra).to.include({ feePayer: FEE_PAYER, recentBlockhash: BLOCKHASH });
      }
      const v1 = await call(port, 'POST', `${path}?x402Version=1`, { host: 'evil.example' });
      const options = v1.json.accepts as Json[];
      expect(options.map(option => option.network)).to.deep.equal(['solana']);
      expect(options[0]).to.include({ asset: USDC, payTo: PAY_TO, resource: PUBLIC_URL + path });
    }
  });

  it('the documents name our public address, whatever Host a caller sends', async () => {
    await open();
    const foreign = { host: 'evil.example' };
    const discovery = await call(port, 'GET', '/.well-known/x402', foreign);
    expect(discovery.json.resources).to.deep.equal(PAID.map(path => PUBLIC_URL + path));
    const { json: document } = await call(port, 'GET', '/openapi.json', foreign);
    expect(document.servers).to.deep.equal([{ url: PUBLIC_URL }]);
    const { json: index } = await call(port, 'GET', '/', foreign);
    expect(index.site).to.equal(PUBLIC_URL);
    expect(JSON.stringify([discovery.json, document, index])).not.to.match(/evil|127\.0\.0\.1/);
  });

  it('a facilitator that speaks no v2 on mainnet is refused at start, with what to do', async () => {
    kinds = [
      { ...KIND, x402Version: 1, network: 'solana' },
      { ...KIND, network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1' },
    ];
    const message = await faultOfStart(FacilitatorFault);
    expect(message)
      .to.contain(`does not support x402 v2, scheme exact, on ${CAIP2}`)
      .and.to.contain('FACILITATOR_URL');
    kinds = [{ ...KIND, extra: {} }];
    expect(await faultOfStart(FacilitatorFault)).to.contain('names no fee payer');
  });

  it('an RPC server of another network is refused at start', async () => {
    genesis = DEVNET_GENESIS;
    const message = await faultOfStart(ConfigFault);
    expect(message)
      .to.match(/^SOLANA_RPC_URL: /)
      .and.to.contain(DEVNET_GENESIS);
  });

  it('an RPC server of another network beside one of ours is passed over: what it says is in no challenge', async () => {
    const foreign = await listen((message, response) => {
      void bodyOf(message).then(text => {
        const { method, params } = JSON.parse(text) as { method: string; params: unknown[] };
        const value = { blockhash: DEVNET_GENESIS, lastValidBlockHeight: 900_000_150 };
        const results: Record<string, unknown> = {
          getGenesisHash: DEVNET_GENESIS,
          getLatestBlockhash: { context: { slot: 900_000_000 }, value },
        };
        const result = results[method] ?? resultOf(method, params);
        response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
      });
    });
    rpcUrls = `${addressOf(foreign)},${addressOf(rpcServer)}`;
    await open();
    const { json } = await call(port, 'POST', '/v1/summarize');
    const [{ extra }] = json.accepts as [{ extra: Json }];
    expect(extra.recentBlockhash).to.equal(BLOCKHASH);
  });

  it('a receiver without a USDC account is refused at start, with the command that creates it', async () => {
    receiverOwner = undefined;
    const message = await faultOfStart(ConfigFault);
    expect(message).to.match(/^PAY_TO: /);
    expect(message).to.contain(RECEIVER).and.to.contain(`spl-token create-account ${USDC} --owner ${PAY_TO}`);
  });

  it('a receiver whose account holds lamports but is no token account yet is refused likewise', async () => {
    receiverOwner = SystemProgram.programId.toBase58();
    expect(await faultOfStart(ConfigFault)).to.contain('spl-token create-account');
  });

  it('a facilitator that was never reached is refused at start, one that was reached before is not', async () => {
    const { port: facilitatorPort } = facilitatorServer.address() as AddressInfo;
    await stopServer(facilitatorServer);
    facilitatorServer.address = () => ({ port: facilitatorPort, family: 'IPv4', address: '127.0.0.1' });
    expect(await faultOfStart(FacilitatorFault))
      .to.contain('did not answer /supported')
      .and.to.contain('FACILITATOR_URL');

    facilitatorServer.listen(facilitatorPort, '127.0.0.1');
    await once(facilitatorServer, 'listening');
    await open();
    await running!.stop();
    await stopServer(facilitatorServer);
    await open();
    const { status, json } = await call(port, 'POST', '/v1/tts');
    expect(status).to.equal(402);
    for (const { extra } of json.accepts as { extra: Json }[]) expect(extra.feePayer).to.equal(FEE_PAYER);
    for (const path of ['/', '/.well-known/x402', '/openapi.json', '/health', '/tts/v1/voices']) {
      expect((await call(port, 'GET', path)).status, path).to.equal(200);
    }
  });

  it('without a chain it starts, and its challenges carry no blockhash', async () => {
    const { port: rpcPort } = rpcServer.address() as AddressInfo;
    await stopServer(rpcServer);
    rpcServer.address = () => ({ port: rpcPort, family: 'IPv4', address: '127.0.0.1' });
    await open();
    const { status, json } = await call(port, 'POST', '/v1/summarize');
    expect(status).to.equal(402);
    for (const { extra } of json.accepts as { extra: Json }[])
      expect(extra).to.deep.equal({
        feePayer: FEE_PAYER,
        decimals: 6,
        tokenProgram: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
      });
    expect((await call(port, 'GET', '/')).status).to.equal(200);
  });

  it('a public address too long for the header of a challenge is refused at start', async () => {
    const config = readConfig({
      NETWORK: 'mainnet',
      PORT: String(port),
      PUBLIC_URL: `https://${`${'a'.repeat(60)}.`.repeat(24)}example`,
      PAY_TO,
      STATE_DIR: stateDir,
      LOG_LEVEL: 'silent',
      SOLANA_RPC_URL: addressOf(rpcServer),
      FACILITATOR_URL: addressOf(facilitatorServer),
    });
    const fault = await compose(config).then(
      server => void (running = server),
      (error: unknown) => error,
    );
    expect(fault).to.be.instanceOf(ConfigFault);
    expect((fault as Error).message).to.match(/^PUBLIC_URL: /);
  });

  it('asks chain and facilitator nothing for a call without payment', async () => {
    await open();
    const before = asked.filter(name => name !== 'getLatestBlockhash').length;
    for (const path of [...PAID, ...PAID]) await call(port, 'POST', path);
    expect(asked.filter(name => name !== 'getLatestBlockhash').length - before).to.be.below(5);
  });
});
