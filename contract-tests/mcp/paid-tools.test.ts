import { expect } from 'chai';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { connect } from 'node:net';
import { anotherText, callTool, mcp, paid, payloadOf, type ToolCall } from '../support/mcp-call.js';
import { refusedSettlement } from '../support/refused-settlement.js';
import { openWorld, post, receiptOf, signFor, TEXT, type World } from '../support/world.js';

type Json = Record<string, unknown>;
type Required = {
  x402Version: number;
  error?: string;
  resource: { url: string };
  accepts: Json[];
  extensions: { bazaar: { info: { input: Json } } };
};

const ARGUMENTS = { text: TEXT };

function textOf(result: ToolCall): string {
  return result.content[0]?.text ?? '';
}

function receiptIn(result: ToolCall): Json | undefined {
  return result._meta?.['x402/payment-response'] as Json | undefined;
}

describe('tools paid over MCP', () => {
  let world: World;
  let url: string;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
    url = world.url;
  });
  after(() => world.close());

  const sign = async (path = '/v1/summarize', version: 1 | 2 = 2) => {
    const headers = await signFor(world, path, version);
    return { headers, payload: payloadOf(headers) };
  };

  it('a call without payment returns the challenge in every place where clients look for it', async () => {
    const result = await callTool(url, 'summarize', ARGUMENTS);
    expect(result.isError).to.equal(true);
    const required = result.structuredContent as unknown as Required;
    expect(JSON.parse(textOf(result))).to.deep.equal(required);
    expect(result._meta?.['x402/error']).to.deep.equal(required);
    expect(required.x402Version).to.equal(2);
    expect(required.resource.url).to.equal('mcp://tool/summarize');
    expect(required.accepts[0]).to.include({ scheme: 'exact', amount: '10000' });
    const { input } = required.extensions.bazaar.info;
    expect(input).to.include({ type: 'mcp', toolName: 'summarize', transport: 'streamable-http' });
  });

  it('the arguments of a call without payment are not checked: invalid ones also get the challenge', async () => {
    const result = await callTool(url, 'summarize', { text: 7 });
    expect((result.structuredContent as unknown as Required).accepts).to.have.length(1);
  });

  it('a paid call returns the answer as structured content and text, with its receipt, for exactly the price', async () => {
    const before = await world.earned();
    const { payload } = await sign();
    const result = await callTool(url, 'summarize', anotherText(), paid(payload));
    expect(result).not.to.have.property('isError');
    expect(result.structuredContent).to.have.property('summary').that.includes('harbour bridge');
    expect(JSON.parse(textOf(result))).to.deep.equal(result.structuredContent);
    expect(receiptIn(result)).to.include({ success: true, amount: '10000' });
    expect(await world.earned()).to.equal(before + 10_000n);
  });

  for (const [name, metaOf] of [
    ['as base64', (_: Json, header: string) => paid(header)],
    ['under the key of another client package', (payment: Json) => ({ 'x402.payment': payment })],
    ['under both keys', (payment: Json, header: string) => ({ ...paid(payment), 'x402.payment': header })],
  ] as const)
    it(`a payment is accepted ${name}`, async () => {
      const { payload } = await sign();
      const header = Buffer.from(JSON.stringify(payload)).toString('base64');
      const result = await callTool(url, 'summarize', anotherText(), metaOf(payload, header));
      expect(receiptIn(result)).to.include({ success: true });
    });

  it('a v1 payment is accepted', async () => {
    const { payload } = await sign('/v1/summarize', 1);
    expect(payload.x402Version).to.equal(1);
    const result = await callTool(url, 'summarize', anotherText(), paid(payload));
    expect(receiptIn(result)).to.include({ success: true });
  });

  it('a payment that is refused at settlement gets the challenge and a receipt of the failure, and is not charged', async () => {
    const [{ payload }, before] = [await sign(), await world.earned()];
    world.facilitator.intervene(async ({ path, forward, respond }) => {
      if (path === '/settle')
        return respond(200, refusedSettlement('invalid_exact_svm_payload_no_transfer_instruction'));
      const { status, body } = await forward();
      respond(status, body);
    });
    const result = await callTool(url, 'summarize', anotherText(), paid(payload));
    world.facilitator.intervene(undefined);
    expect((result.structuredContent as unknown as Required).accepts).to.have.length(1);
    expect(receiptIn(result)).to.include({ success: false, transaction: '' });
    expect(await world.earned()).to.equal(before);
  });

  it('two different payments, or an unreadable one, are refused with the challenge', async () => {
    const [one, two] = [await sign(), await sign()];
    const both = await callTool(url, 'summarize', ARGUMENTS, {
      ...paid(one.payload),
      'x402.payment': two.payload,
    });
    const unreadable = await callTool(url, 'summarize', ARGUMENTS, paid({ x402Version: 2 }));
    for (const result of [both, unreadable]) {
      const required = result.structuredContent as unknown as Required;
      expect(required.accepts).to.have.length(1);
      expect(required.error).to.match(/two different payments|neither an x402 v2/);
    }
  });

  it('invalid arguments are a tool error that says what is wrong, and the payment stays unspent', async () => {
    const { payload } = await sign();
    const wrong = await callTool(url, 'summarize', { text: '' }, paid(payload));
    expect(wrong.isError).to.equal(true);
    expect(wrong.structuredContent).to.include({ status: 400 });
    expect(textOf(wrong)).to.match(/text.*You were not charged/);
    const right = await callTool(url, 'summarize', anotherText(), paid(payload));
    expect(receiptIn(right)).to.include({ success: true });
  });

  it('an answer bought over HTTP is fetched over MCP, and the other way round, with one transfer each', async () => {
    const before = await world.earned();
    const [first, second] = [await sign(), await sign()];
    const asked = [anotherText(), anotherText()] as const;
    const overMcp = await callTool(url, 'summarize', asked[0], paid(first.payload));
    const againOverHttp = await post(`${url}/v1/summarize`, asked[0], first.headers);
    expect(againOverHttp.json()).to.deep.equal(overMcp.structuredContent);
    expect(receiptOf(againOverHttp).transaction).to.equal(receiptIn(overMcp)?.transaction);
    const overHttp = await post(`${url}/v1/summarize`, asked[1], second.headers);
    const againOverMcp = await callTool(url, 'summarize', asked[1], paid(second.payload));
    expect(againOverMcp.structuredContent).to.deep.equal(overHttp.json());
    expect(receiptIn(againOverMcp)?.transaction).to.equal(receiptOf(overHttp).transaction);
    expect(await world.earned()).to.equal(before + 20_000n);
  });

  it('a payment for one call buys no other call over MCP', async () => {
    const { payload } = await sign();
    await callTool(url, 'summarize', anotherText(), paid(payload));
    const other = await callTool(url, 'summarize', anotherText(), paid(payload));
    const required = other.structuredContent as unknown as Required;
    expect(required.error).to.include('the same transaction was sent for another call');
  });

  it('200 copies of one payment, half over MCP, half over HTTP: one transfer, one answer', async function () {
    this.timeout(60_000);
    const before = await world.earned();
    const { headers, payload } = await sign();
    const asked = anotherText();
    const overMcp = async (): Promise<[unknown, unknown]> => {
      const result = await callTool(url, 'summarize', asked, paid(payload));
      return [result.structuredContent, receiptIn(result)?.transaction];
    };
    const overHttp = async (): Promise<[unknown, unknown]> => {
      const answer = await post(`${url}/v1/summarize`, asked, headers);
      return [answer.json(), receiptOf(answer).transaction];
    };
    const all = await Promise.all(
      Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? overMcp() : overHttp())),
    );
    expect(new Set(all.map(each => JSON.stringify(each))).size).to.equal(1);
    expect(all[0]?.[0]).to.have.property('summary');
    expect(await world.earned()).to.equal(before + 10_000n);
  });

  it('once the answer has been read to its end, a new payment is a new sale', async () => {
    const before = await world.earned();
    const asked = anotherText();
    for (const { payload } of [await sign(), await sign()])
      expect(receiptIn(await callTool(url, 'summarize', asked, paid(payload)))).to.include({ success: true });
    expect(await world.earned()).to.equal(before + 20_000n);
  });

  it('a caller that hangs up and signs a new payment is charged once', async () => {
    const before = await world.earned();
    const [first, second] = [await sign(), await sign()];
    const asked = anotherText();
    await sendAndHangUp(asked, first.payload);
    const result = await callTool(url, 'summarize', asked, paid(second.payload));
    expect(result.structuredContent).to.have.property('summary');
    const again = await post(`${url}/v1/summarize`, asked, second.headers);
    expect(again.json()).to.deep.equal(result.structuredContent);
    expect(await world.earned()).to.equal(before + 10_000n);
  });

  for (const [era, mode] of [
    ['2025-11-25', 'legacy'],
    ['2026-07-28', { pin: '2026-07-28' }],
  ] as const)
    it(`the official client buys in protocol revision ${era}`, async () => {
      const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
      await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
      expect((await client.listTools()).tools).to.have.length(7);
      const asked = { name: 'summarize', arguments: anotherText() };
      const unpaid = await client.callTool(asked);
      expect(unpaid.structuredContent).to.have.property('accepts');
      const { payload } = await sign();
      const sold = await client.callTool({ ...asked, _meta: paid(payload) });
      expect(sold.structuredContent).to.have.property('summary');
      expect(receiptIn(sold as unknown as ToolCall)).to.include({ success: true });
      await client.close();
    });

  const speak = async (text: string, meta: Json = {}): Promise<ToolCall> => {
    const { payload } = await sign('/v1/tts');
    return callTool(url, 'textToSpeech', { text }, { ...paid(payload), ...meta });
  };

  it('speech is a link, in one line of text and in structured content, without a content type that a host could reject', async function () {
    this.timeout(30_000);
    const result = await speak('One coin, one call.');
    const { url: link } = result._meta?.['coinslot/pick-up'] as Json;
    const bytes = await fetch(String(link)).then(async got => Buffer.from(await got.arrayBuffer()));
    expect(bytes.subarray(0, 4).toString()).to.equal('RIFF');
    expect(result.content.map(({ type }) => type)).to.deep.equal(['text']);
    expect(textOf(result)).to.include(`${String(link)} (textToSpeech.wav, ${bytes.length} bytes, audio/wav;`);
    expect(textOf(result)).not.to.include('\n');
    const { keptUntil, ...told } = result.structuredContent ?? {};
    expect(told).to.deep.include({
      url: link,
      name: 'textToSpeech.wav',
      size: bytes.length,
      mimeType: 'audio/wav',
    });
    expect(told['headers']).to.include({ 'X-TTS-Voice-Id': 'en_US-rms-medium' });
    expect(Date.parse(String(keptUntil)) - Date.now()).to.be.within(23 * 3_600_000, 24 * 3_600_000);
    expect(receiptIn(result)).to.include({ success: true, amount: '25000' });
  });

  it('speech is also a resource link for a client that names its protocol revision', async function () {
    this.timeout(30_000);
    const { payload } = await sign('/v1/tts');
    const mode = { pin: '2026-07-28' };
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    const asked = { name: 'textToSpeech', arguments: { text: 'Two coins, two calls.' } };
    const { content, structuredContent } = await client.callTool({ ...asked, _meta: paid(payload) });
    const { url: uri, name, mimeType, size } = structuredContent as Json;
    expect(content[1]).to.deep.equal({ type: 'resource_link', uri, name, mimeType, size });
    await client.close();
  });

  it('speech is audio content if the call asks for it', async function () {
    this.timeout(30_000);
    const result = await speak('Three coins, three calls.', { 'coinslot/inline': true });
    const [sound, note] = result.content;
    expect(sound).to.include({ type: 'audio', mimeType: 'audio/wav' });
    expect(
      Buffer.from(sound?.data ?? '', 'base64')
        .subarray(0, 4)
        .toString(),
    ).to.equal('RIFF');
    expect(note?.text).to.include('X-TTS-Voice-Id: en_US-rms-medium');
  });

  it('the tools are the operations of the contract, none with an output schema', async () => {
    const { message } = await mcp(url, 'tools/list');
    const tools = message.result?.tools as (Json & { name: string; description: string })[];
    expect(tools.map(({ name }) => name)).to.deep.equal([
      'summarize',
      'solTokenBrief',
      'solMintInfo',
      'brandFeedback',
      'textToSpeech',
      'listVoices',
      'pick_up',
    ]);
    expect(tools.every(tool => !('outputSchema' in tool))).to.equal(true);
    expect(tools[0]).to.deep.include({ title: 'Summarize a text in 1-3 sentences (0.01 USDC)' });
    expect(tools[0]?.description).to.include('0.01 USDC a call, charged only for an answer');
    expect(tools[3]?.description).to.include('0.50 USDC a call, paid before the work');
  });

  it('a free tool answers without a challenge, and an unknown tool is a protocol error', async () => {
    const voices = await callTool(url, 'listVoices', {});
    expect(voices.structuredContent).to.have.property('default', 'en_US-rms-medium');
    const { message } = await mcp(url, 'tools/call', { name: 'getHealth', arguments: {} });
    expect(message.error).to.include({ code: -32_602 });
  });

  it('the instructions say how to pay', async () => {
    const { message } = await mcp(url, 'initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    });
    expect(message.result?.instructions).to.include('_meta["x402/payment"]');
  });

  it('web pages that reach the server under a foreign host name are refused', async () => {
    // fetch can't send a Host header of the caller's choice.
    expect(await statusFor('evil.example')).to.equal(403);
    for (const origin of ['https://evil.example', 'null'])
      expect(
        (await fetch(`${url}/mcp`, { method: 'POST', headers: { origin }, body: '{}' })).status,
      ).to.equal(403);
    expect(await statusFor('localhost:1234')).to.equal(200);
    expect((await mcp(url, 'ping', {}, { origin: 'http://localhost:6274' })).status).to.equal(200);
  });

  it('batches, bodies that are not JSON, and bodies over the limit are refused', async () => {
    const send = (body: string, type = 'application/json'): Promise<number> =>
      fetch(`${url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': type, accept: 'application/json, text/event-stream' },
        body,
      }).then(answer => answer.status);
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    expect(await send(`[${ping},${ping}]`)).to.equal(400);
    expect(await send('{')).to.equal(400);
    expect(await send(ping, 'text/plain')).to.equal(400);
    expect(await send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x'.repeat(3_000_000) }))).to.equal(
      400,
    );
    expect((await fetch(`${url}/mcp`)).status).to.equal(405);
    expect((await fetch(`${url}/mcp`, { method: 'DELETE' })).status).to.equal(405);
  });

  async function sendAndHangUp(args: Json, payment: Json): Promise<void> {
    const params = { name: 'summarize', arguments: args, _meta: paid(payment) };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    const head =
      `POST /mcp HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\n` +
      `Accept: application/json, text/event-stream\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
    await new Promise<void>(sent => socket.write(head + body, () => sent()));
    socket.destroy();
  }

  async function statusFor(host: string): Promise<number> {
    const { request } = await import('node:http');
    return new Promise((resolve, reject) => {
      const sent = request(`${url}/mcp`, {
        method: 'POST',
        headers: {
          host,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
      });
      sent.on('response', answer => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      });
      sent.on('error', reject);
      sent.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }));
    });
  }
});
