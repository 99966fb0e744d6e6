import { expect } from 'chai';
import { callTool, payloadOf } from '../support/mcp-call.js';
import {
  askTask as ask,
  getTask as get,
  orderTask as order,
  WITHOUT_TASKS,
  type TaskJson,
} from '../support/mcp-tasks.js';
import { aBody, allInOneWorld, openServer, world } from '../support/brand-servers.js';
import { signFor } from '../support/world.js';

type Json = Record<string, unknown>;

/** A result without its receipts, which are signed again each time, with the current second. */
const saidIn = ({ _meta, ...said }: Json = {}): Json => said;

describe('orders as MCP tasks', function () {
  this.timeout(60_000);
  allInOneWorld();

  const done = async (url: string, taskId: string): Promise<TaskJson> => {
    for (;;) {
      const task = await get(url, taskId);
      if (task.status !== 'working') return task;
      await new Promise(resolve => setTimeout(resolve, Math.min(1_000, task.pollIntervalMs)));
    }
  };
  const sign = async (url: string): Promise<Json> =>
    payloadOf(await signFor({ ...world, url }, '/brand-feedback'));

  it('a paid order immediately becomes a task, is polled by its id, and ends with the result of the call', async () => {
    const { url } = world;
    const before = await world.earned();
    const [asked, payment] = [aBody(2), await sign(url)];
    const task = await order(url, asked, payment);
    expect(task).to.include({ resultType: 'task', status: 'working', ttlMs: 7 * 86_400_000 });
    expect(task.taskId).to.match(/^[A-Za-z0-9_-]{86}$/);
    expect(task.pollIntervalMs).to.be.greaterThan(0);
    expect(await world.earned()).to.equal(before + 500_000n);
    const ended = await done(url, task.taskId);
    expect(ended).to.include({ resultType: 'complete', status: 'completed', createdAt: task.createdAt });
    const picked = await callTool(url, 'pick_up', { key: task.taskId });
    expect(saidIn(ended.result)).to.deep.equal(saidIn(picked));
    expect(picked.structuredContent).to.have.property('responses').with.length(2);
    const again = await order(url, asked, payment);
    expect(again['structuredContent'], 'the same payment gets the answer').to.deep.equal(
      picked.structuredContent,
    );
    expect(await world.earned()).to.equal(before + 500_000n);
  });

  it('a client that cancels is told what happens to its money, and its order continues', async () => {
    const { url } = world;
    const { taskId } = await order(url, aBody(1), await sign(url));
    const { result } = await ask(url, 'tasks/cancel', { taskId });
    expect(result).to.include({ resultType: 'complete' }).and.not.to.have.any.keys('taskId', 'status');
    expect((result?.['_meta'] as Json)['coinslot/cancel']).to.match(
      /continues: nothing more is charged, and its answer stays yours/,
    );
    const { result: updated } = await ask(url, 'tasks/update', { taskId, inputResponses: {} });
    expect(updated).to.include({ resultType: 'complete' }).and.not.to.have.any.keys('taskId', 'status');
    expect((await done(url, taskId)).result?.['structuredContent']).to.have.property('responses');
  });

  it('a task is shown to no one without its id, nor to clients that have not declared tasks', async () => {
    const { url } = world;
    const { error } = await ask(url, 'tasks/get', { taskId: 'A'.repeat(86) });
    expect(error).to.include({ code: -32_602 });
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      expect((await ask(url, method, { taskId: 'A' }, WITHOUT_TASKS)).error, method).to.include({
        code: -32_021,
      });
    const { result } = await ask(url, 'tools/call', { name: 'brandFeedback', arguments: aBody(1) });
    expect(result, 'unpaid').to.include({ isError: true });
    const summarized = await ask(url, 'tools/call', { name: 'summarize', arguments: {} });
    expect(summarized.result).to.include({ resultType: 'complete' });
  });

  it('a client that does not support tasks waits for its order, as before', async () => {
    const { url } = world;
    const sold = await order(url, aBody(1), await sign(url), WITHOUT_TASKS);
    expect(sold).to.include({ resultType: 'complete' });
    expect(sold['structuredContent']).to.have.property('responses').with.length(1);
  });

  it("a task outlives its server: the ledger's next server reports it until it ends, for one payment", async () => {
    const mock = { PEOPLE: 'sandbox', PANEL_TOKEN: '' };
    const first = await openServer('tasks', mock);
    const before = await world.earned();
    const { taskId } = await order(first.url, aBody(2), await sign(first.url));
    await first.stop();
    const second = await openServer('tasks', mock);
    const ended = await done(second.url, taskId);
    expect(ended.result?.['structuredContent']).to.have.property('responses').with.length(2);
    expect(await world.earned()).to.equal(before + 500_000n);
  });
});
