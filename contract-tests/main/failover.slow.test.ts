import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Keypair, PublicKey } from '@solana/web3.js';
import { expect } from 'chai';
import type { PaymentRequirements } from '@x402/core/types';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { pause } from '../support/faults.js';
import {
  allOnOneChain,
  buyer,
  children,
  connection,
  proxied,
  sandbox,
  serve,
  type Served,
} from '../support/server-process.js';
import { SUMMARIZE } from '../support/test-chain.js';

const SCRIPT = fileURLToPath(new URL('../support/facilitator-process.js', import.meta.url));
const SALES = 150;
const PARALLEL = 6;
/** The numbers of sales after which A is killed, and after which it comes back. */
const [KILLED_AT, BACK_AT] = [SALES / 3, (2 * SALES) / 3];

type Sale = { at: number; feePayer: string; transaction: string };

describe('failover: facilitator A is killed in the middle of the load and comes back', function () {
  this.timeout(240_000);
  allOnOneChain();

  const key = Keypair.generate();
  let a: { url: string; child: ChildProcess };

  async function startA(port: number): Promise<typeof a> {
    const { info, rpc } = sandbox;
    const options = { host: '127.0.0.1', port, rpcUrl: rpc.url, feePayer: [...key.secretKey], id: info.id };
    const child = spawn(process.execPath, [SCRIPT, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    const [url] = (await once(createInterface(child.stdout), 'line')) as [string];
    return { url, child };
  }

  it('sales continue through B, every paid answer is obtained, and nothing is charged twice', async () => {
    await connection.requestAirdrop(key.publicKey, 10_000_000_000);
    a = await startA(0);
    const port = Number(new URL(a.url).port);
    const server = await serve(
      proxied('failover', { FACILITATOR_URL: `${a.url},${sandbox.facilitator.url}` }),
    );
    const sales: Sale[] = [];
    const others = new Map<string, number>();
    let begun = 0;
    const worker = async (): Promise<void> => {
      while (begun < SALES) {
        const sale = await buy(server, `text ${++begun} to be summarized. It has two sentences.`, others);
        sales.push(sale);
        if (sales.length === KILLED_AT) {
          a.child.kill('SIGKILL');
          await once(a.child, 'close');
        }
        if (sales.length === BACK_AT) a = await startA(port);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
    const own = key.publicKey.toBase58();
    const through = (some: Sale[]): string =>
      `${some.filter(({ feePayer }) => feePayer === own).length} A + ${some.filter(({ feePayer }) => feePayer !== own).length} B`;
    const gaps = sales.slice(1).map(({ at }, n) => at - sales[n]!.at);
    const figures = {
      before: through(sales.slice(0, KILLED_AT)),
      during: through(sales.slice(KILLED_AT, BACK_AT)),
      after: through(sales.slice(BACK_AT)),
      otherAnswers: Object.fromEntries(others),
      longestGapMs: Math.round(Math.max(...gaps)),
    };
    process.stdout.write(`      ${JSON.stringify(figures)}\n`);
    expect(sales).to.have.length(SALES);
    expect(
      new Set(sales.map(({ transaction }) => transaction)).size,
      'each has a transfer of its own',
    ).to.equal(SALES);
    expect(sales.slice(0, KILLED_AT).every(({ feePayer }) => feePayer === own)).to.equal(true);
    expect(sales.slice(KILLED_AT, BACK_AT).some(({ feePayer }) => feePayer !== own)).to.equal(true);
    const paid = BigInt(SALES) * SUMMARIZE.price.atomic;
    expect(await earned(), 'charged once each').to.equal(paid);
    await server.kill();
  });

  async function earned(): Promise<bigint> {
    const { value } = await connection.getTokenAccountsByOwner(new PublicKey(sandbox.info.payTo), {
      mint: new PublicKey(sandbox.info.usdcMint),
    });
    return value.reduce((sum, { account }) => sum + account.data.readBigUInt64LE(64), 0n);
  }

  /** Sends the same payment again after a 503 or a broken connection, and signs a new one after a 402. */
  async function buy({ url }: Served, text: string, others: Map<string, number>): Promise<Sale> {
    const body = JSON.stringify({ text });
    const send = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${url}${SUMMARIZE.path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      });
    for (let challenge = await send({}); ;) {
      const { accepts } = (await challenge.json()) as { accepts: [PaymentRequirements] };
      const { feePayer } = accepts[0].extra as { feePayer: string };
      const { payTo } = sandbox.info;
      const { blockhash } = sandbox.chain.latestBlockhash('processed');
      const { transaction } = craftPayment({ payer: buyer, feePayer, payTo, blockhash });
      const terms = {
        network: sandbox.info.network,
        v1Network: sandbox.info.v1Network,
        asset: sandbox.info.usdcMint,
        payTo,
        publicUrl: url,
      };
      const header = v2Header(requirementsOf(SUMMARIZE, terms, feePayer), transaction);
      for (;;) {
        const answer = await send({ 'payment-signature': header });
        if (answer.status === 200) {
          await answer.arrayBuffer();
          const receipt = Buffer.from(answer.headers.get('payment-response') ?? '', 'base64').toString();
          return { at: performance.now(), feePayer, ...(JSON.parse(receipt) as { transaction: string }) };
        }
        const text = await answer.clone().text();
        const what = `${answer.status}${/not yet certain/.test(text) ? ' unresolved' : ''}`;
        others.set(what, (others.get(what) ?? 0) + 1);
        if (answer.status === 402) {
          challenge = answer;
          break;
        }
        expect(answer.status, text).to.equal(503);
        await pause(500);
      }
    }
  }
});
