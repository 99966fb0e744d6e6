import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SourceLimits } from '../../src/http/source-limits.js';
import { createApp, type AppParts } from '../../src/http/app.js';
import { BodyReader } from '../../src/http/body.js';
import type { Serving } from '../../src/contract/operation.js';
import { Deliveries } from '../../src/http/deliveries.js';
import type { PaidCall } from '../../src/sale/paid-call.js';
import { outcomeOf } from '../support/outcome-of.js';
import { Routes } from '../../src/contract/routes.js';
import { UpstreamFailure } from '../../src/net/failure.js';
import { FairQueue } from '../../src/upstreams/fair-queue.js';
import { RELEASED } from '../support/sold.js';
import { post, type Answer } from '../support/world.js';

const NEVER = new AbortController().signal;

async function until(so: () => boolean): Promise<void> {
  for (let tries = 0; tries < 400 && !so(); tries++) await new Promise(resolve => setTimeout(resolve, 5));
  expect(so()).to.equal(true);
}

/** An app whose payments are just names of payers, and whose speech operation has a queue for two. */
async function openApp() {
  const queue = new FairQueue({ slots: 1, maxWaiting: 2, fullMessage: 'The speech queue is full.' });
  const ends: (() => void)[] = [];
  const spokenFor: string[] = [];
  const handlers = {
    textToSpeech: {
      call: ({ caller, signal }: { caller: string; signal: AbortSignal }) =>
        queue.run(
          async () => {
            spokenFor.push(caller);
            await new Promise<void>(resolve => ends.push(resolve));
            throw new UpstreamFailure('failed', 'Spoken');
          },
          signal,
          caller,
        ),
    },
  } as unknown as Serving;
  const charge = {
    checkPayment: ({ headers }: { headers: IncomingHttpHeaders }) => ({
      kind: 'payment',
      payment: {
        method: { receiptHeaders: () => ({}) },
        identifier: null,
        checked: { id: headers['x-payment'], payer: headers['x-payment'] },
      },
    }),
    process: async (call: PaidCall) => outcomeOf(await call.work(NEVER)),
  };
  const routes = await Routes.create(RELEASED);
  routes.register(handlers);
  const parts = {
    handlers,
    routes,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    charge,
    bodies: new BodyReader(),
    deliveries: new Deliveries(),
    pages: [],
    exposed: '',
    offers: { methods: { areIn: () => true, askedBy: () => ({}) } },
    closing: NEVER,
  };
  const callback = createApp({
    ...parts,
    limits: new SourceLimits({ trustedProxies: 0 }),
  } as unknown as AppParts).callback();
  const server = createServer((request, response) => void callback(request, response));
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${port}/v1/tts`, queue, spokenFor, end: () => ends.shift()?.() };
}

describe('Calls are distinguished by payer', () => {
  it("one payer's calls do not push another's out of a queue", async () => {
    const { server, url, queue, spokenFor, end } = await openApp();
    const say = (payer: string): Promise<Answer> => post(url, { text: 'Hello.' }, { 'x-payment': payer });
    const greedy = [say('greedy'), say('greedy'), say('greedy')];
    await until(() => queue.waiting === 2);
    const refused = await say('greedy');
    expect([refused.status, refused.json().error]).to.deep.equal([
      503,
      'The speech queue is full. You were not charged.',
    ]);
    const honest = say('honest');
    // The new call takes the last place of the payer who has the most calls in the queue.
    expect((await Promise.race(greedy)).status).to.equal(503);
    end();
    await until(() => spokenFor.length === 2);
    expect(spokenFor).to.deep.equal(['greedy', 'honest']);
    end();
    expect((await honest).status, 'its turn came').to.equal(502);
    await until(() => spokenFor.length === 3);
    end();
    await Promise.all(greedy);
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  });
});
