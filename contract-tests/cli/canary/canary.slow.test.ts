import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { buyAsCanary, type CanaryParts } from '../../../src/cli/canary/buy-as-canary.js';
import { openLedgerReader } from '../../../src/ledger/store.js';
import { CanaryRuns, type CanaryRun } from '../../../src/operator/canary-runs.js';
import { Fates } from '../../../src/wallet/fate.js';
import { Purse } from '../../../src/wallet/purse.js';
import { createSigner } from '../../../src/wallet/signer.js';
import { rows } from '../../support/extent.js';
import { freePort } from '../../support/free-port.js';
import { priceOf } from '../../support/sold.js';
import { openWorld, type World } from '../../support/world.js';

const MAIN = fileURLToPath(new URL('../../../src/cli/canary/main.js', import.meta.url));
const RUN_MS = 50_000;
const HOP_BY_HOP = /^(host|connection|keep-alive|transfer-encoding|content-length|content-encoding|expect)$/;

type Sent = { status: number; headers: Record<string, string>; body: Buffer };
type Paid = (pass: () => Promise<Sent>) => Promise<Sent | 'cut'>;
type Outcome = { status: number | null; stdout: string; stderr: string };

const through: Paid = pass => pass();

describe('coinslot canary', function () {
  this.timeout(120_000);
  let world: World;
  let front: Server;
  let shop: string;
  /** What the proxy at PUBLIC_URL does with a call that carries a payment. */
  let paid: Paid = through;
  /** The address on which the server itself listens. */
  let own = (): string => '';
  const children = new Set<ChildProcess>();

  before(async () => {
    front = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = 'GET', url: path = '/', headers } = request;
        const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.test(name)) as [string, string][];
        const pass = async (): Promise<Sent> => {
          const body = method === 'GET' ? null : Buffer.concat(chunks);
          const answer = await fetch(own() + path, { method, headers: kept, body });
          const told = [...answer.headers].filter(([name]) => !HOP_BY_HOP.test(name));
          return {
            status: answer.status,
            headers: Object.fromEntries(told),
            body: Buffer.from(await answer.arrayBuffer()),
          };
        };
        const isPaid = headers['payment-signature'] !== undefined;
        (isPaid ? paid(pass) : pass()).then(
          sent => {
            if (sent === 'cut') return void response.destroy();
            response.writeHead(sent.status, sent.headers).end(sent.body);
          },
          () => void response.destroy(),
        );
      });
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    shop = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
    const port = await freePort();
    own = () => `http://127.0.0.1:${port}`;
    world = await openWorld({ PUBLIC_URL: shop, PORT: String(port) });
  });

  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await world?.close();
    front?.close();
    front?.closeAllConnections();
  });

  afterEach(() => void (paid = through));

  function start(...options: string[]): { child: ChildProcess; ended: Promise<Outcome> } {
    const env = { PATH: process.env['PATH'] ?? '', ...world.env };
    const child = spawn(process.execPath, [MAIN, ...options], { env });
    children.add(child);
    const said = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()));
    const timer = setTimeout(() => child.kill('SIGKILL'), RUN_MS);
    const ended = once(child, 'close').then(([status]) => {
      clearTimeout(timer);
      children.delete(child);
      return { status: status as number | null, ...said };
    });
    return { child, ended };
  }

  async function history(): Promise<CanaryRun[]> {
    const reader = await openLedgerReader({ url: `file:${join(world.stateDir, 'ledger.db')}` });
    try {
      return await new CanaryRuns({ ...reader, tell: async () => {} }).newest();
    } finally {
      await reader.close();
    }
  }

  const folder = (): string => join(world.stateDir, 'wallets', world.sandbox.info.buyer);
  const signed = (): number => {
    const statement = join(folder(), 'statement.jsonl');
    return existsSync(statement) ? readFileSync(statement, 'utf8').split('"event":"signed"').length - 1 : 0;
  };

  /** A canary in this process, with the wallet of the sandbox. */
  async function parts(more: Partial<CanaryParts> = {}): Promise<CanaryParts> {
    const rpcUrl = world.sandbox.rpc.url;
    const signer = await createSigner(world.buyer, rpcUrl);
    return {
      shop,
      payTo: world.sandbox.info.payTo,
      operation: 'summarize',
      signer,
      purse: new Purse(folder()),
      fates: new Fates(rpcUrl),
      limits: { maxPrice: 100_000n, budget: 10_000_000n },
      timeoutMs: 3_000,
      ...more,
    };
  }

  it("buys the cheapest operation, reports that everything agrees, and appears in the server's history", async () => {
    const earned = await world.earned();
    const { status, stdout, stderr } = await start().ended;
    expect(stderr).to.equal('');
    expect(stdout).to.match(/^ok {6}\w+: answer, receipts and chain agree, \d+ ms, \w{80,90}\n$/);
    expect(status).to.equal(0);
    const [run] = await history();
    expect(run).to.include({ payer: world.sandbox.info.buyer }).and.not.have.property('fault');
    expect(run?.payment).to.match(/^[0-9a-f]{64}$/);
    expect((await world.earned()) - earned).to.equal(BigInt(run?.amount ?? -1));
  });

  const KILLS: { name: string; reaches: boolean }[] = [
    { name: 'the shop has its payment, and the answer is on its way', reaches: true },
    { name: 'its payment is signed and saved, and nobody else has it', reaches: false },
  ];
  for (const { name, reaches } of rows(KILLS))
    it(`pays once when it is killed while ${name}`, async () => {
      const [earned, before] = [await world.earned(), signed()];
      const { child, ended } = start('--operation', 'summarize');
      paid = async pass => {
        if (reaches) await pass();
        child.kill('SIGKILL');
        return 'cut';
      };
      expect((await ended).status).to.equal(null);
      paid = through;
      const again = await start().ended;
      expect(again.stdout + again.stderr).to.match(/^ok {6}summarize: /);
      expect(signed() - before).to.equal(1);
      expect((await world.earned()) - earned).to.equal(priceOf('summarize'));
      expect(new Purse(folder()).pending()).to.deep.equal([]);
    });

  it('says after a failure that its payment is kept, and continues with it in the next run', async () => {
    const [earned, before] = [await world.earned(), signed()];
    paid = async pass => {
      await pass();
      return { status: 500, headers: {}, body: Buffer.from('{"error":"Out of tea."}') };
    };
    const failed = await buyAsCanary(await parts({ operation: 'solMintInfo' }));
    expect(failed.fault).to.include('Out of tea.').and.include('the next run continues with it');
    paid = through;
    const next = await buyAsCanary(await parts({ operation: undefined }));
    expect(next)
      .to.include({ operation: 'solMintInfo', payment: failed.payment })
      .and.not.have.property('fault');
    expect(signed() - before).to.equal(1);
    expect((await world.earned()) - earned).to.equal(priceOf('solMintInfo'));
  });

  const bent = (change: (sent: Sent) => Partial<Sent>): Paid => {
    return async pass => {
      const sent = await pass();
      return { ...sent, ...change(sent) };
    };
  };
  const without = ({ headers }: Sent, name: string): Partial<Sent> => ({
    headers: Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name)),
  });
  const FAULTS: { name: string; change: (sent: Sent) => Partial<Sent>; says: RegExp[] }[] = [
    {
      name: 'an answer that violates its schema and is not the one that was signed',
      change: () => ({ body: Buffer.from('{"summary":7}') }),
      says: [/does not match the contract: .*summary/, /receipt is wrong: it is about an answer with sha256/],
    },
    {
      name: 'an answer of another type',
      change: ({ headers }) => ({ headers: { ...headers, 'content-type': 'text/html' } }),
      says: [/its type is text\/html, not application\/json/],
    },
    {
      name: 'a sale without an answer receipt',
      change: sent => without(sent, 'answer-receipt'),
      says: [/receipt is wrong: there is no Answer-Receipt/],
    },
    {
      name: 'a receipt with the transaction of another sale',
      change: ({ headers }) => {
        const receipt = JSON.parse(
          Buffer.from(headers['payment-response'] ?? '', 'base64').toString(),
        ) as object;
        const other = { ...receipt, transaction: '5'.repeat(88) };
        const header = Buffer.from(JSON.stringify(other)).toString('base64');
        return { headers: { ...headers, 'payment-response': header } };
      },
      says: [/receipt is wrong: transaction is/, /the transfer is \w+, but the receipt names 5{88}/],
    },
  ];
  for (const { name, change, says } of FAULTS)
    it(`fails on ${name}`, async () => {
      paid = bent(change);
      const { fault = '' } = await buyAsCanary(await parts());
      for (const pattern of says) expect(fault).to.match(pattern);
    });

  it('fails on a sale without a transfer on the chain', async () => {
    const fates = { of: async () => ({ kind: 'dead' }) as const, chainClock: async () => undefined };
    const { fault } = await buyAsCanary(await parts({ fates }));
    expect(fault).to.include('was not settled and never will be');
  });

  it('signs nothing for a shop that asks to pay someone other than PAY_TO', async () => {
    const before = signed();
    const payTo = Keypair.generate().publicKey.toBase58();
    const { fault, payment } = await buyAsCanary(await parts({ payTo }));
    expect(fault).to.include(`but PAY_TO is ${payTo}`).and.include('Nothing was paid.');
    expect([payment, signed()]).to.deep.equal([undefined, before]);
  });

  it('reports to a server that was down, once it is back', async () => {
    const known = (await history()).length;
    const child = spawn(process.execPath, [MAIN, '--max-price', '0.000001'], {
      env: { PATH: process.env['PATH'] ?? '', ...world.env, ADMIN_URL: 'http://127.0.0.1:9' },
    });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    expect((await once(child, 'close'))[0]).to.equal(1);
    expect(stderr).to.include('the next run sends it').and.include("can't be reached");
    expect(await history()).to.have.lengthOf(known);
    await start('--max-price', '0.000001').ended;
    const faults = (await history()).slice(0, 2).map(({ fault }) => fault);
    expect(faults.every(fault => fault?.includes('more than your limit'))).to.equal(true);
    expect(await history()).to.have.lengthOf(known + 2);
  });
});
