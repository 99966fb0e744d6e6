import { MCP_PATH } from '../contract/reserved-names.js';
import { withAbortAfter } from '../net/deadline.js';
import { INITIALIZE, MCP_HEADERS, mcpMessagesIn } from '../net/mcp-message.js';
import type { Check } from './preflight.js';

const WAIT_MS = 5_000;
const MAX_SAID = 300;

/**
 * Whether an MCP client can connect at the public URL, including through a proxy. No finding if no server
 * answers.
 */
export function mcpCheck(publicUrl: string): Check {
  const subject = 'MCP';
  const url = publicUrl + MCP_PATH;
  return {
    subject,
    async look(signal) {
      const answer = await withAbortAfter(WAIT_MS, signal, bounded => greet(url, bounded)).catch(
        () => undefined,
      );
      if (!answer) return [];
      if (answer.greeted) return [{ level: 'ok', subject, found: `${url} accepts clients` }];
      const found = `${url} answers ${answer.status}: ${answer.said}`;
      const todo =
        'make the proxy pass on POST /mcp with the caller’s Host header (ops/ has complete configuration files)';
      return [{ level: 'warning', subject, found, todo }];
    },
  };
}

async function greet(
  url: string,
  signal: AbortSignal,
): Promise<{ greeted: boolean; status: number; said: string }> {
  const init = { method: 'POST', headers: MCP_HEADERS, body: JSON.stringify(INITIALIZE), signal };
  const reply = await fetch(url, { ...init, redirect: 'manual' });
  const body = await reply.text();
  const messages = mcpMessagesIn(reply.headers.get('content-type'), body);
  const said = messages.map(({ error }) => error?.message).find(Boolean) ?? body;
  return {
    greeted: messages.some(({ result }) => result?.['protocolVersion'] !== undefined),
    status: reply.status,
    said: said.slice(0, MAX_SAID),
  };
}
