import { expect } from 'chai';
import type { Ledger } from '../../src/ledger/store.js';
import { askRefund } from '../../src/operator/ask-refund.js';
import {
  openOperatorWorld,
  OPERATOR_TOKEN,
  owe,
  sell,
  type OperatorWorld,
} from '../support/operator-world.js';

describe('the operator page, on payments that need the operator', () => {
  let world: OperatorWorld;
  let cookie: string;

  beforeEach(async () => {
    world = await openOperatorWorld();
    const body = new URLSearchParams({ token: OPERATOR_TOKEN });
    const entered = await fetch(`${world.url}/login`, { method: 'POST', body, redirect: 'manual' });
    cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
  });
  afterEach(() => world.close());

  async function page(path: string): Promise<{ status: number; html: string }> {
    const answer = await fetch(`${world.url}${path}`, { headers: { cookie } });
    return { status: answer.status, html: await answer.text() };
  }

  it('shows that a rejected order was rejected, and that it can be refunded but not retried', async () => {
    const id = await owe(world, true);
    expect(await world.ledger.rejectOrder(id, 'It asks for a person by name.')).to.equal(true);
    const { status, html } = await page(`/payments/${id}`);
    expect(status).to.equal(200);
    expect(html).to.include('You rejected this order').and.include('It asks for a person by name.');
    expect(html).to.include(`href="/payments/${id}/refund"`).and.not.include(`/payments/${id}/retry`);
    expect((await page(`/payments/${id}/retry`)).status).to.equal(409);
    const needs = (await page('/')).html.split('id="came-in"')[0];
    expect(needs).to.include('It asks for a person by name.').and.include(`/payments/${id}/refund`);
    expect(needs).to.not.include(`/payments/${id}/retry`);
  });

  it('links to a confirmation page for every order that can be retried', async () => {
    const id = await owe(world, true);
    const needs = (await page('/')).html.split('id="came-in"')[0];
    expect(needs).to.include(`<a href="/payments/${id}/retry">Retry</a>`);
    expect((await page(`/payments/${id}/retry`)).html).to.include('Start another attempt?');
  });

  it('shows a payment that the server is working on as in progress rather than owed, and warns before a refund', async () => {
    const id = await owe(world, false);
    for (const path of ['/', '/sales', `/payments/${id}`])
      expect((await page(path)).html, path)
        .to.match(/badge[^>]*>in progress</)
        .and.not.match(/badge[^>]*>owed</);
    expect((await page(`/payments/${id}/refund`)).html).to.include('is still working on the answer');
    expect((await page(`/payments/${await owe(world, true)}/refund`)).html).to.not.include('still works');
  });

  it('lists a refund whose link nobody has paid at the top', async () => {
    const [id = ''] = await sell(world, {});
    await askRefund(world.ledger, id, {});
    const needs = (await page('/')).html.split('id="came-in"')[0];
    expect(needs)
      .to.include('A refund of 0.01 USDC was prepared')
      .and.include(`<a href="/payments/${id}/refund">`);
  });

  it('finds a payment when its receipt number is pasted from an e-mail with the words around it', async () => {
    const id = await owe(world, true);
    const answer = await fetch(`${world.url}/payments?id=${encodeURIComponent(`receipt “${id}”.`)}`, {
      headers: { cookie },
      redirect: 'manual',
    });
    expect(answer.headers.get('location')).to.equal(`/payments/${id}`);
  });

  it('shows an error page in the usual layout, and logs the error', async () => {
    const id = await owe(world, true);
    const { find } = world.ledger;
    (world.ledger as { find: Ledger['find'] }).find = () => Promise.reject(new TypeError('no such thing'));
    const { status, html } = await page(`/payments/${id}`);
    (world.ledger as { find: Ledger['find'] }).find = find;
    expect(status).to.equal(500);
    expect(html).to.include('This page failed').and.include('href="/"').and.not.include('no such thing');
    expect(world.logged).to.include('a request to the admin listener failed');
  });
});
