import { mcp, paid } from './mcp-call.js';

type Json = Record<string, unknown>;

/** A result of MCP 2026-07-28 that is a task or a task's status. */
export type TaskJson = {
  resultType: string;
  taskId: string;
  status: string;
  statusMessage?: string;
  createdAt: string;
  ttlMs: number;
  pollIntervalMs: number;
  result?: Json;
};

const NAMESPACE = 'io.modelcontextprotocol';
const META = {
  [`${NAMESPACE}/protocolVersion`]: '2026-07-28',
  [`${NAMESPACE}/clientInfo`]: { name: 'test', version: '1' },
};
/** The metadata of a client that supports tasks, followed by that of one that does not. */
const WITH_TASKS = {
  ...META,
  [`${NAMESPACE}/clientCapabilities`]: { extensions: { [`${NAMESPACE}/tasks`]: {} } },
};
export const WITHOUT_TASKS = { ...META, [`${NAMESPACE}/clientCapabilities`]: {} };

/** Sends a message of MCP 2026-07-28. */
export async function askTask(
  url: string,
  method: string,
  params: Json,
  meta: Json = WITH_TASKS,
): Promise<Awaited<ReturnType<typeof mcp>>['message']> {
  const name = String(params['taskId'] ?? params['name']);
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': name };
  const asked = { ...params, _meta: { ...meta, ...(params['_meta'] as Json) } };
  return (await mcp(url, method, asked, headers)).message;
}

/** Calls brandFeedback with a payment. */
export async function orderTask(
  url: string,
  asked: Json,
  payment: Json,
  meta?: Json,
): Promise<TaskJson & Json> {
  const params = { name: 'brandFeedback', arguments: asked, _meta: paid(payment) };
  return (await askTask(url, 'tools/call', params, meta)).result as TaskJson & Json;
}

export async function getTask(url: string, taskId: string): Promise<TaskJson> {
  const { result, error } = await askTask(url, 'tasks/get', { taskId });
  if (!result) throw new Error(`tasks/get: ${JSON.stringify(error)}`);
  return result as unknown as TaskJson;
}
