import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import type { WebhookConfig } from '../../src/config/webhook-settings.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { openTarget } from '../../src/webhooks/open-webhooks.js';
import { messageOf } from '../../src/webhooks/event-message.js';
import { sampleEvents } from '../../src/webhooks/sample-events.js';
import { againMsAfter, TargetTeller } from '../../src/webhooks/tell-targets.js';
import { NotTold, type Target } from '../../src/webhooks/target.js';
import { sqlitePlace, type LedgerPlace, forServer } from '../support/ledger-places.js';
import { delivered, OWNER, payment } from '../support/ledgers.js';

const SECRET = Buffer.alloc(32, 7);
const SENDER = { shop: 'Tea', publicUrl: 'https://tea.example', operatorUrl: 'http://127.0.0.1:8404' };
const LOG = { info: () => {}, warn: () => {}, error: () => {} };
const NEVER = new AbortController().signal;
const SAMPLE = messageOf(
  {
    id: 'msg_1',
    kind: 'sale.paid',
    createdAt: 1_800_000_000_000,
    facts: sampleEvents(['sale.paid'], '1')[0]?.facts ?? {},
  },
  SENDER,
);

type Got = { headers: IncomingMessage['headers']; body: string };

const servers: Server[] = [];

async function receiver(answer: RequestListener): Promise<{ url: string; got: Got[] }> {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      got.push({ headers: request.headers, body });
      answer(request, response);
    });
  });
  server.listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, got };
}

function config(allowPrivate = true): WebhookConfig {
  return { targets: [], secrets: [SECRET], allowPrivate };
}

function targetAt(
  url: string,
  allowPrivate = true,
  form: 'signed' | 'slack' | 'discord' | 'telegram' = 'signed',
): Promise<Target> {
  return openTarget({ name: 'one', form, url, kinds: [] }, config(allowPrivate));
}

/** Sends a sample event. @returns what the operator reads about the attempt */
async function said(url: string, allowPrivate = true): Promise<string> {
  const target = await targetAt(url, allowPrivate);
  try {
    return await target.send(SAMPLE, NEVER);
  } catch (error) {
    expect(error).to.be.instanceOf(NotTold);
    return `not told: ${(error as Error).message}`;
  } finally {
    await target.close();
  }
}

afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

describe('A webhook', () => {
  it('has signatures that the official verifier accepts, and rejects for another body', async () => {
    const { url, got } = await receiver((_request, response) => response.writeHead(204).end());
    expect(await said(`${url}/hook?key=1`)).to.equal('204');
    const [{ headers, body }] = got as [Got];
    const verifier = new Webhook(`whsec_${SECRET.toString('base64')}`);
    const event = verifier.verify(body, headers as Record<string, string>) as { type: string; data: object };
    expect(event.type).to.equal('sale.paid');
    expect(event.data).to.deep.include({
      amount: '0.01',
      currency: 'USDC',
      shop: 'https://tea.example',
      sample: true,
    });
    expect(() => verifier.verify(`${body} `, headers as Record<string, string>)).to.throw(
      'No matching signature',
    );
  });

  it('that redirects is not followed', async () => {
    const elsewhere = await receiver((_request, response) => response.writeHead(200).end());
    const { url } = await receiver((_request, response) =>
      response.writeHead(307, { location: elsewhere.url }).end(),
    );
    expect(await said(url)).to.equal('not told: 307: redirects are not followed');
    expect(elsewhere.got).to.deep.equal([]);
  });

  it('that answers endlessly, or closes the connection, does not count as having received the event', async () => {
    const endless = await receiver((_request, response) => {
      response.writeHead(200);
      const write = (): void => {
        while (!response.destroyed && response.write('a'.repeat(16_384)));
        if (!response.destroyed) response.once('drain', write);
      };
      write();
    });
    expect(await said(endless.url)).to.equal('not told: its answer is longer than 64 KB');
    const cut = await receiver(request => request.socket.destroy());
    expect(await said(cut.url)).to.match(/^not told: it closed the connection/);
  });

  it('with a private address gets nothing, even under a name that resolves to that address', async () => {
    const { url, got } = await receiver((_request, response) => response.end());
    const why = 'not told: its address is private: set ALLOW_PRIVATE_WEBHOOKS=true if that is intended';
    expect(await said(url, false)).to.equal(why);
    expect(await said(url.replace('127.0.0.1', 'localhost'), false)).to.equal(why);
    expect(got).to.deep.equal([]);
  });

  it("for a chat gets a message in that chat's format, in which mentions notify no user", async () => {
    const { url, got } = await receiver((_request, response) => response.end('ok'));
    for (const form of ['slack', 'discord', 'telegram'] as const) {
      const target = await targetAt(url, true, form);
      await target.send({ ...SAMPLE, text: 'Tea <!channel> @everyone' }, NEVER);
      await target.close();
    }
    expect(got.map(({ body }) => JSON.parse(body) as object)).to.deep.equal([
      { text: 'Tea &lt;!channel&gt; @everyone' },
      { content: 'Tea <!channel> @everyone', allowed_mentions: { parse: [] } },
      { text: 'Tea <!channel> @everyone', disable_web_page_preview: true },
    ]);
    expect(got.some(({ headers }) => 'webhook-signature' in headers)).to.equal(false);
  });

  it('is retried after growing delays of up to three hours', () => {
    const waits = [1, 2, 3, 4, 9].map(attempts => againMsAfter(attempts, 0.5));
    expect(waits).to.deep.equal([5_000, 20_000, 80_000, 320_000, 10_800_000]);
  });
});

describe('A server with webhooks', () => {
  let place: LedgerPlace;
  let ledger: Ledger;
  let teller: TargetTeller;

  beforeEach(async () => {
    place = await sqlitePlace();
    ledger = await openLedger({ ...forServer(place.url), ...OWNER });
    teller = new TargetTeller({ ledger, sender: SENDER, log: LOG });
  });

  afterEach(async () => {
    await teller.stop();
    await ledger.close();
    await place.remove();
  });

  async function startWith(url: string): Promise<void> {
    await teller.start([{ target: await targetAt(url), kinds: [] }]);
  }

  it('reports a sale immediately, and repeats a report that failed', async () => {
    let asked = 0;
    let done = (): void => {};
    const second = new Promise<void>(resolve => (done = resolve));
    const { url, got } = await receiver((_request, response) => {
      asked += 1;
      response.writeHead(asked === 1 ? 500 : 200).end();
      if (asked === 2) done();
    });
    await startWith(url);
    await delivered(ledger, payment());
    await second;
    expect(got[1]?.headers['webhook-id']).to.equal(got[0]?.headers['webhook-id']);
    expect(got[1]?.body).to.equal(got[0]?.body);
  });

  it('continues to sell while a webhook does not answer, and stops without waiting for it', async () => {
    const first = new Promise<void>(resolve => {
      void receiver(() => resolve())
        .then(({ url }) => startWith(url))
        .then(() => delivered(ledger, payment()));
    });
    await first;
    for (let n = 0; n < 5; n++) await delivered(ledger, payment());
    await teller.stop();
    expect((await ledger.eventsWaiting())[0]?.events).to.equal(6);
  });
});
