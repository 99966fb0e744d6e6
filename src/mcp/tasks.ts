import type { Json } from '../contract/json.js';
import { ANSWER_LIFE_MS } from '../sale/order-worker.js';
import { fetched, type CallToolParts } from './call-tool.js';
import type { Exchange } from './mcp-exchange.js';

/** A task, as MCP's extension for tasks defines it (SEP-2663). `result`: the result of the call that started it. */
export type Task = {
  taskId: string;
  status: 'working' | 'completed';
  statusMessage?: string;
  createdAt: string;
  lastUpdatedAt: string;
  ttlMs: number;
  pollIntervalMs?: number;
  result?: Json;
};

/** The answer to a client that cancels a task. A paid order is completed, because cancelling would not return the money. */
export const NOT_CANCELLED =
  'This order was paid before its work began, so it continues: nothing more is charged, and its answer stays yours. Fetch it with tasks/get.';

/**
 * The order of a paid call, as a task. Its id is the key of the answer, which only the buyer knows, and which is the same at every server of the
 * ledger and after a restart.
 * @returns undefined if nothing is kept under that id
 */
export async function taskOf(
  parts: CallToolParts,
  exchange: Exchange,
  taskId: string,
): Promise<Task | undefined> {
  const found = await parts.pickUps.get(taskId);
  if (found.kind === 'nothing') return undefined;
  const { outcome, kept, since } = found;
  const now = new Date().toISOString();
  const createdAt = since === undefined ? now : new Date(since).toISOString();
  const frame = { taskId, createdAt, lastUpdatedAt: now, ttlMs: ANSWER_LIFE_MS };
  if (outcome.kind !== 'unavailable')
    return { ...frame, status: 'completed', result: await fetched(parts, exchange, found) };
  const order = await parts.charge.progressOf(kept.id);
  const statusMessage = order ? `Paid: ${order.done} of ${order.wanted} done.` : outcome.error;
  const pollIntervalMs = outcome.retryAfterSeconds * 1_000;
  return { ...frame, status: 'working', statusMessage, pollIntervalMs };
}
