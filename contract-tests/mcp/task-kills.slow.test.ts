import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { PublicKey } from '@solana/web3.js';
import { expect } from 'chai';
import { openLedgerReader } from '../../src/ledger/store.js';
import { repeated } from '../support/extent.js';
import { freePort } from '../support/free-port.js';
import { payloadOf } from '../support/mcp-call.js';
import { getTask, orderTask } from '../support/mcp-tasks.js';
import { BRAND_PRICE, signBrand } from '../support/respondent.js';
import {
  allOnOneChain,
  buyer,
  connection,
  folder,
  proxied,
  sandbox,
  serve,
  type Served,
} from '../support/server-process.js';

type Json = Record<string, unknown>;

const KILLS = repeated(30, 2);
/** Killed work begins again, so some orders end only after the last kill. */
const TOLD_MS = 60_000 + KILLS * 12_000;
/** The sample respondents answer after five seconds. */
const MOMENTS_MS = 6_500;
/** The delay between a paid call and a kill: mostly short, so that many kills come while money moves. */
const momentOf = (kill: number): number => MOMENTS_MS * ((kill + 0.5) / KILLS) ** 2;

describe('MCP tasks on a server that is killed', function () {
  this.timeout(600_000);
  allOnOneChain();

  /** Repeats a request until a server answers it. */
  async function answered<T>(request: () => Promise<T>): Promise<T> {
    for (const end = Date.now() + TOLD_MS; ; await pause(100)) {
      try {
        return await request();
      } catch (error) {
        if (Date.now() > end || !isCut(error)) throw error;
      }
    }
  }

  /** Orders as a careful client does: sends the same payment until there is a task, then polls the task until it ends. */
  async function told(url: string, number: number): Promise<Json> {
    const { headers } = await answered(() => signBrand(url, buyer.secretKey));
    const asked = { brand: 'Harbour Coffee', question: `What do you think of cup number ${number}?`, n: 1 };
    const send = () => answered(() => orderTask(url, asked, payloadOf(headers)));
    let result = await send();
    while (isBusy(result)) {
      await pause(200);
      result = await send();
    }
    if (result.resultType !== 'task') return result;
    const { taskId } = result;
    let task = await answered(() => getTask(url, taskId));
    for (const end = Date.now() + TOLD_MS; task.status === 'working' && Date.now() < end; await pause(500))
      task = await answered(() => getTask(url, taskId));
    expect(task.status, task.statusMessage).to.equal('completed');
    return task.result ?? {};
  }

  it(`after ${KILLS} kills, every order was reported until it ended, and was paid for once`, async () => {
    const port = String(await freePort());
    const env = proxied('tasks', { PORT: port, PEOPLE: 'sandbox' });
    let served: Served = await serve(env);
    const orders: Promise<Json>[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      orders.push(told(served.url, kill));
      await pause(momentOf(kill));
      await served.kill();
      served = await serve(env);
    }
    for (const result of await Promise.all(orders)) {
      expect(result['isError'], JSON.stringify(result).slice(0, 300)).not.to.equal(true);
      expect(result['structuredContent']).to.have.property('responses').with.length(1);
    }
    expect(await earned()).to.equal(BigInt(KILLS) * BRAND_PRICE);
    await served.kill();
    const reader = await openLedgerReader({ url: `file:${join(folder, 'tasks', 'ledger.db')}` });
    const rows = await reader.list({ operation: 'brandFeedback' });
    await reader.close();
    expect(rows.map(({ state }) => state)).to.deep.equal(Array.from({ length: KILLS }, () => 'delivered'));
  });
});

async function earned(): Promise<bigint> {
  const { usdcMint, payTo } = sandbox.info;
  const till = getAssociatedTokenAddressSync(new PublicKey(usdcMint), new PublicKey(payTo), true);
  return BigInt((await connection.getTokenAccountBalance(till)).value.amount);
}

/** Whether the result is a 503, after which the same payment must be sent again. */
const isBusy = (result: Json): boolean =>
  (result['structuredContent'] as Json | undefined)?.['status'] === 503;

/** Whether the connection ended before the answer or in the middle of it. */
const isCut = (error: unknown): boolean => error instanceof TypeError || /no answer in/.test(String(error));
