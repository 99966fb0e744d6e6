import type { Json } from '../contract/json.js';
import { isObject, objectOf } from '../contract/references.js';

/**
 * x402's binding of payments to MCP 2026-07-28: the price is sent as a separate kind of result, not as an
 * error.
 */
export const PAYMENT_EXTENSION = 'org.x402/payment';

/** MCP's tasks (SEP-2663): a long call is answered immediately with a task, and its result is requested later. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

const NAMESPACE = 'io.modelcontextprotocol';

/**
 * What the sender of a message states about itself. Only clients of MCP 2026-07-28 send this, with every
 * request.
 */
export type McpClient = {
  /** Whether the client supports links and results of several kinds. */
  current: boolean;
  extensions: Json;
};

export function clientOf(message: Json): McpClient {
  const meta = objectOf(objectOf(message.params)._meta);
  const current = typeof meta[`${NAMESPACE}/protocolVersion`] === 'string';
  const { extensions } = objectOf(meta[`${NAMESPACE}/clientCapabilities`]);
  return { current, extensions: current ? objectOf(extensions) : {} };
}

/** Whether a client supports an extension of the protocol. */
export function knows({ extensions }: McpClient, extension: string): boolean {
  return isObject(extensions[extension]);
}
