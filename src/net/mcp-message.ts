/** A JSON-RPC message of MCP. */
export type McpMessage = {
  id?: unknown;
  method?: string;
  result?: Record<string, unknown>;
  error?: { code?: number; message?: string };
};

export const MCP_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

/** The handshake of a client that knows nothing about a server. */
export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'coinslot-check', version: '1.0.0' },
  },
};

/** The messages in the body of an answer, which is JSON or a stream of events; none if it is neither. */
export function mcpMessagesIn(contentType: string | null, body: string): McpMessage[] {
  const texts = /^text\/event-stream\b/i.test(contentType ?? '')
    ? [...body.matchAll(/^data: ?(.*)$/gm)].map(([, data = '']) => data)
    : [body];
  return texts.flatMap(text => {
    try {
      const value = JSON.parse(text) as unknown;
      return typeof value === 'object' && value !== null && !Array.isArray(value) ? [value] : [];
    } catch {
      return [];
    }
  });
}
