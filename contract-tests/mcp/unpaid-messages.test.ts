import { expect } from 'chai';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { createProtocol } from '../../src/mcp/protocol.js';
import { withoutRepeats } from '../../src/observe/repeats.js';
import { until } from '../support/faults.js';
import { RELEASED } from '../support/sold.js';
import { mcp } from '../support/mcp-call.js';
import { call, openWorld, type Answer, type World } from '../support/world.js';

const NOT_READ =
  'Too many calls from your address were not paid or were refused. This message was not read and costs nothing: ' +
  'send the same message again later, with the same payment.';

describe('MCP messages without a payment', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    // Behind a proxy, callers from loopback are limited, too.
    world = await openWorld({ TRUST_PROXY: '1' });
  });
  after(() => world.close());

  const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });
  const garbage = (address: string): Promise<Answer> =>
    call(`${world.url}/mcp`, { method: 'POST', headers: from(address), body: 'x'.repeat(1_000) });

  it('are limited by address before they are read: each counts like an unpaid call, and an invalid one like a refused call', async () => {
    const answers = await Promise.all(Array.from({ length: 400 }, () => garbage('203.0.113.7')));
    const turnedAway = answers.filter(({ status }) => status === 503);
    expect(answers.filter(({ status }) => status === 400).length).to.equal(400 - turnedAway.length);
    expect(turnedAway.length).to.be.greaterThan(100);
    for (const { headers, json } of turnedAway) {
      expect(Number(headers.get('retry-after'))).to.be.greaterThan(0);
      expect(json().error).to.deep.equal({ code: -32_000, message: NOT_READ });
    }
    // Sends the message among others, because on a busy machine a single one could be within the limit again.
    const turnedAwayAmidOthers = async (method: string): Promise<boolean> => {
      const others = Array.from({ length: 200 }, () => garbage('203.0.113.7'));
      const [{ status }] = await Promise.all([mcp(world.url, method, {}, from('203.0.113.7')), ...others]);
      return status === 503;
    };
    for (const method of ['tools/list', 'initialize', 'no such method'])
      await until(`${method} is turned away`, () => turnedAwayAmidOthers(method));
    expect((await mcp(world.url, 'tools/list', {}, from('203.0.113.8'))).status).to.equal(200);
  });
});

it('MCP requests with a method that MCP does not have, TRACE included, get a 405 that lists the valid ones', async function () {
  this.timeout(60_000);
  const world = await openWorld();
  try {
    for (const method of ['TRACE', 'GET', 'DELETE', 'PUT', 'HEAD']) {
      const asked = request(`${world.url}/mcp`, { method, agent: false }).end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      answer.resume();
      expect([answer.statusCode, answer.headers.allow], method).to.deep.equal([405, 'POST, OPTIONS']);
    }
  } finally {
    await world.close();
  }
});

it('MCP messages from strangers are logged at debug level, shortened, and only once for each kind of message', async () => {
  const lines: { level: string; text: string }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, text: JSON.stringify(fields) + message });
  const written = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const log = withoutRepeats(written);
  const offers = { methods: { all: [] } };
  const parts = { contract: RELEASED, offers, log, siteUrl: 'https://shop.example' };
  const protocol = createProtocol(parts as unknown as Parameters<typeof createProtocol>[0], () => undefined);
  for (let times = 0; times < 20; times++) {
    const text = `${times} ${'strange '.repeat(2_000)}`;
    for (const message of [{ [text]: text }, { jsonrpc: '2.0', id: text, method: text, params: text }]) {
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
      const asked = new Request('http://localhost/mcp', { method: 'POST', headers });
      await (await protocol.fetch(asked, { parsedBody: message })).arrayBuffer();
    }
  }
  log.flush();
  await protocol.close();
  expect(lines.length).to.be.within(1, 4);
  expect(new Set(lines.map(({ level }) => level))).to.deep.equal(new Set(['debug']));
  for (const { text } of lines) expect(text.length).to.be.lessThan(500);
});
