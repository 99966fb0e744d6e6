import { expect } from 'chai';
import { Routes } from '../../src/contract/routes.js';
import { orderWork } from '../../src/http/run-handler.js';
import { operationIn, SOLD } from '../support/sold.js';

const QUIET = { info: () => {}, warn: () => {}, error: () => {} };

describe('an order whose handler says when to try again', () => {
  const { id: operation, request } = operationIn(SOLD, 'brandFeedback');

  for (const [headers, seconds] of [
    [{ 'Retry-After': '30' }, 30],
    [{ 'retry-after': '30' }, 30],
    [{ 'Retry-After': '99999999' }, 3_600],
    [{ 'Retry-After': 'soon' }, 0],
    [{}, 0],
  ] as [Record<string, string>, number][])
    it(`${JSON.stringify(headers)} is ${seconds} s, in any notation`, async () => {
      const routes = await Routes.create(SOLD);
      const reply = { status: 503, headers, body: { error: 'later' } };
      const handlers = { [operation]: { call: async () => reply } };
      routes.register(handlers);
      const orders = orderWork({ routes, handlers, log: QUIET });
      const order = {
        id: 'order',
        payer: 'payer',
        operation,
        request: JSON.stringify(request?.example),
        deadline: Date.now() + 60_000,
        attempt: 1,
        extend: async () => undefined,
      };
      const result = await orders.work(order, new AbortController().signal);
      expect(result).to.include({ kind: 'failed', retryAfterSeconds: seconds });
    });
});
