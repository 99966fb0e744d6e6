import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  startShop,
  type Answer,
  type Fault,
  type SignedCall,
  type TestShop,
} from '../../src/testing/start-shop.js';
import { operationIn, SOLD, usdcOf } from '../support/sold.js';

const ROOT = new URL('../../../', import.meta.url);
const PATIENCE_MS = 60_000;

type Row = { fault: Fault; call: string; status: number; charged: string; later: number; inAll: string };

/** The table of docs/how-to/testing.md: what a buyer sees under each fault, and what the same payment gets once the fault has passed. */
function rows(): Row[] {
  const text = readFileSync(new URL('docs/how-to/testing.md', ROOT), 'utf8');
  const row =
    /^\| `(?<fault>[\w-]+)` \| `(?<call>\w+)` \| (?<status>\d+)\b[^|]*\| (?<charged>nothing|the price) \| (?<later>\d+) \| (?<inAll>nothing|the price) \|/gm;
  return [...text.matchAll(row)].map(({ groups = {} }) => ({
    fault: groups['fault'] as Fault,
    call: groups['call'] ?? '',
    status: Number(groups['status']),
    charged: groups['charged'] ?? '',
    later: Number(groups['later']),
    inAll: groups['inAll'] ?? '',
  }));
}

/** Sends the same payment again after a 503, at the time that the shop names, as clients do. */
async function finalAnswer({ send }: SignedCall): Promise<Answer> {
  const until = Date.now() + PATIENCE_MS;
  let answer = await send();
  while (answer.status === 503 && Date.now() < until) {
    await sleep(Number(answer.headers.get('retry-after') ?? 1) * 1000);
    answer = await send();
  }
  return answer;
}

describe('coinslot-sandbox/testing', function () {
  this.timeout(180_000);
  let shop: TestShop;

  before(async () => {
    // Holds calls for a shorter time than usual, which does not change the answers.
    shop = await startShop({ folder: fileURLToPath(ROOT), settings: { HOLD_SECONDS: '2' } });
  });
  after(() => shop?.stop());

  for (const { id, price, answers } of SOLD.paid)
    it(`sells ${id} for its price when called with the contract’s example`, async () => {
      const call = await shop.sign(id);
      expect(call.price).to.equal(price.amount);
      const spent = Number(await shop.spent());
      const answer = await finalAnswer(call);
      expect([answer.status, answer.receipt?.success], answer.error).to.deep.equal([200, true]);
      expect(answer.headers.get('content-type')).to.contain(answers[0].mimeType);
      expect(Number(await shop.spent()) - spent).to.be.closeTo(Number(price.amount), 1e-9);
    });

  it('refuses invalid requests with the reason', async () => {
    await expectFault(shop.buy('nothing'), /There is no operation nothing\. Operations: /);
    await expectFault(shop.buy('getHealth'), /getHealth asks for no payment: 200/);
    await expectFault(shop.inject('fire' as Fault), /There is no fault fire\. Faults: settle-unknown, /);
    await expectFault(startShop({ folder: '/' }), /There is no openapi\.yaml in \//);
  });

  it('reports why a shop did not start', async () => {
    const wrong = startShop({ folder: fileURLToPath(ROOT), settings: { HOLD_SECONDS: 'long' } });
    await expectFault(wrong, /ended before it was ready. Its output:[^]*HOLD_SECONDS: 'long'/);
  });

  it('has every fault that the table of docs/how-to/testing.md lists', async () => {
    const refusal = await shop.inject('fire' as Fault).catch((error: Error) => error.message);
    const [, list = ''] = /Faults: (.*)\.$/.exec(String(refusal)) ?? [];
    expect([...new Set(rows().map(({ fault }) => fault))].sort()).to.deep.equal(list.split(', ').sort());
  });

  for (const { fault, call: id, status, charged, later, inAll } of rows())
    it(`under ${fault}, a call of ${id} gets ${status} and is charged ${charged}; afterwards the same payment gets ${later}`, async () => {
      const amount = (words: string): string => (words === 'nothing' ? '0.00' : usdcOf(id));
      const before = Number(await shop.spent());
      const call = await shop.sign(id);
      await shop.inject(fault);
      try {
        const answer = await call.send();
        expect(answer.status, answer.error).to.equal(status);
        expect(answer.charged).to.equal(amount(charged));
        if (status === 503) expect(Number(answer.headers.get('retry-after'))).to.be.at.least(1);
        if (charged === 'nothing' && status === 200) expect(answer.receipt?.success).to.equal(true);
      } finally {
        await shop.clear();
      }
      const last = await finalAnswer(call);
      expect(last.status, last.error).to.equal(later);
      expect(Number(await shop.spent()) - before).to.be.closeTo(Number(amount(inAll)), 1e-9);
    });

  it('after a price change, a new payment costs the new price', async () => {
    const { id, price } = operationIn(SOLD, SOLD.paid[0]?.id ?? '');
    await shop.inject('price-change');
    const answer = await shop.buy(id);
    await shop.clear();
    expect(answer.status).to.equal(200);
    expect(Number(answer.charged)).to.be.closeTo(2 * Number(price.amount), 1e-9);
  });
});

async function expectFault(promise: Promise<unknown>, message: RegExp): Promise<void> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect((error as Error | undefined)?.message).to.match(message);
}
