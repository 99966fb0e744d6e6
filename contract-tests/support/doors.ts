import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Contract } from '../../src/contract/contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { createApp } from '../../src/http/app.js';
import { BodyReader } from '../../src/http/body.js';
import { Deliveries } from '../../src/http/deliveries.js';
import { Routes } from '../../src/contract/routes.js';
import type { HandlerParts } from '../../src/http/run-handler.js';
import { answersUrl, PickUps } from '../../src/http/serve-pick-up.js';
import { SourceLimits } from '../../src/http/source-limits.js';
import { McpEndpoint } from '../../src/mcp/mcp-endpoint.js';
import { AnswerKeys } from '../../src/http/answer-keys.js';
import type { Charge } from '../../src/sale/charge.js';
import type { PaidCall } from '../../src/sale/paid-call.js';
import type { TestServer } from './test-server.js';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const URL_OF_ALL = 'http://127.0.0.1:8402';
const HOLD_MS = 1_000;
const PICK_UP = `paths:
  /answers/{key}:
    get:
      operationId: getAnswer
      x-answers: true
      parameters: [{ name: key, in: path, required: true, schema: { type: string } }]
      responses: { '200': { description: The answer. } }
`;

/** The operations of version 1.0.0, and a path for answers. */
const TEXT = readFileSync(
  new URL('../../../contract-tests/released/openapi-1.0.0.yaml', import.meta.url),
  'utf8',
).replace(/^paths:\n/m, PICK_UP);

/** A test's handler: it gets the id of the payment that it works for. */
export type DoorWork = (payment: string, body: { text: string }) => Promise<Reply>;
type Reply = { status: 200; body: { summary: string }; headers?: Record<string, string> };

type Sold = { contract: Contract; routes: Routes };

const released = parseContract(TEXT);
const soldAt = new Map<bigint, Promise<Sold>>();

/**
 * The operations with the prices of a server. All schedules share them, because compiling their validators would delay a schedule
 * for too long.
 */
function soldBy(testServer: TestServer): Promise<Sold> {
  const paid = released.paid.map(operation => ({ ...operation, price: testServer.priced(operation).price }));
  const key = paid[0]!.price.atomic;
  const made = soldAt.get(key) ?? compiled({ ...released, paid });
  soldAt.set(key, made);
  return made;
}

async function compiled(contract: Contract): Promise<Sold> {
  const routes = await Routes.create(contract);
  await routes.warm();
  return { contract, routes };
}

/** The routes of `shared`, with handlers given by the test. */
function handledBy(shared: Routes, handlers: HandlerParts['handlers']): Routes {
  const handle: Routes['handle'] = (id, call) => handlers[id]!.call(call!);
  const bound = (name: keyof Routes): unknown => shared[name].bind(shared as never);
  return new Proxy(shared, { get: (_, name) => (name === 'handle' ? handle : bound(name as keyof Routes)) });
}

/** A test server's HTTP and MCP on a socket, wired as in production; the test provides the handler of `summarize`. */
export class Doors {
  readonly url: string;
  readonly close: () => Promise<void>;

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url;
    this.close = close;
  }

  static async open(testServer: TestServer, work: DoorWork): Promise<Doors> {
    const { contract, routes: shared } = await soldBy(testServer);
    const { charge, handlers } = working(testServer.charge, work);
    const routes = handledBy(shared, handlers);
    const answerKeys = await AnswerKeys.open(testServer.reader, answersUrl(contract, URL_OF_ALL));
    const parts = {
      ...{ contract, routes, charge, handlers, answerKeys, log: SILENT, holdMs: HOLD_MS },
      offers: testServer.offers,
      pickUps: new PickUps(contract, answerKeys, charge, testServer.offers.methods),
      bodies: new BodyReader(),
      deliveries: new Deliveries(),
      limits: new SourceLimits({ trustedProxies: 0 }),
      closing: new AbortController().signal,
      documents: new Map(),
      pages: [],
      exposed: '',
      ...{ publicUrl: URL_OF_ALL, siteUrl: URL_OF_ALL, trustedProxies: 0 },
    };
    const mcp = new McpEndpoint(parts);
    const callback = createApp(parts).callback();
    const server = createServer((request: IncomingMessage, response: ServerResponse) => {
      void (mcp.serves(request) ? mcp.serve(request, response) : callback(request, response));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    // When a process dies, its connections break and it accepts no new ones, not even those that are being made.
    server.on('connection', socket => {
      if (testServer.dead) socket.destroy();
    });
    void testServer.died.then(() => server.closeAllConnections());
    const close = async (): Promise<void> => {
      server.closeAllConnections();
      server.close();
      await mcp.close();
    };
    return new Doors(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, close);
  }
}

/** A charge that gives the payment's id to the work, which real handlers do not get. */
function working(charge: Charge, work: DoorWork): { charge: Charge; handlers: HandlerParts['handlers'] } {
  const paying = new AsyncLocalStorage<string>();
  const process = (call: PaidCall): ReturnType<Charge['process']> => {
    const { id } = call.payment.checked;
    return charge.process({ ...call, work: signal => paying.run(id, () => call.work(signal)) });
  };
  const bound = new Proxy(charge, {
    get(target, name) {
      if (name === 'process') return process;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
  const call = ({ body }: { body: { text: string } }): Promise<Reply> => work(paying.getStore() ?? '', body);
  return { charge: bound, handlers: { summarize: { call } } as unknown as HandlerParts['handlers'] };
}
