import { expect } from 'chai';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readCatalogue } from '../../../src/cli/conformance/catalogue.js';
import { Findings, type Finding } from '../../../src/cli/conformance/findings.js';
import { checkShop } from '../../../src/cli/conformance/check-shop.js';
import { checkMcp, findMcp } from '../../../src/cli/conformance/mcp-checks.js';
import { mcpCheck } from '../../../src/checks/mcp-check.js';
import { openWorld, type World } from '../../support/world.js';

type Json = Record<string, unknown>;
type Tool = Json & { name: string };

/** What a proxy in front of the shop does to its MCP server. */
type Bend = {
  refuse?: string;
  tools?: (tools: Tool[]) => Tool[];
  priced?: (result: Json) => Json;
  session?: string;
  buffer?: true;
};

describe('The conformance report on the MCP server of a shop', function () {
  this.timeout(60_000);
  let world: World;
  let front: Server;
  let url: string;
  let bend: Bend;
  before(async () => {
    world = await openWorld();
    front = createServer((request, response) => void pass(request, response).catch(() => response.destroy()));
    await new Promise<void>(resolve => front.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  });
  after(async () => {
    front.closeAllConnections();
    front.close();
    await world.close();
  });

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = 'GET', url: path = '/' } = request;
    if (path === '/mcp' && bend.refuse !== undefined)
      return void response
        .writeHead(403, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_000, message: bend.refuse } }));
    const headers = Object.entries(request.headers).filter(([name]) =>
      /^(accept|content-type|mcp-)/.test(name),
    );
    const body = method === 'POST' ? Buffer.concat(chunks) : null;
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const answer = await fetch(world.url + path, {
      method,
      headers: headers.map(([name, value]): [string, string] => [name, String(value)]),
      body,
      signal: gone.signal,
    });
    const asked = path === '/mcp' ? (JSON.parse(String(body)) as { method: string }).method : '';
    const streamed = asked === 'ping' && !bend.buffer;
    const more =
      asked === 'initialize' && bend.session !== undefined ? { 'mcp-session-id': bend.session } : {};
    const kept = Object.fromEntries(
      [...answer.headers].filter(([name]) => !/^content-(length|encoding)$/.test(name)),
    );
    if (streamed) {
      response.writeHead(answer.status, { ...kept, ...more });
      for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) response.write(chunk);
      return void response.end();
    }
    const text = await answer.text();
    response.writeHead(answer.status, { ...kept, ...more }).end(bent(asked, text));
  }

  function bent(asked: string, text: string): string {
    const change =
      asked === 'tools/list' && bend.tools
        ? (result: Json) => ({ ...result, tools: bend.tools?.(result['tools'] as Tool[]) })
        : asked === 'tools/call'
          ? bend.priced
          : undefined;
    if (!change) return text;
    const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
    const message = JSON.parse(data) as { result: Json };
    return text.replace(data, () => JSON.stringify({ ...message, result: change(message.result) }));
  }

  async function findingsWith(bending: Bend): Promise<Finding[]> {
    bend = bending;
    const findings = new Findings();
    const catalogue = await readCatalogue(url);
    const mcp = await findMcp(catalogue, url);
    if (mcp) await checkMcp(catalogue, mcp, findings);
    return findings.all;
  }
  const brokenWith = async (bending: Bend): Promise<string[]> =>
    (await findingsWith(bending)).flatMap(({ promise, fault }) =>
      fault === undefined ? [] : [`${promise}: ${fault}`],
    );

  it('finds no error in our own MCP server', async () => {
    const all = await findingsWith({});
    expect(all.filter(({ fault }) => fault !== undefined)).to.deep.equal([]);
    expect(all.map(({ promise }) => promise)).to.include.members([
      `MCP at ${url}/mcp accepts a client`,
      'MCP: each paid operation is a tool',
      'MCP: progress gets through while a call is running',
    ]);
    expect(all).to.have.length(15);
  });

  it('finds no error in an MCP server that sells over MCP only', async () => {
    bend = {};
    const all = await checkShop(`${url}/mcp`);
    expect(all.filter(({ fault }) => fault !== undefined)).to.deep.equal([]);
    expect(all.map(({ promise }) => promise)).to.include.members([
      'MCP: a model sees which tools cost money',
      'MCP: summarize without payment returns its challenge in every place where clients look for it',
    ]);
  });

  it("reports if a model can't see which tools cost money", async () => {
    bend = { tools: tools => tools.map(tool => ({ ...tool, description: 'Does something.' })) };
    const found = (await checkShop(`${url}/mcp`)).filter(({ fault }) => fault !== undefined);
    expect(found).to.have.length(1);
    expect(found[0]).to.include({ promise: 'MCP: a model sees which tools cost money', advice: true });
  });

  const faults: [string, Bend, RegExp][] = [
    [
      'rejects the host that its proxy names',
      { refuse: 'The Host header names upstream, which is not this server' },
      /accepts a client: status 403: The Host header names upstream/,
    ],
    [
      'lacks a paid operation',
      { tools: tools => tools.filter(({ name }) => name !== 'summarize') },
      /each paid operation is a tool: there is no tool for summarize/,
    ],
    [
      'has an output schema on a paid tool',
      {
        tools: tools =>
          tools.map(tool =>
            tool.name === 'textToSpeech' ? { ...tool, outputSchema: { type: 'object' } } : tool,
          ),
      },
      /textToSpeech has no output schema.*: official clients throw/,
    ],
    [
      'charges another price than over HTTP',
      {
        priced: result => {
          const structured = result['structuredContent'] as { accepts: Json[] };
          return {
            ...result,
            structuredContent: {
              ...structured,
              accepts: structured.accepts.map(each => ({ ...each, amount: '7' })),
            },
          };
        },
      },
      /summarize without payment.*: it asks for 7, but over HTTP the price is 10000/,
    ],
    [
      'returns the price as if that were the answer',
      { priced: ({ isError: _, ...result }) => result },
      /summarize without payment.*: isError is not true/,
    ],
    [
      'has the price in one place only',
      { priced: result => ({ ...result, content: [{ type: 'text', text: 'pay me' }] }) },
      /content\[0\]\.text is not the challenge as JSON/,
    ],
    [
      'is buffered',
      { buffer: true },
      /progress gets through.*: progress arrives only with the answer: a proxy in front buffers it/,
    ],
    ['gives sessions out', { session: 'one' }, /a call needs no session.*: it uses sessions/],
  ];
  for (const [what, bending, fault] of faults)
    it(`finds a server that ${what}`, async () => {
      const broken = await brokenWith(bending);
      expect(broken.join('\n')).to.match(fault);
      const kinds = new Set(
        broken.map(each =>
          each.replace(/\b(summarize|solTokenBrief|solMintInfo|brandFeedback|textToSpeech)\b|\d+/g, ''),
        ),
      );
      if (bending.refuse === undefined) expect(kinds.size, broken.join('\n')).to.equal(1);
    });

  it('has a counterpart in npm run check, which warns of a server that refuses its callers and ignores one that is down', async () => {
    const NEVER = new AbortController().signal;
    bend = {};
    expect(await mcpCheck(url).look(NEVER)).to.deep.equal([
      { level: 'ok', subject: 'MCP', found: `${url}/mcp accepts clients` },
    ]);
    bend = { refuse: 'The Host header names upstream, which is not this server' };
    const [warning] = await mcpCheck(url).look(NEVER);
    expect(warning).to.include({ level: 'warning', subject: 'MCP' });
    expect(warning?.found).to.match(/answers 403: The Host header names upstream/);
    expect(await mcpCheck('http://127.0.0.1:9').look(NEVER)).to.deep.equal([]);
  });
});
