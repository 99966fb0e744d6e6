import { expect } from 'chai';
import { LedgerFault } from '../../src/ledger/fault.js';
import { paymentIn } from '../support/ledger-places.js';
import {
  leaveUnresolved,
  openOperatorWorld,
  OPERATOR_TOKEN,
  owe,
  sell,
  type OperatorWorld,
} from '../support/operator-world.js';
import { OperatorFault } from '../../src/operator/operator-fault.js';

const TX = '5'.repeat(88);

describe('the operator page', () => {
  let world: OperatorWorld;
  let cookie: string;
  let refusal: Error | undefined;

  beforeEach(async () => {
    refusal = undefined;
    const asked: [string, string][] = [];
    world = await openOperatorWorld({
      refund: async (id, tx) => {
        if (refusal) throw refusal;
        asked.push([id, tx]);
      },
    });
    world.asked.refunds = asked;
    cookie = '';
  });
  afterEach(() => world.close());

  async function get(path: string): Promise<{ status: number; text: string; headers: Headers }> {
    const answer = await fetch(world.url + path, { headers: { cookie }, redirect: 'manual' });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  }

  async function post(path: string, fields: Record<string, string>, headers: Record<string, string> = {}) {
    const body = new URLSearchParams(fields);
    const answer = await fetch(world.url + path, {
      method: 'POST',
      body,
      redirect: 'manual',
      headers: { cookie, ...headers },
    });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  }

  async function signIn(): Promise<string> {
    const { headers, status } = await post('/login', { token: OPERATOR_TOKEN });
    expect(status).to.equal(303);
    cookie = (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    return headers.get('set-cookie') ?? '';
  }

  const keyIn = (text: string): string => /name="form" value="([^"]+)"/.exec(text)?.[1] ?? '';

  it('shows nothing to visitors who have not signed in', async () => {
    const id = await owe(world, true);
    expect((await get('/')).text)
      .to.include('Sign in with')
      .and.not.include('Newest sales');
    for (const path of [
      '/overview',
      '/live',
      `/payments/${id}`,
      `/payments?id=${id}`,
      `/payments/${id}/refund`,
      `/payments/${id}/retry`,
    ]) {
      const { status, text } = await get(path);
      expect(status, path).to.equal(401);
      expect(text, path).to.not.include(id).and.not.include('Sign in failed');
      expect(text, path).to.include('Sign in and open it again.');
    }
    const sent = await post(`/payments/${id}/retry`, { form: 'x' });
    expect([sent.status, sent.text.includes('Sign in and send it again.')]).to.deep.equal([401, true]);
    expect((await post(`/payments/${id}/refund`, { form: 'x', tx: TX })).status).to.equal(401);
    expect((await post('/login', { token: 'a wrong token of enough characters' })).status).to.equal(401);
    expect(world.logged).to.deep.equal(['a wrong token was sent to the operator page']);
    expect(world.asked).to.deep.equal({ refunds: [], retries: [] });
  });

  it("signs in with a cookie that scripts and other sites can't get, and signs out again", async () => {
    expect(await signIn())
      .to.match(/; path=\/;/)
      .and.include('samesite=strict')
      .and.include('httponly');
    const { text, headers } = await get('/');
    expect(headers.get('content-security-policy')).to.include("default-src 'none'").and.not.include('unsafe');
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(text).to.not.match(/ on[a-z]+=| style=|<script>/);
    expect((await post('/logout', { form: keyIn(text) })).status).to.equal(303);
    expect((await get('/overview')).status).to.equal(401);
  });

  it('shows today, thirty days, the newest sales, and what is owed or unresolved', async () => {
    await sell(world, { daysAgo: 31, operation: 'tooOld' });
    await sell(world, { daysAgo: 29, sales: 2, operation: 'old' });
    await sell(world, { sales: 3, operation: 'summarize' });
    const [owed, unresolved] = [await owe(world, true), await leaveUnresolved(world)];
    const inProgress = await owe(world, false);
    await signIn();
    const { text } = await get('/');
    const part = (id: string): string =>
      new RegExp(`<section [^>]*id="${id}"[^]*?</section>`).exec(text)?.[0] ?? '';
    expect(part('came-in')).to.include('<strong>7</strong>').and.include('USDC by 5 sales');
    expect(part('came-in')).to.match(
      /2026-06-01<\/th>(<td[^>]*>[\d.]+<\/td>)*<td[^>]*>0\.02<\/td><td[^>]*>2<\/td><\/tr>/,
    );
    expect(part('came-in')).to.not.include('tooOld');
    expect(part('needs')).to.include(owed).and.include(unresolved).and.not.include(inProgress);
    expect(part('orders')).to.include(inProgress);
    expect(part('sales')).to.include('tooOld').and.not.include(unresolved);
    expect(part('healthy')).to.include('open, next try in 4 s');
  });

  it('shows each step from the price to the sale, and says which counts a restart resets', async () => {
    await sell(world, { sales: 3, operation: 'summarize' });
    await sell(world, { daysAgo: 2, operation: 'summarize' });
    await signIn();
    const { text } = await get('/');
    const part = /<section [^>]*id="operations"[^]*?<\/section>/.exec(text)?.[0] ?? '';
    const cells = [...part.matchAll(/<td[^>]*>(.*?)<\/td>/g)].map(([, cell = '']) => cell);
    expect(cells.slice(0, 5)).to.deep.equal([
      '<code>summarize</code>',
      '200',
      '10 + 2 own',
      '5.0 %',
      'funds: 3',
    ]);
    expect(cells.slice(5, 10)).to.deep.equal(['<code>textToSpeech</code>', '0', '0', '–', '0']);
    expect(cells.slice(10)).to.deep.equal(['<code>summarize</code>', '4', '0', '1', '1']);
    expect(part).to.include('Since this server started').and.include('a restart begins at 0');
  });

  it("marks the operator's own purchases", async () => {
    const [id = ''] = await sell(world, { sales: 2 });
    const { payer } = (await world.ledger.find(id)) ?? { payer: '' };
    await world.close();
    world = await openOperatorWorld({ ownWallets: new Set([payer]) });
    await sell(world, { sales: 2 });
    await signIn();
    const { text } = await get('/');
    const part = (name: string): string =>
      new RegExp(`<section [^>]*id="${name}"[^]*?</section>`).exec(text)?.[0] ?? '';
    expect(part('came-in')).to.include('>2 from your own wallets').and.include('0.02 from your own wallets');
    expect(part('sales').split('your own')).to.have.length(3);
    expect(part('operations')).to.match(/summarize<\/code><\/td><td[^>]*>0<\/td><td[^>]*>2<\/td><td[^>]*>0</);
  });

  const attention = async (): Promise<string> =>
    /<div id="attention"[^]*?<\/section>/.exec((await get('/')).text)?.[0] ?? '';

  it('shows what needs attention, even if more than a page of older orders are in progress', async () => {
    for (let n = 0; n < 55; n += 1) await owe(world, false);
    await signIn();
    expect(await attention())
      .to.not.include('Owed')
      .and.not.include('The oldest');
    world.clock.now += 1;
    const first = await owe(world, true);
    expect(await attention())
      .to.include(first)
      .and.include('Owed: paid, not yet answered')
      .and.not.include('The oldest');
    world.clock.now += 1;
    for (let n = 0; n < 50; n += 1) await owe(world, true);
    expect(await attention())
      .to.include(first)
      .and.include('The oldest 50 of 51.');
  });

  it('shows an overdue order, because it may have no worker', async () => {
    const late = await owe(world, false);
    await signIn();
    expect(await attention()).to.not.include(late);
    world.clock.now += 20 * 60_000;
    expect(await attention())
      .to.include(late)
      .and.not.include('orders in progress');
  });

  it('escapes text from callers', async () => {
    const hostile = '<img src=x onerror=alert(1)>';
    await sell(world, { operation: hostile });
    const id = await paymentIn(world.ledger, 'owed', { payer: hostile, identifier: hostile });
    await signIn();
    for (const path of ['/', `/payments/${id}`, `/payments/${id}/refund`]) {
      const { text } = await get(path);
      expect(text).to.not.include('<img');
      expect(text).to.include('&lt;img');
    }
  });

  it('finds a payment by the beginning of its id, and reports if no payment matches', async () => {
    const id = await leaveUnresolved(world);
    await signIn();
    expect((await get(`/payments?id=${id.slice(0, 10)}`)).headers.get('location')).to.equal(
      `/payments/${id}`,
    );
    expect((await get('/payments?id=0123456789')).text).to.include('There is no payment 0123456789');
    expect((await get(`/payments/${'0'.repeat(64)}`)).status).to.equal(404);
    const { text } = await get(`/payments/${id}`);
    expect(text).to.include('settling: a facilitator was asked').and.not.include('Refund…');
    // The signed transaction is a bearer token.
    expect(text).to.not.include('AAAA');
  });

  it('finds a payment by what its buyer quotes, and lists all matches', async () => {
    const one = await paymentIn(world.ledger, 'delivered', {
      payer: 'PayerOfOne',
      identifier: 'shared-identifier',
    });
    const other = await paymentIn(world.ledger, 'delivered', {
      payer: 'PayerOfMany',
      identifier: 'shared-identifier',
    });
    const settlement = '4'.repeat(88);
    const third = await paymentIn(world.ledger, 'delivered', { payer: 'PayerOfMany', settlement });
    await signIn();
    const placeOf = async (text: string) => (await get(`/payments?id=${text}`)).headers.get('location');
    expect(await placeOf(settlement)).to.equal(`/payments/${third}`);
    expect(await placeOf('PayerOfOne')).to.equal(`/payments/${one}`);
    expect(await placeOf('PayerOfMany')).to.equal('/payers/PayerOfMany');
    const { status, text } = await get('/payments?id=shared-identifier');
    expect([
      status,
      text.includes(`/payments/${one}`),
      text.includes(`/payments/${other}`),
      text.includes(third),
    ]).to.deep.equal([200, true, true, false]);
  });

  it('lists sales page by page, filters them, and offers all of them as a file', async () => {
    await sell(world, { daysAgo: 3, sales: 60, operation: 'summarize' });
    await sell(world, { sales: 60, operation: 'textToSpeech' });
    const owed = await owe(world, true);
    await signIn();
    const idsIn = (text: string): string[] =>
      [...text.matchAll(/href="\/payments\/([0-9a-f]{64})"/g)].map(([, id = '']) => id);
    const seen: string[] = [];
    for (let path = '/sales?operation=summarize'; path !== '';) {
      const { text } = await get(path);
      seen.push(...idsIn(text));
      path = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';
    }
    expect([seen.length, new Set(seen).size]).to.deep.equal([60, 60]);
    expect(idsIn((await get('/sales?state=owed')).text)).to.deep.equal([owed]);
    expect(idsIn((await get('/sales?from=2026-06-27&to=2026-06-27')).text)).to.have.length(50);
    expect((await get('/sales?from=2026-07-01')).text).to.include('No sale matches.');
    expect((await get('/sales?from=yesterday')).status).to.equal(400);
    const csv = await get('/sales.csv');
    expect(csv.headers.get('content-type')).to.equal('text/csv; charset=utf-8');
    const lines = csv.text.trim().split('\r\n');
    expect([lines.length, lines[0]?.split(',')[0]]).to.deep.equal([122, 'settled_at']);
    expect((await get('/sales.csv?state=owed')).text.trim().split('\r\n')[1]).to.include(
      `,${owed},brandFeedback,0.50,0.00,owed,`,
    );
  });

  it('shows a payer: what it paid, what it was refunded, and what it bought', async () => {
    const ids = await sell(world, { sales: 2 });
    const { payer = '' } = (await world.ledger.find(ids[0] ?? '')) ?? {};
    await signIn();
    const { text } = await get(`/payers/${payer}`);
    expect(text).to.include('<dt>Sales</dt><dd>2</dd>').and.include('<dd>0.02 USDC</dd>').and.include(ids[1]);
    expect((await get('/')).text).to.include(`href="/payers/${payer}"`);
    expect((await get('/payers/Nobody')).status).to.equal(404);
  });

  it('shows an order: its progress, its deadline and its next step', async () => {
    const [failed, open] = [await owe(world, true), await owe(world, false)];
    await signIn();
    const orderOf = async (id: string): Promise<string> =>
      /<section [^>]*h-order[^]*?<\/section>/.exec((await get(`/payments/${id}`)).text)?.[0] ?? '';
    expect(await orderOf(open))
      .to.include('<dd>0 of 5</dd>')
      .and.include('1, in progress')
      .and.include('2026-06-30 15:40:00')
      .and.not.include('Next attempt');
    expect(await orderOf(failed))
      .to.include('1, ended')
      .and.include('Next attempt');
    const [sold = ''] = await sell(world, {});
    expect(await orderOf(sold)).to.equal('');
  });

  it('shows no sales, payers or totals to anyone who is not signed in', async () => {
    const [id = ''] = await sell(world, {});
    for (const path of ['/sales', '/sales.csv', '/payers/x', '/overview?period=7d']) {
      const { status, text } = await get(path);
      expect([path, status, text.includes(id)]).to.deep.equal([path, 401, false]);
    }
  });

  it('says what to do next while nothing has been sold', async () => {
    await signIn();
    const { text } = await get('/?period=7d');
    expect(text).to.include('Nothing was sold in the last 7 days.').and.include('coinslot buy');
    expect(text).to.include('<a href="/?period=7d" aria-current="true">');
    expect((await get('/sales')).text).to.include('Nothing has been sold yet.');
  });

  it('starts another attempt at a failed order, after the operator confirms', async () => {
    const [failed, open] = [await owe(world, true), await owe(world, false)];
    await signIn();
    const form = keyIn((await get(`/payments/${failed}/retry`)).text);
    expect((await post(`/payments/${failed}/retry`, {})).status).to.equal(403);
    expect(
      (await post(`/payments/${failed}/retry`, { form }, { 'sec-fetch-site': 'same-site' })).status,
    ).to.equal(403);
    expect(
      (await post(`/payments/${failed}/retry`, { form }, { origin: 'http://127.0.0.1:1' })).status,
    ).to.equal(403);
    expect((await post(`/payments/${open}/retry`, { form })).status).to.equal(409);
    expect(world.asked.retries).to.deep.equal([]);
    const { status, headers } = await post(`/payments/${failed}/retry`, { form });
    expect(status).to.equal(303);
    expect((await get(headers.get('location') ?? '')).text).to.include('Another attempt has been started.');
    expect(world.asked.retries).to.deep.equal([failed]);
  });

  it('says that interrupted work is paused, and can start another attempt', async () => {
    const id = await owe(world, false);
    const { claim } = (await world.ledger.adopt(id, 60_000))!;
    const attempt = { deadline: world.clock.now + 600_000, attemptMs: 600_000 };
    const next = (await world.ledger.beginOrder(id, attempt))?.nextAttemptAt ?? 0;
    await signIn();
    expect((await get(`/payments/${id}`)).text).to.include('the server is working on the answer');
    await world.ledger.extendLease(id, claim, 0);
    const { text } = await get(`/payments/${id}`);
    expect(text).to.include(`interrupted. A server continues with it after ${new Date(next).toISOString()}`);
    const form = keyIn((await get(`/payments/${id}/retry`)).text);
    expect((await post(`/payments/${id}/retry`, { form })).status).to.equal(303);
    world.clock.now = next;
    expect((await post(`/payments/${id}/retry`, { form })).status).to.equal(409);
  });

  it('does not claim to have started an attempt that began elsewhere in the meantime', async () => {
    const failed = await owe(world, true);
    world.startsAttempts = false;
    await signIn();
    const form = keyIn((await get(`/payments/${failed}/retry`)).text);
    const { status, text } = await post(`/payments/${failed}/retry`, { form });
    expect(status).to.equal(409);
    expect(text).to.include('an attempt is in progress. Nothing was changed.');
  });

  it("records a refund, or says why it can't and keeps the input", async () => {
    const id = await owe(world, true);
    await signIn();
    const page = await get(`/payments/${id}/refund`);
    expect(page.text).to.include('0.50 USDC').and.include('Receiver111');
    const form = keyIn(page.text);
    const bad = await post(`/payments/${id}/refund`, { form, tx: 'not one' });
    expect([bad.status, bad.text.includes('64 to 88 base58 characters')]).to.deep.equal([400, true]);
    refusal = new OperatorFault(
      `The transaction ${TX} does not refund payment ${id}: it failed. Nothing was changed.`,
    );
    const refused = await post(`/payments/${id}/refund`, { form, tx: TX });
    expect(refused.status).to.equal(400);
    expect(refused.text).to.include('it failed. Nothing was changed.').and.include(`value="${TX}"`);
    expect(world.asked.refunds).to.deep.equal([]);
    refusal = undefined;
    expect((await post(`/payments/${id}/refund`, { form, tx: ` ${TX} ` })).status).to.equal(303);
    expect(world.asked.refunds).to.deep.equal([[id, TX]]);
    const unpaid = await leaveUnresolved(world);
    expect((await post(`/payments/${unpaid}/refund`, { form, tx: TX })).status).to.equal(409);
    expect(world.asked.refunds).to.have.length(1);
  });

  it('makes and cancels the QR code of a refund, including partial refunds and those of delivered payments', async () => {
    const [id = ''] = await sell(world, {});
    await signIn();
    expect((await get(`/payments/${id}`)).text).to.include('Refund…');
    const page = await get(`/payments/${id}/refund`);
    const form = keyIn(page.text);
    expect(page.text).to.include('value="0.01"').and.not.include('<svg');
    const link = (fields: Record<string, string>) => post(`/payments/${id}/refund/link`, { form, ...fields });
    for (const [amount, why] of [
      ['0.02', `Only 0.01 USDC of payment ${id} can be refunded, not 0.02`],
      ['1e3', 'is not a decimal string'],
      ['-1', 'is not a decimal string'],
      ['0', 'must be more than zero'],
    ] as const) {
      const { status, text } = await link({ amount });
      expect([status, text.includes(why)], amount).to.deep.equal([400, true]);
    }
    expect(await world.ledger.repaymentsOf(id)).to.deep.equal([]);
    expect((await link({ amount: '0.004', reason: '<b>broken</b>' })).status).to.equal(303);
    const [refund] = await world.ledger.repaymentsOf(id);
    expect(refund).to.include({ amount: 4_000n, reason: '<b>broken</b>', state: 'asked' });
    const { text } = await get(`/payments/${id}/refund`);
    const payer = (await world.ledger.find(id))?.payer ?? '';
    expect(text).to.match(/<svg class="qr" role="img"/);
    expect(text)
      .to.include(`href="solana:${payer}?amount=0.004&amp;spl-token=`)
      .and.include(`refund:${refund?.id}`);
    expect((await post(`/payments/${id}/refund/cancel`, { form: 'x' })).status).to.equal(403);
    expect((await post(`/payments/${id}/refund/cancel`, { form })).status).to.equal(303);
    const shown = (await get(`/payments/${id}`)).text;
    expect(shown).to.include('cancelled').and.include('&lt;b&gt;broken&lt;/b&gt;').and.not.include('<b>');
    await link({ amount: '0.01' });
    const second = (await world.ledger.repaymentsOf(id)).find(({ state }) => state === 'asked');
    const landed = { signature: '3'.repeat(88), slot: 2_000, at: world.clock.now, source: 'Receiver111' };
    expect(await world.ledger.landRepayment(second?.id ?? '', landed)).to.equal('done');
    const done = (await get(`/payments/${id}`)).text;
    expect(done).to.include('refunded in full').and.not.include('Refund…');
    expect(done).to.include(`href="https://solscan.io/tx/${'3'.repeat(88)}?cluster=devnet"`);
    expect((await get(`/payments/${id}/refund`)).status).to.equal(409);
  });

  it('subtracts what was refunded in a period from what came in', async () => {
    const [id = ''] = await sell(world, { sales: 3 });
    const tiles = async (period = '30d'): Promise<string> =>
      /class="tiles">(.*?)<\/div>\n/.exec((await get(`/?period=${period}`)).text)?.[1] ?? '';
    await signIn();
    expect(await tiles()).to.match(/Earned<\/span><strong>0\.03<\/strong>/);
    const started = await world.ledger.startRepayment({
      payment: id,
      amount: 2_500n,
      way: 'wallet',
      after: 1,
    });
    if (started.kind !== 'started') throw new Error(started.kind);
    const landed = {
      signature: 'back',
      slot: 2_000,
      at: world.clock.now - 2 * 86_400_000,
      source: 'Receiver111',
    };
    await world.ledger.landRepayment(started.repayment.id, landed);
    expect(await tiles()).to.match(/Earned<\/span><strong>0\.0275<\/strong>.*0\.03 less 0\.0025 refunded/);
    expect(await tiles('24h')).to.match(/Earned<\/span><strong>0\.03<\/strong>/);
  });

  it('offers every movement of a month as files, to the operator only', async () => {
    const [id = ''] = await sell(world, {});
    expect((await get('/books/2026-06/movements')).status).to.equal(401);
    await signIn();
    const page = (await get('/books')).text;
    const links = [...page.matchAll(/href="(\/books\/2026-06\/\w+)"/g)].map(([, path = '']) => path);
    expect(links).to.have.length(5);
    for (const path of links) {
      const { status, text, headers } = await get(path);
      expect([status, text.includes(id)], path).to.deep.equal([200, true]);
      expect(headers.get('content-disposition')).to.match(/^attachment; filename="movements-2026-06\.\S+"$/);
    }
    expect((await get('/books/2026-05/movements')).text.trim().split('\r\n')).to.have.length(1);
    for (const path of ['/books/2026-13/movements', '/books/2026-06/nothing', '/books/x/constructor'])
      expect((await get(path)).status, path).to.equal(404);
  });

  it("shows at the top what needs the operator's attention, and why the shop is not well", async () => {
    const id = await owe(world, true);
    await signIn();
    const { text } = await get('/');
    const [, needs = ''] = /<section[^>]*id="needs"[^>]*>([^]*?)<\/section>/.exec(text) ?? [];
    expect(needs).to.include(
      `1 payment has no answer.</strong> <span>The money has moved: <a href="/payments/${id}/retry">Retry</a> or <a href="/payments/${id}/refund">refund</a>`,
    );
    expect(needs).to.include('does not list summarize: info failed schema validation.');
    expect(needs).to.include('the last 2 calls failed: no answer within 20 s');
    expect(needs).to.include('backup.facilitator.example:').and.not.include('facilitator.payai.network:');
  });

  it('shows the operator delivered and waiting webhook events, and sends an event again on request', async () => {
    await world.ledger.setTargets([{ name: 'chat.example-1', kinds: [] }]);
    await world.ledger.refreshTargets();
    await sell(world, {});
    world.clock.now += 1_000;
    expect((await get('/events')).status).to.equal(401);
    await signIn();
    const [event] = await world.ledger.takeEvents('chat.example-1', 1);
    const { seq = 0 } = event ?? {};
    await world.ledger.attempted([{ seq, attempt: 1, answer: '500 <b>', againMs: 60_000 }]);
    const waiting = await get('/events');
    expect(waiting.text).to.include('sale.paid').and.include('chat.example-1').and.include('500 &lt;b&gt;');
    expect(waiting.text).to.include('again in 60 s');
    await world.ledger.attempted([{ seq, attempt: 1, answer: '200' }]);
    expect((await get('/events')).text).to.include('<span class="badge good">told</span>');
    const form = keyIn(waiting.text);
    expect((await post(`/events/${seq}`, { form: 'x' })).status).to.equal(403);
    expect(await world.ledger.takeEvents('chat.example-1', 1)).to.deep.equal([]);
    expect((await post(`/events/${seq}`, { form })).status).to.equal(303);
    expect((await world.ledger.takeEvents('chat.example-1', 1))[0]?.seq).to.equal(seq);
    expect((await post('/events/999', { form })).status).to.equal(404);
  });

  it("still works when the ledger can't be read, and says what is missing", async () => {
    await world.close();
    const broken = async (): Promise<never> => {
      throw new LedgerFault('failed', 'The database does not answer.');
    };
    world = await openOperatorWorld();
    for (const name of [
      'salesAfter',
      'listSales',
      'newestSales',
      'undecided',
      'list',
      'openOrders',
      'find',
    ] as const)
      Object.assign(world.ledger, { [name]: broken });
    await signIn();
    const { status, text } = await get('/');
    expect(status).to.equal(200);
    expect(text).to.include('The ledger cannot be read at the moment: The database does not answer.');
    expect(text).to.include('facilitator.payai.network');
    const payment = await get(`/payments/${'a'.repeat(64)}`);
    expect(payment.status).to.equal(503);
    expect(payment.text).to.include('The database does not answer.');
  });
});
