import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Health, type HealthReport } from '../../src/http/health.js';
import { RecentCalls } from '../../src/http/recent-calls.js';
import { UpstreamFailure } from '../../src/net/failure.js';
import { TooLate } from '../../src/sale/work.js';
import { QueueFull } from '../../src/upstreams/fair-queue.js';
import { call, openWorld, post, signFor, TEXT, type World } from '../support/world.js';

const KEY = 'sk-very-secret';
const NEVER = new AbortController().signal;

describe('Health reports the outcome of the last real calls', () => {
  let world: World;
  let model: Server;
  let content = '';
  before(async function () {
    this.timeout(60_000);
    model = createServer((request, response) => {
      request.resume().on('end', () => {
        response.setHeader('content-type', 'application/json');
        const choices = [{ message: { content }, finish_reason: 'stop' }];
        response.end(JSON.stringify(request.url === '/v1/models' ? { data: [] } : { choices }));
      });
    });
    await new Promise<void>(done => model.listen(0, '127.0.0.1', done));
    const { port } = model.address() as AddressInfo;
    world = await openWorld({
      SUMMARIZER_URL: `http://127.0.0.1:${port}/v1`,
      SUMMARIZER_MODEL: 'tiny',
      SUMMARIZER_API_KEY: KEY,
    });
  });
  after(async () => {
    await world.close();
    model.closeAllConnections();
    await new Promise(done => model.close(done));
  });

  const summarize = async (): Promise<number> =>
    (await post(`${world.url}/v1/summarize`, { text: TEXT }, await signFor(world, '/v1/summarize'))).status;
  const health = async (): Promise<HealthReport> =>
    (await call(`${world.url}/health`)).json() as unknown as HealthReport;

  it('a summarizer that answers probes but no calls is not ok: health says since when and what happened, without secrets', async () => {
    content = "I'm sorry, but I can't assist with that.";
    const before = await world.earned();
    const startedAt = Date.now();
    expect([await summarize(), await summarize()]).to.deep.equal([502, 502]);
    expect(await world.earned()).to.equal(before);
    const report = await health();
    const { status, detail = '' } = report.upstreams.summarizer ?? {};
    expect([report.status, status]).to.deep.equal(['degraded', 'degraded']);
    expect(detail).to.match(/^the last 2 calls failed, since \d{4}-\d\d-\d\dT[\d:.]+Z: .*no usable answer/);
    const since = Date.parse(/since (\S+Z)/.exec(detail)?.[1] ?? '');
    expect(since).to.be.within(startedAt, Date.now());
    expect(JSON.stringify(report)).to.not.match(/sk-very-secret|127\.0\.0\.1|sorry/);
  });

  it('it is ok again after the next call that succeeds', async () => {
    content = '{"sentences":["The bridge will close."]}';
    expect(await summarize()).to.equal(200);
    expect((await health()).upstreams.summarizer?.status).to.equal('ok');
  });
});

describe('Recent calls', () => {
  /** Makes one call of a handler that throws `error`, and records its outcome. */
  async function fail(calls: RecentCalls, error: Error, signal = NEVER): Promise<void> {
    const handlers = { quote: { call: () => Promise.reject(error), backend: 'summarizer' } };
    await calls
      .observe(handlers)
      .quote!.call({ params: {}, query: {}, body: {}, signal, caller: 'a' })
      .catch(() => undefined);
  }

  it('a failure of our own is reported without its message', async () => {
    const calls = new RecentCalls();
    await fail(calls, new Error(`connect to http://10.0.0.1/?key=${KEY}`));
    expect(calls.failureStreak('summarizer')?.why).to.not.match(/10\.0|secret/);
  });

  it('callers who left, bad input and a full queue say nothing about a backend', async () => {
    const calls = new RecentCalls();
    await fail(calls, new UpstreamFailure('invalid', 'nothing to say'));
    await fail(calls, new QueueFull('unavailable', 'full'));
    await fail(calls, new UpstreamFailure('failed', 'late'), AbortSignal.abort());
    expect(calls.failureStreak('summarizer')).to.equal(undefined);
    await fail(calls, new UpstreamFailure('unavailable', 'not there'));
    expect(calls.failureStreak('summarizer')).to.include({ failures: 1, why: 'not there' });
  });

  it('a backend that did not finish within the time for the work has failed', async () => {
    const calls = new RecentCalls();
    await fail(
      calls,
      new UpstreamFailure('failed', 'the summary was not ready'),
      AbortSignal.abort(new TooLate()),
    );
    expect(calls.failureStreak('summarizer')).to.include({ failures: 1, why: 'the summary was not ready' });
  });

  it('without new calls, a successful probe clears an old failure, and a failed probe does not', async () => {
    for (const [works, status] of [
      [true, 'ok'],
      [false, 'down'],
    ] as const) {
      const calls = new RecentCalls(50);
      const probe = () => (works ? Promise.resolve() : Promise.reject(new Error('no')));
      const health = new Health('1', { summarizer: probe }, calls);
      calls.failed('summarizer', 'no answer');
      expect(health.report().upstreams.summarizer?.status).to.equal('degraded');
      await new Promise(resolve => setTimeout(resolve, 60));
      health.start();
      await new Promise(resolve => setTimeout(resolve, 20));
      health.stop();
      expect(health.report().upstreams.summarizer?.status).to.equal(status);
    }
  });

  it('a probe does not hide a call that failed just now', async () => {
    const calls = new RecentCalls();
    const health = new Health('1', { summarizer: () => Promise.resolve() }, calls);
    calls.failed('summarizer', 'no answer');
    health.start();
    await new Promise(resolve => setTimeout(resolve, 20));
    health.stop();
    expect(health.report().upstreams.summarizer).to.include({ status: 'degraded' });
  });
});

it('Health probes any number of backends without a warning about leaked listeners', async () => {
  const warned: Error[] = [];
  const hear = (warning: Error): void => void warned.push(warning);
  process.on('warning', hear);
  const backends = Array.from({ length: 12 }, (_, index) => [`backend ${index}`, async () => {}] as const);
  const health = new Health('1', Object.fromEntries(backends), new RecentCalls());
  health.start();
  // Node emits warnings in a later turn.
  for (let turns = 0; turns < 3; turns++) await new Promise(resolve => setImmediate(resolve));
  health.stop();
  process.off('warning', hear);
  expect(health.report().status).to.equal('ok');
  expect(warned).to.deep.equal([]);
});
