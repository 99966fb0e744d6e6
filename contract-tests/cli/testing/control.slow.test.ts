import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { operationIn, SOLD } from '../../support/sold.js';

const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url));
const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const ENDED_MS = 20_000;
const [{ id, price }] = [operationIn(SOLD, SOLD.paid[0]?.id ?? '')];

type Facts = { url: string; rpcUrl: string; control: string };
type Answer = Record<string, unknown>;

async function answers(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(5_000) }).then(
    () => true,
    () => false,
  );
}

describe('coinslot testing', function () {
  this.timeout(90_000);
  let child: ChildProcess;
  let facts: Facts;

  before(async () => {
    // The environment of the command names another network, which must not reach the shop.
    child = spawn(process.execPath, [MAIN, 'testing', '--setting', 'HOLD_SECONDS=3'], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], NETWORK: 'mainnet', DATABASE_URL: 'postgres://nowhere' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const line = once(createInterface(child.stdout!), 'line') as Promise<[string]>;
    const gone = once(child, 'exit').then(() => Promise.reject(new Error('coinslot testing ended')));
    gone.catch(() => undefined);
    facts = JSON.parse((await Promise.race([line, gone]))[0]) as Facts;
  });
  after(() => void child?.kill('SIGKILL'));

  async function command(name: string, given: object = {}, headers = {}): Promise<[number, Answer]> {
    const body = JSON.stringify(given);
    const answer = await fetch(`${facts.control}/${name}`, { method: 'POST', body, headers });
    return [answer.status, (await answer.json()) as Answer];
  }

  it('prints where everything is, and prints it again on request', async () => {
    const again = await fetch(facts.control);
    expect(await again.json())
      .to.deep.equal(facts)
      .and.to.include.keys('url', 'rpcUrl', 'buyer', 'network', 'usdcMint', 'payTo');
    expect(await answers(`${facts.url}/health`)).to.equal(true);
  });

  it('buys a call, and reports answer, price, receipt and charge', async () => {
    const [status, bought] = await command('buy', { operationId: id });
    expect(status).to.equal(200);
    expect(bought).to.include({ status: 200, price: price.amount, charged: price.amount });
    expect(bought)
      .to.have.nested.property('receipt.success', true)
      .and.satisfy(() => bought['json'] ?? bought['body']);
    const [, again] = await command('send', { call: bought['call'] });
    expect(again).to.include({ status: 200, charged: '0.00' });
    const spent = (await (await fetch(`${facts.control}/spent`)).json()) as Answer;
    expect(spent).to.deep.equal({ spent: price.amount });
  });

  it('injects a fault between the signing and the sending of a call, and clears the fault', async () => {
    const [, signed] = await command('sign', { operationId: id });
    await command('inject', { fault: 'settle-unknown' });
    const [, answer] = await command('send', signed);
    expect(answer).to.include({ status: 503, charged: '0.00' });
    expect(await command('clear')).to.deep.equal([200, {}]);
    const [, bought] = await command('buy', { operationId: id });
    expect(bought).to.include({ status: 200 });
  });

  it('refuses invalid commands, and everything that web pages send', async () => {
    const [, { error: fault }] = await command('inject', { fault: 'fire' });
    expect(fault).to.match(/^There is no fault fire\. Faults: /);
    expect(await command('buy')).to.deep.equal([400, { error: 'operationId is missing: which call is it?' }]);
    expect(await command('send', { call: '99' })).to.deep.equal([400, { error: 'No call 99 was signed.' }]);
    expect((await command('fire'))[0]).to.equal(404);
    const page = { origin: 'https://page.example' };
    expect((await command('clear', {}, page))[1]).to.deep.equal({
      error: 'Web pages may not send commands.',
    });
  });

  it('leaves neither shop nor sandbox running when it is killed', async () => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    const until = Date.now() + ENDED_MS;
    let left = [facts.url, `${facts.rpcUrl}/health`];
    while (left.length > 0 && Date.now() < until) {
      const alive = await Promise.all(left.map(answers));
      left = left.filter((_url, n) => alive[n]);
      if (left.length > 0) await sleep(100);
    }
    expect(left).to.deep.equal([]);
  });
});
