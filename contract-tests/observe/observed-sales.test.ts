import { context, propagation, trace } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-node';
import { expect } from 'chai';
import { callTool, payloadOf } from '../support/mcp-call.js';
import { readiness, scrape } from '../support/metrics.js';
import { openWorld, post, signFor, TEXT, type World } from '../support/world.js';

const SUMMARIZE = '/v1/summarize';
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

describe("The operator's view of sales", () => {
  let world: World;
  const exporter = new InMemorySpanExporter();
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });
  after(async () => {
    await world.close();
    await provider.shutdown();
    trace.disable();
    context.disable();
    propagation.disable();
  });

  const admin = (): string => world.server.admin.url;
  const sample = async (name: string): Promise<number> => (await scrape(admin())).get(name) ?? 0;
  const buy = async (headers: Record<string, string> = {}): ReturnType<typeof post> =>
    post(world.url + SUMMARIZE, { text: TEXT }, { ...(await signFor(world, SUMMARIZE)), ...headers });

  it('counts unpaid calls, sales and exact revenue by operation; a resent payment is not a second sale', async () => {
    const before = await scrape(admin());
    for (let n = 0; n < 3; n++) expect((await post(world.url + SUMMARIZE, {})).status).to.equal(402);
    const payment = await signFor(world, SUMMARIZE);
    for (let n = 0; n < 2; n++)
      expect((await post(world.url + SUMMARIZE, { text: TEXT }, payment)).status).to.equal(200);
    const after = await scrape(admin());
    const grown = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    // The fourth challenge is the one that the payment answers.
    expect(grown('coinslot_challenges_total{operation="summarize"}')).to.equal(4);
    expect(grown('coinslot_sales_total{operation="summarize"}')).to.equal(1);
    expect(grown('coinslot_answers_total{operation="summarize",transport="http",status="200"}')).to.equal(2);
    expect(after.get('coinslot_revenue_usdc_total{operation="summarize"}')).to.equal(
      Number(await world.earned()) / 1e6,
    );
    expect(after.get('coinslot_step_seconds_count{step="settle",operation="summarize"}')).to.be.at.least(1);
  });

  it('counts refusals by reason', async () => {
    const name = 'coinslot_refusals_total{operation="textToSpeech",reason="amount"}';
    const before = await sample(name);
    const cheaper = await signFor(world, SUMMARIZE);
    expect((await post(`${world.url}/v1/tts`, { text: TEXT }, cheaper)).status).to.equal(402);
    expect(await sample(name)).to.equal(before + 1);
  });

  it('counts a call with a wrong HTTP method if it carries a payment, and does not count it otherwise', async () => {
    const name = 'coinslot_answers_total{operation="summarize",transport="http",status="405"}';
    const payment = await signFor(world, SUMMARIZE);
    const before = await sample(name);
    const headers = { ...payment, 'X-Request-Id': 'proxy-1:41' };
    const refused = await fetch(world.url + SUMMARIZE, { method: 'DELETE', headers });
    expect([refused.status, refused.headers.get('x-request-id')]).to.deep.equal([405, 'proxy-1:41']);
    expect((await fetch(world.url + SUMMARIZE, { method: 'DELETE' })).status).to.equal(405);
    expect(await sample(name)).to.equal(before + 1);
  });

  it("keeps a request's X-Request-Id if it is valid, over HTTP and MCP, and otherwise assigns one", async () => {
    expect((await buy({ 'X-Request-Id': 'proxy-1:42' })).headers.get('x-request-id')).to.equal('proxy-1:42');
    for (const bad of ['a b', 'x'.repeat(129), '"{}'])
      expect((await buy({ 'X-Request-Id': bad })).headers.get('x-request-id'), bad).to.match(UUID);
    const named = { 'X-Request-Id': 'proxy-1:43' };
    const refused = [
      await post(`${world.url}${SUMMARIZE}`, { text: 1 }, { ...named, ...(await signFor(world, SUMMARIZE)) }),
      await post(`${world.url}${SUMMARIZE}`, { text: TEXT }, { ...named, 'X-PAYMENT': 'x' }),
    ];
    expect(refused.map(({ status, headers }) => [status, headers.get('x-request-id')])).to.deep.equal([
      [400, 'proxy-1:43'],
      [402, 'proxy-1:43'],
    ]);
    const asked = await fetch(`${world.url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'x-request-id': 'agent-7',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    });
    expect(asked.headers.get('x-request-id')).to.equal('agent-7');
    await asked.body?.cancel();
  });

  it('counts MCP sales under their transport', async () => {
    const payment = payloadOf(await signFor(world, SUMMARIZE));
    await callTool(world.url, 'summarize', { text: TEXT }, { 'x402/payment': payment });
    expect(
      await sample('coinslot_answers_total{operation="summarize",transport="mcp",status="200"}'),
    ).to.equal(1);
  });

  it('continues the trace of a caller through claim, work and settle, and passes it on', async function () {
    this.timeout(30_000);
    provider.register();
    let passedOn: unknown;
    world.facilitator.intervene(async ({ path, headers, forward, respond }) => {
      if (path.endsWith('/settle')) passedOn = headers['traceparent'];
      const answer = await forward();
      respond(answer.status, answer.body);
    });
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const answer = await buy({ traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    world.facilitator.intervene(undefined);
    expect(answer.status).to.equal(200);
    const spans = exporter.getFinishedSpans().filter(span => span.spanContext().traceId === traceId);
    const named = (name: string): ReadableSpan =>
      spans.find(span => span.name === name) ??
      expect.fail(`no span ${name}: ${spans.map(s => s.name).join()}`);
    const call = named('summarize');
    for (const step of ['claim', 'work', 'settle'])
      expect(named(step).parentSpanContext?.spanId, step).to.equal(call.spanContext().spanId);
    expect(String(passedOn)).to.match(new RegExp(`^00-${traceId}-[\\da-f]{16}-01$`));
    expect(JSON.stringify(spans.map(({ attributes }) => attributes))).to.not.contain(TEXT.slice(0, 20));
  });

  it('counts the errors of a facilitator that does not answer, names its circuit, and shows that the server is not ready', async function () {
    this.timeout(30_000);
    expect(await readiness(admin())).to.deep.equal({ status: 200, reasons: [] });
    world.facilitator.intervene(({ drop }) => drop());
    try {
      for (let n = 0; n < 4; n++)
        await post(world.url + SUMMARIZE, { text: `${TEXT} ${n}` }, await signFor(world, SUMMARIZE));
      await until(async () => (await readiness(admin())).status === 503);
      expect((await readiness(admin())).reasons).to.deep.equal(['no facilitator answers']);
      const samples = await scrape(admin());
      expect(samples.get('coinslot_ready')).to.equal(0);
      const { host } = new URL(world.facilitator.url);
      expect(samples.get(`coinslot_breaker_open{service="${host}/"}`)).to.equal(1);
      expect(
        [...samples].some(([name, value]) => /^coinslot_facilitator_errors_total/.test(name) && value > 0),
      ).to.equal(true);
    } finally {
      world.facilitator.intervene(undefined);
    }
  });
});

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}

async function until(done: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await done()); tries++) {
    if (tries > 100) throw new Error('it did not happen');
    await pause(100);
  }
}
