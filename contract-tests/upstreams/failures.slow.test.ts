import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createChain } from '../../src/rails/solana/rpc.js';
import { createHttpOperations } from '../../src/upstreams/http-operations/http-operations.js';
import { createMarketSources } from '../../handlers/sol-token-brief/sources.js';
import { createRapidataPeople } from '../../handlers/brand-feedback/rapidata.js';
import { createOpenAiSummarizer } from '../../handlers/summarize/openai.js';
import { createPiperSpeaker } from '../../handlers/text-to-speech/piper.js';
import { MINT } from '../support/aggregators.js';
import { failureOf } from '../support/failure.js';
import { createMemoryBook } from '../support/memory-reply-store.js';
import { contractOf } from '../support/upstream-shop.js';

const NEVER = new AbortController().signal;
/** How long each adapter waits for an answer. */
const LATE_MS = 300;
/** The summarizer first starts a thread that reads the text, which can take seconds on a busy machine. */
const SUMMARY_MS = 20 * LATE_MS;

type Adapter = { ask: () => Promise<unknown>; close: () => Promise<void> };

/** Every adapter that calls a service over HTTP, with one request. */
const ADAPTERS: Record<string, (url: string) => Adapter> = {
  'an API that is sold': url => {
    const upstream = { url: `${url}/v`, timeoutMs: LATE_MS };
    const sold = contractOf([{ id: 'value', path: '/value', upstream }]);
    const operations = createHttpOperations(sold, { variable: () => undefined, allowPrivate: true });
    const asked = { params: {}, query: {}, body: undefined, signal: NEVER, caller: 'a' };
    return { ask: async () => operations.served.value!.call(asked), close: () => operations.close() };
  },
  'a summarizer': url => {
    const summarizer = createOpenAiSummarizer({ url, model: 'm', timeoutMs: SUMMARY_MS });
    return {
      ask: () => summarizer.summarize('A bridge was closed. A ferry runs.', NEVER),
      close: () => summarizer.close(),
    };
  },
  'a speech server': url => {
    const speaker = createPiperSpeaker({ url, deadlineMs: LATE_MS });
    return { ask: () => speaker.speak('One coin.', undefined, NEVER), close: () => speaker.close() };
  },
  'a marketplace of people': url => {
    const account = { clientId: 'a', clientSecret: 'b', budget: '1', replyStore: createMemoryBook() };
    const waits = { requestMs: LATE_MS, retryMs: 1, quoteMs: LATE_MS };
    const people = createRapidataPeople({ ...account, apiUrl: url, authUrl: url, ...waits });
    return { ask: () => people.ready(1), close: () => people.close() };
  },
  'an RPC server': url => {
    const chain = createChain({ urls: [url], timeoutMs: LATE_MS });
    return { ask: () => chain.blockHeight('confirmed', NEVER), close: () => chain.close() };
  },
  ...Object.fromEntries(
    createMarketSources({ marketUrl: 'http://127.0.0.1:1' }).map(({ name }, index) => [
      `the market source ${name}`,
      (url: string): Adapter => {
        const sources = createMarketSources({ marketUrl: url, deadlineMs: LATE_MS });
        const close = async (): Promise<void> => {
          await Promise.all(sources.map(source => source.close()));
        };
        return { ask: () => sources[index]!.quote(MINT, NEVER), close };
      },
    ]),
  ),
};

const status =
  (code: number): RequestListener =>
  (_request, response) =>
    void response.writeHead(code, { 'content-type': 'application/json' }).end('{"error":"no"}');

/** What a service does, and the failure that results. */
const ROWS: [does: string, serve: RequestListener | 'is away', kind: 'failed' | 'unavailable'][] = [
  ['cannot be reached', 'is away', 'unavailable'],
  ['answers 429', status(429), 'unavailable'],
  ['answers 503', status(503), 'unavailable'],
  ...[401, 403, 408, 500, 501, 502, 504, 507, 520].map((code): (typeof ROWS)[number] => [
    `answers ${code}`,
    status(code),
    'failed',
  ]),
  ['answers nonsense', (_request, response) => void response.end('<html>'), 'failed'],
  ['hangs up', request => void request.socket.destroy(), 'failed'],
  [
    'hangs up within its answer',
    (request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{');
      setTimeout(() => request.socket.destroy(), 20);
    },
    'failed',
  ],
  ['does not answer in time', () => {}, 'failed'],
];

describe('one rule for the failures of every upstream:', function () {
  this.timeout(30_000);
  let server: Server;
  let url: string;
  let serve: RequestListener;

  before(async () => {
    server = createServer((request, response) => serve(request, response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  for (const [name, open] of Object.entries(ADAPTERS)) {
    for (const [does, serving, kind] of ROWS)
      it(`${name} that ${does} ${kind === 'failed' ? 'has failed (502)' : 'is unavailable (503)'}`, async () => {
        if (serving !== 'is away') serve = serving;
        const adapter = open(serving === 'is away' ? 'http://127.0.0.1:1' : url);
        try {
          expect((await failureOf(adapter.ask())).kind).to.equal(kind);
        } finally {
          await adapter.close();
        }
      });
  }
});
