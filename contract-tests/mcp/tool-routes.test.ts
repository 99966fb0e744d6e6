import { expect } from 'chai';
import { parseContract } from '../../src/contract/parse-contract.js';
import { Routes } from '../../src/contract/routes.js';
import { SourceLimits } from '../../src/http/source-limits.js';
import { callTool, type CallToolParts } from '../../src/mcp/call-tool.js';
import type { Exchange } from '../../src/mcp/mcp-exchange.js';
import type { ToolResult } from '../../src/mcp/tool-results.js';
import type { PaidCall } from '../../src/sale/paid-call.js';
import { ANY_SHOP } from '../support/any-shop.js';

const NEVER = new AbortController().signal;

describe('A tool with path parameters', () => {
  const sold: string[] = [];
  let parts: CallToolParts;

  before(async () => {
    const contract = parseContract(ANY_SHOP);
    const routes = await Routes.create(contract);
    const handlers = { quote: { call: async () => ({ status: 200, body: { price: 1 } }) } };
    routes.register(handlers);
    const payment = { method: {}, identifier: null, checked: { id: 'p', payer: 'q' } };
    const charge = {
      checkPayment: async () => ({ kind: 'payment', payment }),
      moneyNote: async () => 'Nothing was charged.',
      process: async (call: PaidCall) => {
        sold.push(call.operation.id);
        return { kind: 'unavailable', error: 'later', retryAfterSeconds: 1 };
      },
    };
    const limits = new SourceLimits({ trustedProxies: 0 });
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    parts = { contract, routes, handlers, charge, limits, log, closing: NEVER } as unknown as CallToolParts;
  });

  const quote = async (symbol: string): Promise<ToolResult | undefined> => {
    const message = { params: { name: 'quote', arguments: { symbol } } };
    const result = await callTool(parts, {
      message,
      gone: NEVER,
      source: 's',
      requestId: 'r',
      headers: {},
    } as unknown as Exchange);
    return result as ToolResult | undefined;
  };

  it("sells what the same path sells over HTTP, and refuses arguments that lead to another operation's path", async () => {
    await quote('SOL');
    expect(sold).to.deep.equal(['quote']);
    const refused = await quote('latest');
    expect(JSON.stringify(refused)).to.include(
      'these arguments lead to /quotes/latest, which is not a path of quote. Nothing was charged.',
    );
    expect(JSON.stringify(await quote('..'))).to.include(
      'symbol must be percent-encoded UTF-8 and not . or ..',
    );
    expect(sold).to.deep.equal(['quote']);
  });
});
