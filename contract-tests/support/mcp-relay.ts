import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

type Json = Record<string, unknown>;

/** What the relay reads from a message. `payment`: the payment as JSON text, if there is one. */
type Relayed = {
  tool: string | undefined;
  payment: string | undefined;
  pass: () => Promise<Response>;
  /** Answers with the shop's challenge and this error, as if the shop refused the payment, which is not forwarded. */
  refuse: (error: string) => Promise<Response>;
};
type Relay = (message: Relayed) => Promise<Response | 'drop'>;

export type McpRelay = {
  url: string;
  /** The payments that were sent, in order. */
  payments: string[];
  /** Sets what happens to each message from now on; undefined forwards everything. */
  intervene(relay: Relay | undefined): void;
  close(): void;
};

/** A relay between an MCP client and a shop. It records payments, and can answer in the shop's place or cut connections. */
export async function mcpRelay(target: string): Promise<McpRelay> {
  const payments: string[] = [];
  let relay: Relay | undefined;
  const server = createServer((request, response) => {
    const handle = async (): Promise<void> => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { method = 'GET', url: path = '/' } = request;
      const body = Buffer.concat(chunks);
      const passed = Object.entries(request.headers).filter(([name]) =>
        /^(accept|content-type|mcp-)/.test(name),
      );
      const headers = passed.map(([name, value]): [string, string] => [name, String(value)]);
      const pass = (): Promise<Response> =>
        fetch(target + path, { method, headers, body: method === 'POST' ? body : null });
      const { tool, payment, unpaid } = read(body);
      const refuse = async (error: string): Promise<Response> => {
        const asked = await fetch(target + path, { method, headers, body: JSON.stringify(unpaid) });
        const data = /^data: (.*)$/m.exec(await asked.clone().text())?.[1] ?? (await asked.text());
        const message = JSON.parse(data) as { result: Json & { structuredContent: Json } };
        const structuredContent = { ...message.result.structuredContent, error };
        const content = [{ type: 'text', text: JSON.stringify(structuredContent) }];
        return Response.json({
          ...message,
          result: { ...message.result, content, structuredContent, _meta: {} },
        });
      };
      if (payment !== undefined) payments.push(payment);
      const answer = relay ? await relay({ tool, payment, pass, refuse }) : await pass();
      if (answer === 'drop') return void response.destroy();
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) response.write(chunk);
      response.end();
    };
    handle().catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    payments,
    intervene: next => void (relay = next),
    close: () => server.close().closeAllConnections(),
  };
}

function read(body: Buffer): { tool?: string; payment?: string; unpaid?: Json } {
  if (body.length === 0) return {};
  const message = JSON.parse(body.toString('utf8')) as Json & { params?: Json };
  if (message['method'] !== 'tools/call') return {};
  const { _meta: meta, ...params } = message.params ?? {};
  const payment = (meta as Json | undefined)?.['x402/payment'];
  const others = Object.entries((meta as Json | undefined) ?? {}).filter(([key]) => !key.startsWith('x402'));
  const unpaid = { ...message, params: { ...params, _meta: Object.fromEntries(others) } };
  const tool = String(params['name']);
  return { tool, unpaid, ...(payment ? { payment: JSON.stringify(payment) } : {}) };
}
