import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import { SystemProgram } from '@solana/web3.js';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config.js';
import { ConfigFault } from '../../src/config/setting-reader.js';
import { compose, type Running } from '../../src/compose.js';
import { freePort } from '../support/free-port.js';
import {
  addressOf,
  BLOCKHASH,
  bodyOf,
  CAIP2,
  DEVNET_GENESIS,
  FEE_PAYER,
  KIND,
  PAY_TO,
  RECEIVER,
  StubMainnet,
  stopServer,
  USDC,
} from '../support/stub-mainnet.js';

const PUBLIC_URL = 'https://pay.example';
const PAID = ['/v1/summarize', '/v1/sol-token-brief', '/v1/sol-mint-info', '/brand-feedback', '/v1/tts'];

const servers: Server[] = [];

async function listen(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

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

describe('On mainnet', function () {
  this.timeout(60_000);
  let stateDir: string;
  let port: number;
  let stub: StubMainnet;
  let running: Running | undefined;
  let rpcUrls: string | undefined;

  beforeEach(async () => {
    stub = await StubMainnet.open();
    rpcUrls = undefined;
    stateDir = await mkdtemp(join(tmpdir(), 'mainnet-'));
    port = await freePort();
  });

  afterEach(async () => {
    await running?.stop();
    running = undefined;
    await Promise.all([stub.close(), ...servers.splice(0).map(stopServer)]);
    await rm(stateDir, { recursive: true, force: true });
  });

  async function open(change: Record<string, string> = {}): Promise<void> {
    const config = readConfig({
      NETWORK: 'mainnet',
      PORT: String(port),
      ADMIN_PORT: '0',
      PUBLIC_URL,
      PAY_TO,
      STATE_DIR: stateDir,
      LOG_LEVEL: 'silent',
      SOLANA_RPC_URL: rpcUrls ?? `${addressOf(stub.rpc)}/?key=1`,
      FACILITATOR_URL: `${addressOf(stub.facilitator)}/x402`,
      ...change,
    });
    running = await compose(config);
  }

  async function faultOfStart(change: Record<string, string> = {}): Promise<string> {
    const fault: unknown = await open(change).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(fault, String((fault as Error | undefined)?.stack)).to.be.instanceOf(ConfigFault);
    const refused = await call(port, 'GET', '/health').catch((error: NodeJS.ErrnoException) => error.code);
    expect(refused).to.equal('ECONNREFUSED');
    return (fault as Error).message;
  }

  it('there is no sandbox wallet, even if its key is there', async () => {
    await writeFile(join(stateDir, 'buyer.json'), JSON.stringify(Array.from({ length: 64 }, () => 7)));
    await open();
    const headers = { origin: PUBLIC_URL, 'content-type': 'application/json' };
    expect((await call(port, 'POST', '/sandbox/wallet/payments', headers)).status).to.equal(404);
    const page = request({
      host: '127.0.0.1',
      port,
      path: '/',
      headers: { accept: 'text/html' },
      agent: false,
    }).end();
    const [response] = (await once(page, 'response')) as [IncomingMessage];
    const html = await bodyOf(response);
    expect(html)
      .to.contain('data-operation')
      .and.not.to.contain('data-sandbox-wallet')
      .and.not.to.contain('sandbox');
  });

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

  it('a facilitator without x402 v2 on mainnet is refused at startup with an explanation', async () => {
    stub.kinds = [
      { ...KIND, x402Version: 1, network: 'solana' },
      { ...KIND, network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1' },
    ];
    const message = await faultOfStart();
    expect(message)
      .to.contain(`does not support x402 v2, scheme exact, on ${CAIP2}`)
      .and.to.contain('FACILITATOR_URL');
    stub.kinds = [{ ...KIND, extra: {} }];
    expect(await faultOfStart()).to.contain('names no fee payer');
  });

  it('an RPC server for another network is refused at startup', async () => {
    stub.genesis = DEVNET_GENESIS;
    const message = await faultOfStart();
    expect(message)
      .to.match(/^SOLANA_RPC_URL: /)
      .and.to.contain(DEVNET_GENESIS);
  });

  it('an RPC server for another network is skipped in favour of a correct one: nothing from it is in a challenge', async () => {
    const foreign = await listen((message, response) => {
      void bodyOf(message).then(text => {
        const { method, params } = JSON.parse(text) as { method: string; params: unknown[] };
        const value = { blockhash: DEVNET_GENESIS, lastValidBlockHeight: 900_000_150 };
        const results: Record<string, unknown> = {
          getGenesisHash: DEVNET_GENESIS,
          getLatestBlockhash: { context: { slot: 900_000_000 }, value },
        };
        const result = results[method] ?? stub.resultOf(method, params);
        response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
      });
    });
    rpcUrls = `${addressOf(foreign)},${addressOf(stub.rpc)}`;
    await open();
    const { json } = await call(port, 'POST', '/v1/summarize');
    const [{ extra }] = json.accepts as [{ extra: Json }];
    expect(extra.recentBlockhash).to.equal(BLOCKHASH);
  });

  it('a receiver without a USDC account is refused at startup, with the command that creates it', async () => {
    stub.receiver = undefined;
    const message = await faultOfStart();
    expect(message).to.match(/^PAY_TO: /);
    expect(message).to.contain(RECEIVER).and.to.contain(`spl-token create-account ${USDC} --owner ${PAY_TO}`);
  });

  it('a receiver whose account holds lamports but is not a token account yet is also refused', async () => {
    stub.receiver!.program = SystemProgram.programId.toBase58();
    expect(await faultOfStart()).to.contain('spl-token create-account');
  });

  it('a facilitator that was never reached is refused at startup, but one that was reached before is not', async () => {
    const { port: facilitatorPort } = stub.facilitator.address() as AddressInfo;
    await stopServer(stub.facilitator);
    stub.facilitator.address = () => ({ port: facilitatorPort, family: 'IPv4', address: '127.0.0.1' });
    expect(await faultOfStart())
      .to.contain('did not answer /supported')
      .and.to.contain('FACILITATOR_URL');

    stub.facilitator.listen(facilitatorPort, '127.0.0.1');
    await once(stub.facilitator, 'listening');
    await open();
    await running!.stop();
    await stopServer(stub.facilitator);
    await open();
    const { status, json } = await call(port, 'POST', '/v1/tts');
    expect(status).to.equal(402);
    for (const { extra } of json.accepts as { extra: Json }[]) expect(extra.feePayer).to.equal(FEE_PAYER);
    for (const path of ['/', '/.well-known/x402', '/openapi.json', '/health', '/tts/v1/voices']) {
      expect((await call(port, 'GET', path)).status, path).to.equal(200);
    }
  });

  it('without a chain the server starts, and its challenges have no blockhash', async () => {
    const { port: rpcPort } = stub.rpc.address() as AddressInfo;
    await stopServer(stub.rpc);
    stub.rpc.address = () => ({ port: rpcPort, family: 'IPv4', address: '127.0.0.1' });
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

  it('a public address too long for the header of a challenge is refused at startup', async () => {
    const message = await faultOfStart({ PUBLIC_URL: `https://${`${'a'.repeat(60)}.`.repeat(24)}example` });
    expect(message).to.match(/^PUBLIC_URL: this, or the path or summary of \w+ in openapi.yaml, is too long/);
  });

  const faults: [string, RegExp, () => Record<string, string> | void][] = [
    [
      'a public address without https',
      /PUBLIC_URL: http:.* is not https/,
      () => ({ PUBLIC_URL: 'http://pay.example' }),
    ],
    ['a private address', /is a private address/, () => ({ PUBLIC_URL: 'https://10.1.2.3' })],
    ['a local host name', /not a public host name/, () => ({ PUBLIC_URL: 'https://localhost' })],
    ['a receiver whose USDC is frozen', /PAY_TO: .* is frozen/, () => void (stub.receiver!.frozen = true)],
    [
      'a receiver whose account has another owner',
      /PAY_TO: .* handed over to/,
      () => void (stub.receiver!.owner = FEE_PAYER),
    ],
    ['a token account of another mint', /PAY_TO: .* not for USDC/, () => void (stub.receiver!.mint = PAY_TO)],
    [
      'a clock that is hours off',
      /clock: .* s behind the chain: synchronise/,
      () => void (stub.aheadSeconds = 7_200),
    ],
  ];
  for (const [name, says, change] of faults)
    it(`${name} is refused at startup with an explanation`, async () => {
      expect(await faultOfStart(change() ?? {})).to.match(says);
    });

  it('all errors are reported together', async () => {
    stub.receiver = undefined;
    stub.genesis = DEVNET_GENESIS;
    stub.kinds = [];
    const message = await faultOfStart({ PUBLIC_URL: 'http://localhost' });
    expect(message.split('\n').map(line => line.split(':', 1)[0])).to.deep.equal([
      'SOLANA_RPC_URL',
      'FACILITATOR_URL',
      'PUBLIC_URL',
    ]);
  });

  it('a nearly empty fee payer and a clock that is minutes off do not keep the server from starting', async () => {
    stub.lamports = 5_000;
    stub.aheadSeconds = -180;
    await open();
    expect((await call(port, 'POST', '/v1/summarize')).status).to.equal(402);
  });

  it('the server asks each facilitator once when it starts', async () => {
    await open();
    expect(stub.asked.filter(each => each === '/x402/supported')).to.have.length(1);
  });

  it('a call without payment causes no request to chain or facilitator', async () => {
    await open();
    const before = stub.asked.filter(name => name !== 'getLatestBlockhash').length;
    for (const path of [...PAID, ...PAID]) await call(port, 'POST', path);
    expect(stub.asked.filter(name => name !== 'getLatestBlockhash').length - before).to.be.below(5);
  });
});
