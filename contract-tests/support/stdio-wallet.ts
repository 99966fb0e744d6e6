import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { fileURLToPath } from 'node:url';
import type { ToolCall } from './mcp-call.js';

export const COINSLOT = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

type Json = Record<string, unknown>;

/** A wallet as an MCP host runs it: a child process that speaks MCP over stdin and stdout. */
export type StdioWallet = {
  client: Client;
  pid: number;
  /** The wallet's output on stderr. */
  said: () => string;
  call(name: string, args: Json, more?: { onProgress?: (told: Json) => void }): Promise<ToolCall>;
  close(): Promise<void>;
};

export async function startWallet(args: string[]): Promise<StdioWallet> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [COINSLOT, 'mcp', ...args],
    env: { PATH: process.env['PATH'] ?? '' },
    stderr: 'pipe',
  });
  let said = '';
  transport.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const client = new Client({ name: 'host', version: '1' });
  await client.connect(transport);
  return {
    client,
    pid: transport.pid ?? 0,
    said: () => said,
    call: async (name, asked, { onProgress } = {}) => {
      const options = { timeout: 100_000, ...(onProgress ? { onprogress: onProgress as never } : {}) };
      return (await client.callTool({ name, arguments: asked }, options)) as unknown as ToolCall;
    },
    close: () => client.close(),
  };
}
