import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Deliveries } from '../../src/http/deliveries.js';
import { Exchange } from '../../src/mcp/mcp-exchange.js';
import { contentOf, failureResult } from '../../src/mcp/tool-results.js';

const OWNER = { payment: 'payment', payer: 'payer', source: 'source' };

/** The outcomes that were reported to the sale of one exchange after `serve` has sent the answer. */
async function toldOf(serve: (exchange: Exchange, carry: Carry) => Promise<void>): Promise<string[]> {
  const told: string[] = [];
  const sale = {
    written: () => void told.push('written'),
    linked: async () => undefined,
    lost: async () => void told.push('lost'),
  };
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const exchange = new Exchange(incoming, outgoing, 'source');
    await serve(exchange, build => exchange.carry(new Deliveries(), OWNER, { bytes: 10, sale, build }));
    if (!outgoing.headersSent) await exchange.send(Response.json({ error: 'internal' }), {});
  };
  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const asked = request({ port: (server.address() as AddressInfo).port, agent: false }).end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  await once(answer, 'end');
  await once(server.close(), 'close');
  return told;
}

type Carry = (build: () => string) => string | undefined;

describe('a sale whose answer is an MCP result', () => {
  it('counts as written once the result has been sent', async () => {
    const told = await toldOf(async (exchange, carry) => {
      expect(carry(() => 'result')).to.equal('result');
      await exchange.send(Response.json({ result: 'result' }), {});
    });
    expect(told).to.deep.equal(['written']);
  });

  it("counts as lost if its result can't be built, because the error that is sent instead is not an answer", async () => {
    const told = await toldOf(async (_exchange, carry) => {
      const fail = (): string => {
        throw new Error('no result');
      };
      expect(() => carry(fail)).to.throw('no result');
    });
    expect(told).to.deep.equal(['lost']);
  });

  it('counts as written for a result and as lost for an error, even if a long id comes first in the message', async () => {
    const id = '"result":"error":'.repeat(100);
    for (const [message, ends] of [
      [{ jsonrpc: '2.0', id, result: 'result' }, 'written'],
      [{ jsonrpc: '2.0', id, error: { code: 1, data: { result: 1 } } }, 'lost'],
    ] as const) {
      const told = await toldOf(async (exchange, carry) => {
        carry(() => 'result');
        await exchange.send(Response.json(message), {});
      });
      expect(told).to.deep.equal([ends]);
    }
  });

  it('counts as lost if the library sends an error in place of the result', async () => {
    for (const error of [{ code: -32_602, message: 'Invalid tools/call result: "result":' }, { code: 1 }]) {
      const told = await toldOf(async (exchange, carry) => {
        carry(() => 'result');
        await exchange.send(Response.json({ jsonrpc: '2.0', id: 1, error }), {});
      });
      expect(told).to.deep.equal(['lost']);
    }
  });

  it('counts as written if its result is in a stream, after other messages', async () => {
    const told = await toldOf(async (exchange, carry) => {
      carry(() => 'result');
      const events = ['{"method":"notifications/progress"}', '{"result":{"error":1},"id":1}'];
      const stream = ReadableStream.from(
        events.map(each => Buffer.from(`event: message\ndata: ${each}\n\n`)),
      );
      await exchange.send(new Response(stream), {});
    });
    expect(told).to.deep.equal(['written']);
  });

  it("accepts a handler's headers in any case, and Retry-After as seconds or as a date", () => {
    expect(contentOf({ 'CONTENT-TYPE': 'text/plain' }, Buffer.from('hi')).content).to.deep.equal([
      { type: 'text', text: 'hi' },
    ]);
    const body = Buffer.from('{"error":"Busy."}');
    const soon = new Date(Date.now() + 60_000).toUTCString();
    for (const value of ['60', soon])
      expect(failureResult({ status: 503, headers: { 'retry-after': value }, body }))
        .to.have.nested.property('structuredContent.retryAfterSeconds')
        .that.is.within(30, 60);
  });

  it("is text content if a file's type says JSON but its content is not JSON", () => {
    const headers = { 'Content-Type': 'application/geo+json' };
    const text = '{"cut off';
    expect(contentOf(headers, Buffer.from(text))).to.deep.equal({ content: [{ type: 'text', text }] });
    expect(contentOf(headers, Buffer.from('{"a":1}'))).to.have.deep.property('structuredContent', { a: 1 });
    expect(contentOf(headers, Buffer.from('[1]'))).not.to.have.property('structuredContent');
  });
});
