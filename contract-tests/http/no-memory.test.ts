import { expect } from 'chai';
import Koa from 'koa';
import { once } from 'node:events';
import { IncomingMessage, ServerResponse, type Server } from 'node:http';
import { Socket, type AddressInfo } from 'node:net';
import { PICK_UP } from '../../src/contract/reserved-names.js';
import { ByteBudget } from '../../src/http/byte-budget.js';
import { Deliveries } from '../../src/http/deliveries.js';
import { sendSold, TOO_MANY_ANSWERS } from '../../src/http/send-sold.js';
import { callTool, type CallToolParts } from '../../src/mcp/call-tool.js';
import { Exchange } from '../../src/mcp/mcp-exchange.js';
import type { Sale, Success } from '../../src/sale/outcome.js';
import { SOLD } from '../support/sold.js';

const FULL = new Deliveries(new ByteBudget(0));
const OWNER = { payment: 'payment', payer: 'payer', source: 'source' };
const ANSWER: Success = {
  status: 200,
  headers: { 'Content-Type': 'application/json' },
  body: Buffer.from('{"value":1}'),
};
const RECEIPT = { success: true, payer: 'payer', transaction: 'signature', network: 'network' };
const QUIET = { info: () => {}, warn: () => {}, error: () => {} };

describe('a sold answer that does not fit into memory', () => {
  let told: string[];
  let sale: Sale;
  beforeEach(() => {
    told = [];
    sale = {
      written: () => void told.push('written'),
      linked: async () => undefined,
      // Resolves in a later turn, as the ledger does.
      lost: async () => {
        await new Promise(resolve => setImmediate(resolve));
        told.push('lost');
      },
    };
  });

  it('is recorded as lost before its caller is answered, over HTTP', async () => {
    const app = new Koa();
    app.use(ctx =>
      sendSold(
        ctx,
        { deliveries: FULL, log: QUIET },
        { answer: ANSWER, owner: OWNER, sale, own: {}, signed: {} },
      ),
    );
    const server: Server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect([answer.status, told]).to.deep.equal([503, ['lost']]);
    expect(await answer.json()).to.deep.equal({ error: TOO_MANY_ANSWERS });
    server.close();
  });

  it('is recorded as lost before its caller is answered, over MCP', async () => {
    const request = new IncomingMessage(new Socket());
    const exchange = new Exchange(request, new ServerResponse(request), 'source');
    exchange.message = { params: { name: PICK_UP, arguments: { key: 'key' } } };
    const found = {
      kind: 'found',
      kept: { id: 'payment', number: 1 },
      payer: 'payer',
      method: { receiptMeta: () => ({}) },
      outcome: { kind: 'sold', answer: ANSWER, receipt: RECEIPT, sale },
    };
    const parts = {
      contract: SOLD,
      deliveries: FULL,
      pickUps: { get: async () => found },
      answerKeys: { linkOf: () => ({ key: 'key', url: undefined }) },
    } as unknown as CallToolParts;
    const result = await callTool(parts, exchange);
    expect(result).to.have.deep.nested.include({
      'structuredContent.error': TOO_MANY_ANSWERS,
      'structuredContent.status': 503,
    });
    expect(told).to.deep.equal(['lost']);
  });
});
