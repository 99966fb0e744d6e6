import type { Json } from '../../contract/json.js';
import { withAbortAfter } from '../../net/deadline.js';
import { INITIALIZE, MCP_HEADERS, mcpMessagesIn, type McpMessage } from '../../net/mcp-message.js';
import { toAtomic } from '../../price/amount.js';
import type { Catalogue, Sold } from './catalogue.js';
import { Broken, must, type Findings } from './findings.js';
import { call, isObject, textOf, withoutSlash, type Reply } from './http-call.js';

type Tool = Json & { name: string };

const TIMEOUT_MS = 20_000;
/** How long to wait for the answer to a ping that asks for progress. */
const STREAM_MS = 5_000;
const MAX_TOOLS = 200;
const MAX_PAGES = 20;
const NEVER = new AbortController().signal;

/**
 * Checks the MCP server of a shop, if the shop names one or is itself one. Only paid tools are called, without a payment: a free tool might
 * have side effects.
 */
export async function checkMcp(
  catalogue: Catalogue,
  { endpoint, isAlone }: McpPlace,
  findings: Findings,
): Promise<void> {
  const server = new McpServer(endpoint);
  let tools: Tool[] | undefined;
  await findings.must(`MCP at ${endpoint} accepts a client`, () => server.greet());
  await findings.must(
    'MCP: its tools are listed, each with a description and the schema of its arguments',
    async () => {
      tools = await server.tools();
      for (const tool of tools) checkTool(tool);
    },
  );
  if (!tools) return;
  const priced = pricedIn(catalogue.sold, tools);
  if (isAlone)
    await findings.should('MCP: a model sees which tools cost money', () =>
      must(priced.size > 0, 'no description names a price, USDC or x402: no tool was called'),
    );
  else await findings.must('MCP: each paid operation is a tool', () => allAreTools(catalogue.sold, priced));
  for (const [tool, operation] of priced) await checkPriced(server, tool, operation, findings);
  await findings.should('MCP: a call needs no session, so any server of the shop can answer it', () =>
    must(
      server.session === undefined,
      'it uses sessions (Mcp-Session-Id), so all calls of a client must go to the same server',
    ),
  );
  await checkStream(endpoint, findings);
}

/** The path of the MCP endpoint that a shop names, on the shop's own host: prices over MCP are compared with that host's over HTTP. */
async function endpointOf({ base, index }: Catalogue): Promise<string | undefined> {
  const { origin } = new URL(base);
  const reply = await call(`${base}/.well-known/mcp/server.json`).catch(() => undefined);
  const entry = reply?.status === 200 ? objectIn(reply) : {};
  const remotes = Array.isArray(entry['remotes']) ? entry['remotes'].filter(isObject) : [];
  const remote = remotes.find(({ type }) => type === 'streamable-http')?.['url'];
  const found = [remote, index?.['mcp']].find(
    (each): each is string => typeof each === 'string' && URL.canParse(each, base),
  );
  if (found === undefined) return undefined;
  const { pathname, search } = new URL(found, `${base}/`);
  return origin + pathname + search;
}

/** `isAlone`: nothing is described over HTTP, so only the tools say what is sold. */
type McpPlace = { endpoint: string; isAlone: boolean };

/** The MCP endpoint: the one that the shop names, or the address itself if it describes nothing over HTTP. */
export async function findMcp(catalogue: Catalogue, url: string): Promise<McpPlace | undefined> {
  const named = await endpointOf(catalogue);
  if (named !== undefined) return { endpoint: named, isAlone: false };
  const { sold, document, discovery, index } = catalogue;
  if (sold.length > 0 || document || discovery || index) return undefined;
  const endpoint = withoutSlash(url);
  const reply = await send(endpoint, INITIALIZE).catch(() => undefined);
  return reply && messagesOf(reply).length > 0 ? { endpoint, isAlone: true } : undefined;
}

class McpServer {
  session: string | undefined;
  readonly #endpoint: string;
  #version = INITIALIZE.params.protocolVersion;
  #id = 1;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  async greet(): Promise<void> {
    const reply = await send(this.#endpoint, INITIALIZE);
    const { protocolVersion, capabilities, serverInfo } = resultOf(reply);
    must(typeof protocolVersion === 'string', 'its answer has no protocolVersion');
    must(isObject(serverInfo) && serverInfo['name'], 'its answer has no serverInfo with a name');
    must(isObject(capabilities) && isObject(capabilities['tools']), 'it has no capability `tools`');
    this.#version = protocolVersion;
    this.session = reply.headers.get('mcp-session-id') ?? undefined;
    if (this.session === undefined) return;
    await send(this.#endpoint, { jsonrpc: '2.0', method: 'notifications/initialized' }, this.#headers());
  }

  async tools(): Promise<Tool[]> {
    const tools: Tool[] = [];
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES && tools.length < MAX_TOOLS; page++) {
      const result = await this.ask('tools/list', cursor === undefined ? {} : { cursor });
      must(Array.isArray(result['tools']), 'its answer has no `tools` list');
      for (const tool of result['tools'] as unknown[]) {
        must(isObject(tool) && typeof tool['name'] === 'string' && tool['name'], 'a tool has no name');
        tools.push(tool as Tool);
      }
      cursor = result['nextCursor'];
      if (cursor === undefined) break;
    }
    return tools;
  }

  async ask(method: string, params: Json): Promise<Json> {
    this.#id += 1;
    return resultOf(
      await send(this.#endpoint, { jsonrpc: '2.0', id: this.#id, method, params }, this.#headers()),
    );
  }

  #headers(): Record<string, string> {
    return {
      'mcp-protocol-version': this.#version,
      ...(this.session === undefined ? {} : { 'mcp-session-id': this.session }),
    };
  }
}

function send(url: string, message: object, headers: Record<string, string> = {}): Promise<Reply> {
  const init = { method: 'POST', headers: { ...MCP_HEADERS, ...headers }, body: JSON.stringify(message) };
  return call(url, init, TIMEOUT_MS);
}

function messagesOf({ headers, body }: Reply): McpMessage[] {
  return mcpMessagesIn(headers.get('content-type'), body.toString('utf8')).filter(
    each => each.result !== undefined || each.error !== undefined,
  );
}

/** @throws Broken, with the server's message */
function resultOf(reply: Reply): Json {
  const [message] = messagesOf(reply);
  const said = message?.error?.message ?? reply.body.subarray(0, 200).toString('utf8').replace(/\s+/g, ' ');
  if (!isObject(message?.result)) throw new Broken(`status ${reply.status}: ${said.slice(0, 300)}`);
  return message.result;
}

function objectIn({ body }: Reply): Json {
  try {
    const value = JSON.parse(body.toString('utf8')) as unknown;
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function checkTool({ name, description, inputSchema }: Tool): void {
  must(typeof description === 'string' && description, `${name} has no description`);
  must(
    isObject(inputSchema) && inputSchema['type'] === 'object',
    `the inputSchema of ${name} is not the schema of an object`,
  );
}

/** The paid tools: those named after a paid operation or, if nothing is sold over HTTP, those whose description says so. */
function pricedIn(sold: Sold[], tools: Tool[]): Map<Tool, Sold | undefined> {
  if (sold.length === 0)
    return new Map(tools.filter(saysThatItCosts).map((tool): [Tool, undefined] => [tool, undefined]));
  const pairs = tools.map((tool): [Tool, Sold | undefined] => [
    tool,
    sold.find(({ described }) => described?.['operationId'] === tool.name),
  ]);
  return new Map(pairs.filter(([, operation]) => operation));
}

function saysThatItCosts({ description }: Tool): boolean {
  return (
    /\b(paid|costs?|price|payment|USDC|x402)\b|\$\d/i.test(textOf(description)) &&
    !/\bfree\b/i.test(textOf(description))
  );
}

/** @throws Broken unless all operations that can be tools are listed, or none are, because a shop may sell other things over MCP */
function allAreTools(sold: Sold[], priced: Map<Tool, Sold | undefined>): void {
  const there = new Set([...priced.values()]);
  if (there.size === 0) return;
  const missing = sold.filter(each => each.described?.['operationId'] !== undefined && !there.has(each));
  must(
    missing.length === 0,
    `there is no tool for ${missing.map(({ described }) => textOf(described?.['operationId'])).join(', ')}`,
  );
}

async function checkPriced(
  server: McpServer,
  tool: Tool,
  operation: Sold | undefined,
  findings: Findings,
): Promise<void> {
  const { name } = tool;
  await findings.must(
    `MCP: ${name} without payment returns its challenge in every place where clients look for it`,
    async () => {
      const args = isObject(operation?.body) ? operation.body : {};
      const result = await server.ask('tools/call', { name, arguments: args });
      const challenge = challengeIn(result);
      must(challenge.length > 0, 'it has no payment options');
      if (operation?.amount === undefined) return;
      const amounts = challenge.map(({ amount, maxAmountRequired }) => textOf(amount ?? maxAmountRequired));
      const price = toAtomic(operation.amount).toString();
      must(amounts.includes(price), `it asks for ${amounts.join(', ')}, but over HTTP the price is ${price}`);
    },
  );
  await findings.must(
    `MCP: ${name} has no output schema, because clients would validate its challenge against that schema`,
    () => must(tool['outputSchema'] === undefined, 'official clients throw instead of paying'),
  );
}

/** The payment options in the result of an unpaid call. @throws Broken */
function challengeIn({ isError, structuredContent, content }: Json): Json[] {
  must(
    isError === true,
    'isError is not true: it answers without a payment, or gives the price as if that were the answer',
  );
  must(
    isObject(structuredContent) && Array.isArray(structuredContent['accepts']),
    'structuredContent is not a PaymentRequired object',
  );
  const [first] = Array.isArray(content) ? (content as unknown[]) : [];
  const text = isObject(first) && typeof first['text'] === 'string' ? first['text'] : '';
  let same: unknown;
  try {
    same = JSON.parse(text);
  } catch {
    throw new Broken('content[0].text is not the challenge as JSON');
  }
  must(isObject(same) && Array.isArray(same['accepts']), 'content[0].text is not the same challenge');
  return structuredContent['accepts'].filter(isObject);
}

/**
 * Progress must arrive while a call is running. A ping that asks for progress shows whether it does, if the server supports such pings:
 * the first bytes must not be the whole answer.
 */
async function checkStream(endpoint: string, findings: Findings): Promise<void> {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: { progressToken: 'progress' } } };
  const told = await withAbortAfter(STREAM_MS, NEVER, async signal => {
    const init = { method: 'POST', headers: MCP_HEADERS, body: JSON.stringify(ping), signal };
    const reply = await fetch(endpoint, { ...init, redirect: 'manual' });
    const parts: string[] = [];
    for await (const chunk of (reply.body ?? []) as AsyncIterable<Uint8Array>)
      parts.push(Buffer.from(chunk).toString('utf8'));
    return parts;
  }).catch(() => []);
  if (!told.join('').includes('notifications/progress')) return;
  await findings.must('MCP: progress gets through while a call is running', () =>
    must(
      !told[0]?.includes('"result"'),
      'progress arrives only with the answer: a proxy in front buffers it, so hosts end long calls',
    ),
  );
}
