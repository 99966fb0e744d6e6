import {
  createMcpHandler,
  fromJsonSchema,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type CallToolResult,
  type ProgressNotification,
  type McpHttpHandler,
} from '@modelcontextprotocol/server';
import { objectOf } from '../contract/references.js';
import { pause } from '../net/deadline.js';
import type { OwnHosts } from './allowed-hosts.js';
import { callTool, readAnswer, type CallToolParts } from './call-tool.js';
import type { Exchange } from './mcp-exchange.js';
import { clientOf, knows, PAYMENT_EXTENSION, TASKS_EXTENSION } from './mcp-client.js';
import type { Notify } from './progress.js';
import { NOT_CANCELLED, taskOf, type Task } from './tasks.js';
import { instructionsFor, toolsOf } from './tools.js';

/** The parameters of requests for one task. */
const TASK_SCHEMA = {
  params: fromJsonSchema<{ taskId: string }>({
    type: 'object',
    required: ['taskId'],
    properties: { taskId: { type: 'string', maxLength: 200 } },
  }),
};

/**
 * The maximum number of subscriptions to tool changes that may be open at a time. The tools never change
 * while a server runs.
 */
const MAX_SUBSCRIPTIONS = 64;
/** The delay before the answer to a ping that asked for progress. */
const PING_MS = 1_000;
/** The maximum number of characters to log of the message about a refused request. */
const MAX_LOGGED = 200;

/**
 * Serves the MCP protocol with the official library. `exchangeOf` returns the HTTP exchange of a request that
 * was handed to the library.
 */
export function createProtocol(
  parts: CallToolParts & OwnHosts,
  exchangeOf: (request: Request) => Exchange | undefined,
): McpHttpHandler {
  return createMcpHandler(serverFactory(parts, exchangeOf), {
    // The message may contain text from the caller, so repeats are merged by the kind of the error.
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
    capabilities: {
      tools: {},
      resources: {},
      extensions: { [PAYMENT_EXTENSION]: {}, [TASKS_EXTENSION]: {} },
    },
    instructions: instructionsFor(contract, offers.methods),
    // The default would build a validator for each request. Only replies from users are validated, and this server asks for none.
    jsonSchemaValidator: { getValidator: () => () => ({ valid: false, errorMessage: 'not used' }) as never },
  };
  const tools = toolsOf(contract, offers.methods);
  return () => {
    const server = new Server(info, options);
    // By asking for the progress of a ping, a client can see whether a proxy passes events on immediately.
    server.setRequestHandler('ping', async (_ping, { http, mcpReq }) => {
      const exchange = http?.req && exchangeOf(http.req);
      const notify = exchange && notifierOf(exchange, mcpReq);
      if (!notify) return {};
      await notify({ progress: 0, total: 1, message: 'one more second' });
      await pause(PING_MS, exchange.gone);
      return {};
    });
    server.setRequestHandler('tools/list', () => ({ tools }));
    server.setRequestHandler('tools/call', async ({ params }, { http, mcpReq }) => {
      const exchange = http?.req && exchangeOf(http.req);
      if (!exchange) throw new Error('a tool call without its HTTP request');
      const result = await callTool(parts, exchange, notifierOf(exchange, mcpReq));
      if (!result)
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          `Unknown tool ${params.name.slice(0, 100)}: tools/list names all tools.`,
        );
      if ('task' in result)
        return {
          resultType: 'task',
          ...(await taskNamed(parts, exchange, result.task)),
        } as unknown as CallToolResult;
      return result as CallToolResult;
    });
    registerTasks(server, parts, exchangeOf);
    // Nothing is listed, because a resource is the answer to a call, and only the buyer gets its link.
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

/** Registers the task methods, which the library defines but does not handle. */
function registerTasks(
  server: Server,
  parts: CallToolParts,
  exchangeOf: (request: Request) => Exchange | undefined,
): void {
  const named = (taskId: string, request: Request | undefined): Promise<Task> =>
    taskNamed(parts, exchangeIn(request, exchangeOf), taskId);
  server.setRequestHandler('tasks/get', TASK_SCHEMA, ({ taskId }, { http }) => named(taskId, http?.req));
  // The specification requires that `tasks/update` and `tasks/cancel` are acknowledged without the task in the answer. Orders never ask their client
  // for input, so an update has no effect.
  server.setRequestHandler('tasks/update', TASK_SCHEMA, async ({ taskId }, { http }) => {
    await named(taskId, http?.req);
    return {};
  });
  server.setRequestHandler('tasks/cancel', TASK_SCHEMA, async ({ taskId }, { http }) => {
    const { status } = await named(taskId, http?.req);
    return status === 'working' ? { _meta: { 'coinslot/cancel': NOT_CANCELLED } } : {};
  });
}

function exchangeIn(
  request: Request | undefined,
  exchangeOf: (request: Request) => Exchange | undefined,
): Exchange {
  const exchange = request && exchangeOf(request);
  if (!exchange) throw new Error('a message without its HTTP request');
  return exchange;
}

/** MCP's error code for a request that needs an extension which its client has not declared. */
const NOT_DECLARED = -32_021;

async function taskNamed(parts: CallToolParts, exchange: Exchange, taskId: string): Promise<Task> {
  if (!knows(clientOf(exchange.message), TASKS_EXTENSION))
    throw new ProtocolError(NOT_DECLARED, `Declare the extension ${TASKS_EXTENSION} to use tasks.`);
  const task = await taskOf(parts, exchange, taskId);
  if (task) return task;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'This server has no task with this id any more.');
}

/** Sends progress notifications to a caller that requested them. */
function notifierOf(
  { message }: Exchange,
  mcpReq: { notify(notification: ProgressNotification): Promise<void> },
): Notify | undefined {
  const { progressToken } = objectOf(objectOf(message.params)._meta);
  if (typeof progressToken !== 'string' && typeof progressToken !== 'number') return undefined;
  return progress =>
    mcpReq.notify({ method: 'notifications/progress', params: { ...progress, progressToken } });
}
