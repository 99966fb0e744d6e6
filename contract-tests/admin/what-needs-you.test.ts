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

describe('What the operator page says of a payment that needs somebody', () => {
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

  it('a rejected order has a page, which says so, and can be refunded and not retried', async () => {
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

  it('what can be retried leads to the question whether it shall be', async () => {
    const id = await owe(world, true);
    const needs = (await page('/')).html.split('id="came-in"')[0];
    expect(needs).to.include(`<a href="/payments/${id}/retry">Retry</a>`);
    expect((await page(`/payments/${id}/retry`)).html).to.include('Start another attempt?');
  });

  it('what the server works on is in progress, not owed, and a refund says that it ends the work', async () => {
    const id = await owe(world, false);
    for (const path of ['/', '/sales', `/payments/${id}`])
      expect((await page(path)).html, path)
        .to.match(/badge[^>]*>in progress</)
        .and.not.match(/badge[^>]*>owed</);
    expect((await page(`/payments/${id}/refund`)).html).to.include('still works on the answer');
    expect((await page(`/payments/${await owe(world, true)}/refund`)).html).to.not.include('still works');
  });

  it('a refund whose link nobody has paid stands at the top', async () => {
    const [id = ''] = await sell(world, {});
    await askRefund(world.ledger, id, {});
    const needs = (await page('/')).html.split('id="came-in"')[0];
    expect(needs)
      .to.include('A refund of 0.01 USDC is prepared and not paid')
      .and.include(`<a href="/payments/${id}/refund">`);
  });

  it('a receipt is found as people paste it out of a letter', async () => {
    const id = await owe(world, true);
    const answer = await fetch(`${world.url}/payments?id=${encodeURIComponent(`receipt “${id}”.`)}`, {
      headers: { cookie },
      redirect: 'manual',
    });
    expect(answer.headers.get('location')).to.equal(`/payments/${id}`);
  });

  it('a page that fails says so in the frame of the others, and the fault is logged', async () => {
    const id = await owe(world, true);
    const { find } = world.ledger;
    (world.ledger as { find: Ledger['find'] }).find = () => Promise.reject(new TypeError('no such thing'));
    const { status, html } = await page(`/payments/${id}`);
    (world.ledger as { find: Ledger['find'] }).find = find;
    expect(status).to.equal(500);
    expect(html).to.include('This page failed').and.include('href="/"').and.not.include('no such thing');
    expect(world.logged).to.include('a request of the admin listener failed');
  });
});
