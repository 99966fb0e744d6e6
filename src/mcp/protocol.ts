import {
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type McpHttpHandler,
} from '@modelcontextprotocol/server';
import { objectOf } from '../contract/references.js';
import type { OwnHosts } from './allowed-hosts.js';
import { callTool, readAnswer, type CallToolParts } from './call-tool.js';
import type { Exchange } from './mcp-exchange.js';
import type { Notify } from './progress.js';
import { instructionsFor, toolsOf } from './tools.js';

/** Streams that announce changes of the tools, of which there are none while a server runs. */
const MAX_SUBSCRIPTIONS = 64;
/** Characters of a message about a refused request. */
const MAX_LOGGED = 200;

/** The protocol itself, by the official library. `exchangeOf`: the HTTP exchange of a request that was handed to it. */
export function createProtocol(
  parts: CallToolParts & OwnHosts,
  exchangeOf: (request: Request) => Exchange | undefined,
): McpHttpHandler {
  return createMcpHandler(serverFactory(parts, exchangeOf), {
    // What the message says may be the caller's text: the kind of the error is what repeats.
    onerror: ({ name: error, message }) =>
      parts.log.debug?.({ error, said: message.slice(0, MAX_LOGGED) }, 'MCP request refused'),
    maxSubscriptions: MAX_SUBSCRIPTIONS,
  });
}

/** A new protocol server for each request, since it keeps what it negotiates. */
function serverFactory(
  parts: CallToolParts & OwnHosts,
  exchangeOf: (request: Request) => Exchange | undefined,
): () => Server {
  const { contract, offers, siteUrl } = parts;
  const { title, version } = objectOf(contract.document.info);
  const info = { name: 'coinslot', title: String(title), version: String(version), websiteUrl: siteUrl };
  const options = {
    capabilities: { tools: {}, resources: {} },
    instructions: instructionsFor(contract),
    // The default would build a validator for each request. Only answers of users are validated, and none is asked.
    jsonSchemaValidator: { getValidator: () => () => ({ valid: false, errorMessage: 'not used' }) as never },
  };
  const tools = toolsOf(contract, offers.methods);
  return () => {
    const server = new Server(info, options);
    server.setRequestHandler('tools/list', () => ({ tools }));
    server.setRequestHandler('tools/call', async ({ params }, { http, mcpReq }) => {
      const exchange = http?.req && exchangeOf(http.req);
      if (!exchange) throw new Error('a tool call without its HTTP request');
      const { progressToken } = objectOf(objectOf(exchange.message.params)._meta);
      const notify: Notify | undefined = isToken(progressToken)
        ? progress =>
            mcpReq.notify({ method: 'notifications/progress', params: { ...progress, progressToken } })
        : undefined;
      const result = await callTool(parts, exchange, notify);
      if (!result)
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          `Unknown tool ${params.name.slice(0, 100)}: tools/list names all tools.`,
        );
      return result;
    });
    // Nothing is listed: a resource is the answer of a call, and its link is told only to its buyer.
    server.setRequestHandler('resources/list', () => ({ resources: [] }));
    server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
    server.setRequestHandler('resources/read', async ({ params: { uri } }, { http }) => {
      const exchange = http?.req && exchangeOf(http.req);
      const answer = exchange && (await readAnswer(parts, exchange, uri));
      if (!answer) throw new ResourceNotFoundError(uri);
      return { contents: [{ uri, ...answer }] };
    });
    return server;
  };
}

function isToken(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}
