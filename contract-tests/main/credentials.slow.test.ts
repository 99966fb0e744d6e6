import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../src/config.js';
import { ConfigFault } from '../../src/config/setting-reader.js';
import { endpointOf, shownUrl } from '../../src/net/endpoint.js';
import { receiverAccount } from '../../src/rails/solana/transaction.js';
import { TOKEN_PROGRAM } from '../../src/rails/solana/networks.js';
import { craftPayment, DEVNET, DEVNET_USDC, v2Header } from '../support/craft.js';
import { until } from '../support/faults.js';
import { freePort } from '../support/free-port.js';
import { tokenAccount } from '../support/stub-mainnet.js';
import { call, TEXT } from '../support/world.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
const PAY_TO = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4';
const FEE_PAYER = 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb';
const BASIC = `Basic ${Buffer.from('kingfisher:hush/hush').toString('base64')}`;
const QUERY = '?api-key=querykey&tier=gold';
/** Every part of the URLs below that must stay secret. */
const SECRETS = /kingfisher|hush|querykey|gold|a2luZ2Zpc2hlcjpodXNoL2h1c2g=/;

type Asked = { path: string; authorization: string | undefined };

/** An HTTP service that requires credentials and, when it is broken, repeats the request in its error, as some do. */
class Service {
  readonly asked: Asked[] = [];
  broken = false;
  readonly #server: Server;

  constructor(answer: (path: string, body: string) => unknown) {
    this.#server = createServer((request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { url = '', headers } = request;
        this.asked.push({ path: url, authorization: headers.authorization });
        response.setHeader('content-type', 'application/json');
        if (this.broken) {
          const echo = `no ${url} for ${headers.authorization}, which is kingfisher:hush/hush`;
          response.statusCode = url.includes('rpc') ? 404 : 200;
          const error = {
            isValid: false,
            invalidReason: echo,
            success: false,
            errorReason: echo,
            error: echo,
          };
          return void response.end(JSON.stringify(error));
        }
        response.end(JSON.stringify(answer(url, Buffer.concat(chunks).toString())));
      });
    });
  }

  async open(path: string): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    const { port } = this.#server.address() as AddressInfo;
    return `http://kingfisher:hush%2Fhush@127.0.0.1:${port}${path}${QUERY}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await new Promise(resolve => this.#server.close(resolve));
  }
}

function rpcAnswer(_path: string, body: string): unknown {
  const { method, params } = JSON.parse(body) as { method: string; params: unknown[] };
  const context = { slot: 1_000 + Math.floor(Date.now() / 400) };
  const receiver = receiverAccount({ asset: DEVNET_USDC, payTo: PAY_TO });
  const data = tokenAccount({ mint: DEVNET_USDC, owner: PAY_TO, frozen: false }).toString('base64');
  const account = { owner: TOKEN_PROGRAM, lamports: 1, executable: false, data: [data, 'base64'] };
  const results: Record<string, unknown> = {
    getGenesisHash: GENESIS,
    getLatestBlockhash: {
      context,
      value: { blockhash: FEE_PAYER, lastValidBlockHeight: context.slot + 150 },
    },
    getSignaturesForAddress: [],
    getAccountInfo: { context, value: params[0] === receiver ? account : null },
  };
  return { jsonrpc: '2.0', id: 1, result: results[method] };
}

const facilitatorAnswer = (path: string): unknown =>
  path.includes('/supported')
    ? { kinds: [{ x402Version: 2, scheme: 'exact', network: DEVNET, extra: { feePayer: FEE_PAYER } }] }
    : { isValid: true, success: false, errorReason: 'insufficient_funds' };

describe('Credentials in FACILITATOR_URL and SOLANA_RPC_URL', function () {
  this.timeout(60_000);
  let rpc: Service;
  let facilitator: Service;
  let stateDir: string;
  let server: ChildProcess | undefined;
  let said: string;

  beforeEach(async () => {
    rpc = new Service(rpcAnswer);
    facilitator = new Service(facilitatorAnswer);
    stateDir = await mkdtemp(join(tmpdir(), 'credentials-'));
    said = '';
  });
  afterEach(async () => {
    if (server && server.exitCode === null) {
      const ended = once(server, 'exit');
      server.kill('SIGTERM');
      await ended;
    }
    server = undefined;
    await Promise.all([rpc.close(), facilitator.close()]);
    await rm(stateDir, { recursive: true, force: true });
  });

  function launch(port: number, rpcUrl: string, facilitatorUrl: string): void {
    const env = {
      PATH: process.env['PATH'] ?? '',
      NETWORK: 'devnet',
      PORT: String(port),
      ADMIN_PORT: '0',
      PUBLIC_URL: 'https://pay.example',
      PAY_TO,
      STATE_DIR: stateDir,
      LOG_LEVEL: 'trace',
      PANEL_TOKEN: 'a-token-of-the-panel',
      SOLANA_RPC_URL: rpcUrl,
      FACILITATOR_URL: facilitatorUrl,
    };
    const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
    server = child;
  }

  it('are sent, and appear in no log, error, answer or /health, however chain and facilitator fail', async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    launch(port, await rpc.open('/rpc'), await facilitator.open('/x402/'));
    await until('it is ready', () => said.includes('ready to be paid'));
    const answers: string[] = [];
    const ask = async (path: string, init?: RequestInit): Promise<void> => {
      const answer = await call(`${url}${path}`, init);
      answers.push(
        `${path} ${answer.status} ${answer.body.toString()} ${JSON.stringify([...answer.headers])}`,
      );
    };
    const pay = async (path: string, body: object): Promise<void> => {
      const { transaction } = craftPayment({ feePayer: FEE_PAYER, payTo: PAY_TO, asset: DEVNET_USDC });
      const accepted = {
        scheme: 'exact',
        network: DEVNET,
        amount: '10000',
        asset: DEVNET_USDC,
        payTo: PAY_TO,
      };
      const headers = {
        'content-type': 'application/json',
        'PAYMENT-SIGNATURE': v2Header(accepted, transaction),
      };
      await ask(path, { method: 'POST', body: JSON.stringify(body), headers });
    };
    const everything = async (): Promise<void> => {
      await ask('/health');
      await ask('/v1/summarize', { method: 'POST' });
      await pay('/v1/summarize', { text: TEXT });
      await pay('/v1/sol-mint-info', { mint: FEE_PAYER });
    };
    await everything();
    expect(answers.join('\n')).to.include('too little USDC');
    facilitator.broken = true;
    await everything();
    expect(answers.join('\n')).to.include('refused by the facilitator: no /x402/verify');
    rpc.broken = true;
    await until('it is noticed', () => said.includes('no usable answer from the Solana RPC'));
    await everything();
    await Promise.all([rpc.close(), facilitator.close()]);
    await everything();
    expect(rpc.asked.map(({ path }) => path).every(path => path === `/rpc${QUERY}`)).to.equal(true);
    expect(new Set(facilitator.asked.map(({ path }) => path))).to.include(`/x402/supported${QUERY}`);
    expect(new Set(facilitator.asked.map(({ path }) => path))).to.include(`/x402/settle${QUERY}`);
    for (const { authorization } of [...rpc.asked, ...facilitator.asked])
      expect(authorization).to.equal(BASIC);
    expect(said.match(SECRETS), said.slice(Math.max(0, said.search(SECRETS) - 300)).slice(0, 600)).to.equal(
      null,
    );
    expect(answers.join('\n')).not.to.match(SECRETS);
  });

  it('do not appear in the error of a failed start: facilitator down, wrong scheme, or not a URL at all', async () => {
    const port = await freePort();
    const facilitatorUrl = await facilitator.open('/x402');
    await facilitator.close();
    launch(port, await rpc.open('/rpc'), facilitatorUrl);
    await until('it has ended', () => server?.exitCode === 1);
    expect(said).to.include('did not answer /supported').and.not.match(SECRETS);
    const wrong = {
      FACILITATOR_URL: 'ftp://kingfisher:hush%2Fhush@facilitator.example/x402?api-key=querykey',
      SOLANA_RPC_URL:
        'http://kingfisher:hush/hush@rpc.example?api-key=querykey,https//kingfisher:hush@rpc.example/?gold',
    };
    try {
      readConfig(wrong);
      expect.fail('it was taken');
    } catch (error) {
      expect(error).to.be.instanceOf(ConfigFault);
      const { message } = error as Error;
      expect(message).to.include('ftp://facilitator.example/x402').and.include('SOLANA_RPC_URL');
      expect(message).not.to.match(SECRETS);
    }
  });

  it('are kept as they were written, even a query that ends with a slash', () => {
    const url = 'https://kingfisher@rpc.example/rpc/?api-key=query/key/';
    expect(readConfig({ SOLANA_RPC_URL: url, FACILITATOR_URL: url, PAY_TO }).rpcUrls).to.deep.equal([url]);
    expect(endpointOf(url)).to.deep.include({
      path: '/rpc/',
      search: '?api-key=query/key/',
      headers: { authorization: `Basic ${Buffer.from('kingfisher:').toString('base64')}` },
    });
  });

  for (const [url, shown] of [
    ['https://rpc.example', 'https://rpc.example'],
    ['https://user:pass@rpc.example/x402/?a=b#c', 'https://rpc.example/x402?…'],
    ['https://rpc.example/v2/0123456789abcdefghijklmn', 'https://rpc.example/v2/…'],
    ['http//a:b@d?c', 'http//…'],
    ['nothing of the kind', 'nothing of the kind'],
  ] as const)
    it(`are hidden in ${url}, which is shown as ${shown}`, () => {
      expect(shownUrl(url)).to.equal(shown);
    });
});
