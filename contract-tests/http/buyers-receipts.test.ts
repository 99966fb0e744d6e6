import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import { AnswerKeys } from '../../src/http/answer-keys.js';
import { buyersReceipts } from '../../src/http/buyers-receipts.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { explorerOf } from '../../src/rails/solana/explorer.js';
import { paymentIn, sqlitePlace, type LedgerPlace, forServer } from '../support/ledger-places.js';
import { OWNER } from '../support/ledgers.js';
import { RELEASED } from '../support/sold.js';

const SETTLEMENT = '5'.repeat(88);

describe("the buyer's receipt", () => {
  let place: LedgerPlace;
  let ledger: Ledger;
  let keys: AnswerKeys;
  let server: Server;
  let url: string;
  beforeEach(async () => {
    place = await sqlitePlace();
    ledger = await openLedger({ ...forServer(place.url), ...OWNER });
    keys = await AnswerKeys.open(ledger, undefined);
    const app = new Koa();
    const terms = { publicUrl: 'https://pay.example', payTo: 'Receiver111' };
    const explorer = explorerOf('solana', 'mainnet');
    app.use(
      buyersReceipts({
        ...{ contract: RELEASED, terms, network: 'mainnet', ledger, answerKeys: keys, explorer },
        now: () => 0,
      }),
    );
    const answer = app.callback();
    server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/receipts/`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await ledger.close();
    await place.remove();
  });

  const receipt = async (id: string): Promise<{ status: number; text: string; headers: Headers }> => {
    const answer = await fetch(url + keys.linkOf({ id, number: 1 }).key);
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };

  it('says who sold what to whom, for how much and with which transaction, and can be printed', async () => {
    const of = { operation: 'summarize', amount: 25_000n, payer: 'Payer<i>', identifier: 'order 7 & 8' };
    const id = await paymentIn(ledger, 'delivered', { ...of, settlement: SETTLEMENT });
    const { status, text, headers } = await receipt(id);
    expect(status).to.equal(200);
    expect(text)
      .to.include('0.025 USDC')
      .and.include('Payer&lt;i&gt;')
      .and.include('order 7 &amp; 8')
      .and.include(id);
    expect(text).to.include('https://pay.example').and.include('Receiver111').and.include('delivered');
    expect(text).to.include(`href="https://explorer.solana.com/tx/${SETTLEMENT}"`);
    expect(text).not.to.match(/<script| style=|secret/);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('x-robots-tag')).to.equal('noindex');
    expect(headers.get('referrer-policy')).to.equal('no-referrer');
    expect(await (await fetch(`${url}style.css`)).text()).to.include('@media print');
  });

  it('shows what was refunded, and what is left', async () => {
    const id = await paymentIn(ledger, 'delivered', { operation: 'summarize', amount: 25_000n });
    const started = await ledger.startRepayment({ payment: id, amount: 5_000n, way: 'wallet', after: 1 });
    if (started.kind !== 'started') throw new Error(started.kind);
    expect((await receipt(id)).text).not.to.include('Refunded');
    await ledger.landRepayment(started.repayment.id, {
      signature: 'back',
      slot: 2_000,
      at: 1_000,
      source: 'x',
    });
    expect((await receipt(id)).text)
      .to.include('0.02 USDC after refunds')
      .and.match(/Refunded<\/dt><dd>0\.005 USDC on [^]*back/);
  });

  it('is only for those who have the key of the answer', async () => {
    const id = await paymentIn(ledger, 'delivered', { settlement: SETTLEMENT });
    const { key } = keys.linkOf({ id, number: 1 });
    const wrong = `${key.slice(0, -2)}${key.endsWith('AA') ? 'BB' : 'AA'}`;
    for (const other of [id, wrong, key.slice(1), SETTLEMENT]) {
      const answer = await fetch(url + other);
      expect([answer.status, (await answer.text()).includes('USDC')], other).to.deep.equal([404, false]);
    }
  });

  it('does not exist for a call that was not charged, or whose charge is not known yet', async () => {
    for (const [state, why] of [
      ['claimed', 'Nothing was charged'],
      ['released', 'Nothing was charged'],
      ['settling', 'It is not known yet'],
    ] as const) {
      const { status, text } = await receipt(await paymentIn(ledger, state));
      expect([status, text.includes(why), text.includes('0.50')], state).to.deep.equal([404, true, false]);
    }
    expect((await receipt(await paymentIn(ledger, 'owed'))).text).to.include('it is kept for you');
  });

  it('can be requested at a limited rate', async () => {
    const id = await paymentIn(ledger, 'delivered');
    const statuses: number[] = [];
    for (let n = 0; n < 25; n += 1) statuses.push((await receipt(id)).status);
    expect(statuses[0]).to.equal(200);
    expect(statuses).to.include(503);
  });
});

describe('the links to a block explorer', () => {
  it('name the network, and are left out for a chain that no explorer knows', () => {
    expect(explorerOf('solscan', 'mainnet')?.transaction('sig')).to.equal('https://solscan.io/tx/sig');
    expect(explorerOf('solscan', 'devnet')?.address('who')).to.equal(
      'https://solscan.io/account/who?cluster=devnet',
    );
    expect(explorerOf('solana', 'devnet')?.address('a/b')).to.equal(
      'https://explorer.solana.com/address/a%2Fb?cluster=devnet',
    );
    expect([explorerOf('solana', 'sandbox'), explorerOf('none', 'mainnet')]).to.deep.equal([
      undefined,
      undefined,
    ]);
  });
});
