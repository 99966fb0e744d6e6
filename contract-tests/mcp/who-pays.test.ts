import { expect } from 'chai';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { anotherText, mcp, paid, payloadOf, type ToolCall } from '../support/mcp-call.js';
import { openWorld, signFor, TEXT, type World } from '../support/world.js';

type Json = Record<string, unknown>;

const NAMESPACE = 'io.modelcontextprotocol';
const EXTENSION = 'org.x402/payment';

/** The metadata that each MCP 2026-07-28 request carries. */
const currentMeta = (extensions: Json): Json => ({
  [`${NAMESPACE}/protocolVersion`]: '2026-07-28',
  [`${NAMESPACE}/clientInfo`]: { name: 'test', version: '1' },
  [`${NAMESPACE}/clientCapabilities`]: { extensions },
});
const headersOf = (method: string, name?: string): Record<string, string> => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(name === undefined ? {} : { 'mcp-name': name }),
});

describe('payments over MCP', () => {
  let world: World;
  let url: string;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
    url = world.url;
  });
  after(() => world.close());

  const receiptIn = (result: Json): Json | undefined =>
    (result['_meta'] as Json | undefined)?.['x402/payment-response'] as Json | undefined;
  const sign = async (version: 1 | 2 = 2): Promise<Record<string, string>> =>
    signFor(world, '/v1/summarize', version);
  const summarize = async (
    asked: Json,
    headers: Record<string, string> = {},
    meta: Json = {},
  ): Promise<Json> => {
    const params = { name: 'summarize', arguments: asked, _meta: meta };
    const { message } = await mcp(url, 'tools/call', params, headers);
    return message.result ?? {};
  };

  it('an x402 v1 client gets its challenge from a URL with x402Version=1, which the hint in other challenges names', async () => {
    const post = async (query: string): Promise<Json> => {
      const params = { name: 'summarize', arguments: { text: TEXT } };
      const answer = await fetch(`${url}/mcp${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      });
      const text = await answer.text();
      const { result } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text) as { result: ToolCall };
      expect(result._meta?.['x402/error']).to.deep.equal(result.structuredContent);
      return result.structuredContent ?? {};
    };
    const first = await post('?x402Version=1');
    expect(first).to.include({ x402Version: 1 }).and.not.to.have.any.keys('resource', 'extensions');
    expect((first['accepts'] as Json[])[0]).to.include({
      network: 'solana-devnet',
      maxAmountRequired: '10000',
      resource: 'mcp://tool/summarize',
    });
    const second = await post('');
    expect(second).to.include({ x402Version: 2 });
    expect(second['error']).to.match(
      /_meta\["x402\/payment"\].*\?x402Version=1 to the URL of this MCP server/,
    );
  });

  for (const [header, version] of [
    ['PAYMENT-SIGNATURE', 2],
    ['X-PAYMENT', 1],
  ] as const)
    it(`a payment in the header ${header} of the request pays for the one call in it`, async () => {
      const before = await world.earned();
      const headers = await sign(version);
      expect(Object.keys(headers)).to.include(header);
      const asked = anotherText();
      const { message } = await mcp(url, 'tools/list', {}, headers);
      expect(message.result).to.have.property('tools');
      const sold = await summarize(asked, headers);
      expect(receiptIn(sold)).to.include({ success: true, amount: '10000' });
      const again = await summarize(asked, {}, paid(payloadOf(headers)));
      expect(again['structuredContent']).to.deep.equal(sold['structuredContent']);
      expect(await world.earned()).to.equal(before + 10_000n);
    });

  it('the same payment in header and metadata counts once, and two different payments are refused, unspent', async () => {
    const before = await world.earned();
    const [one, two] = [await sign(), await sign()];
    const asked = anotherText();
    const refused = await summarize(asked, one, paid(payloadOf(two)));
    expect((refused['structuredContent'] as Json)['error']).to.equal(
      'the call carries two different payments: send one',
    );
    expect(await world.earned()).to.equal(before);
    expect(receiptIn(await summarize(asked, one, paid(payloadOf(one))))).to.include({ success: true });
    expect(await world.earned()).to.equal(before + 10_000n);
  });

  it('a client that supports the payment extension gets the price as a payment_required result, and buys', async () => {
    const meta = currentMeta({ [EXTENSION]: {} });
    const headers = headersOf('tools/call', 'summarize');
    const asked = anotherText();
    const unpaid = await summarize(asked, headers, meta);
    expect(unpaid).to.include({ resultType: 'payment_required' }).and.not.to.have.property('isError');
    expect(unpaid['paymentRequired']).to.include({ x402Version: 2 });
    const { payload } = { payload: payloadOf(await sign()) };
    const sold = await summarize(asked, headers, { ...meta, ...paid(payload) });
    expect(sold).to.include({ resultType: 'complete' });
    expect(receiptIn(sold)).to.include({ success: true });
    const used = await summarize(anotherText(), headers, { ...meta, ...paid(payload) });
    expect((used['paymentRequired'] as Json)['error']).to.include(
      'the same transaction was sent for another',
    );
    const { message } = await mcp(url, 'server/discover', { _meta: meta }, headersOf('server/discover'));
    const { extensions } = message.result?.['capabilities'] as { extensions: Json };
    expect(extensions).to.have.property(EXTENSION);
  });

  it('all other clients get the price as a tool result, including those that name the extension in an earlier revision', async () => {
    const whole = currentMeta({ [EXTENSION]: {} });
    const earlier = Object.fromEntries(
      Object.entries(whole).filter(([key]) => !key.endsWith('protocolVersion')),
    );
    for (const [headers, meta] of [
      [headersOf('tools/call', 'summarize'), currentMeta({})],
      [{}, earlier],
    ] as const) {
      const unpaid = await summarize(anotherText(), headers, meta);
      expect(unpaid).to.include({ isError: true });
      expect(unpaid['structuredContent']).to.have.property('accepts');
    }
  });

  it('the official MCP 2026-07-28 client lists the tools and reads the price', async () => {
    const mode = { pin: '2026-07-28' };
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).to.include('summarize');
    expect((await client.callTool({ name: 'summarize', arguments: {} })).isError).to.equal(true);
    await client.close();
  });
});

describe('what a model reads over MCP', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });
  after(() => world.close());

  it('descriptions are short, and name tools where the contract names URLs', async () => {
    const { message } = await mcp(world.url, 'tools/list');
    const tools = message.result?.['tools'] as { name: string; description: string; inputSchema: Json }[];
    for (const { name, description, inputSchema } of tools) {
      expect(description.length, name).to.be.within(10, 600);
      expect(description + JSON.stringify(inputSchema), name).not.to.match(/\b(GET|POST) \//);
      expect(description, 'how to pay is said once').not.to.include('PaymentRequired');
    }
    const speech = tools.find(({ name }) => name === 'textToSpeech');
    expect(JSON.stringify(speech?.inputSchema)).to.include('listVoices lists the valid ones');
    expect(speech?.description).to.match(/\. Price: 0\.025 USDC a call, charged only for an answer/);
  });

  it('a price comes first, followed by one sentence with the command that installs a wallet', async () => {
    const { message } = await mcp(world.url, 'tools/call', { name: 'summarize', arguments: {} });
    const { content } = message.result as unknown as ToolCall;
    expect(JSON.parse(content[0]?.text ?? '')).to.have.property('accepts');
    expect(content[1]?.text).to.equal(
      `summarize costs 0.01 USDC and was not paid. A host without a wallet gets one with: coinslot mcp --url ${world.url} --keypair payer.json`,
    );
  });
});
