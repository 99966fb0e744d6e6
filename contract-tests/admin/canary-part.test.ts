import { expect } from 'chai';
import { canaryHtml } from '../../src/admin/canary-part.js';
import type { CanaryRun } from '../../src/operator/canary-runs.js';
import { openOperatorWorld, OPERATOR_TOKEN, type OperatorWorld } from '../support/operator-world.js';

const NOW = Date.UTC(2026, 5, 30, 15, 20);
const PAYER = '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU';
const FINE: CanaryRun = {
  ...{ id: 'run-00000001', at: NOW - 3_600_000, tookMs: 812, payer: PAYER, operation: 'summarize' },
  ...{ payment: 'ab'.repeat(32), amount: '10000', settlement: 's' },
};
const FAILED: CanaryRun = { ...FINE, id: 'run-00000002', at: NOW - 60_000, fault: 'It is <cold>.' };

async function overviewOf({ url }: OperatorWorld): Promise<string> {
  const body = new URLSearchParams({ token: OPERATOR_TOKEN });
  const { headers } = await fetch(`${url}/login`, { method: 'POST', body, redirect: 'manual' });
  const cookie = (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  return (await fetch(`${url}/`, { headers: { cookie } })).text();
}

describe('The canary on the operator page', () => {
  it('shows each purchase, and how many failed', () => {
    const html = canaryHtml([FAILED, FINE], NOW, new Set([PAYER]));
    expect(html).to.include('It is &lt;cold&gt;.').and.include('812 ms').and.include('0.01');
    expect(html)
      .to.include(`/payments/${'ab'.repeat(32)}`)
      .and.include('Of the last 2, 1 failed.');
    expect(html).to.not.include('OWN_WALLETS');
  });

  it('warns when its purchases count as sales to a buyer', () => {
    expect(canaryHtml([FINE], NOW, new Set())).to.include('CANARY_KEYPAIR or OWN_WALLETS');
  });

  it('explains how to set one up', () => {
    expect(canaryHtml([], NOW, new Set())).to.include('“coinslot canary” buys once');
  });

  for (const [name, runs, needed] of [
    ['needs the operator while its last purchase failed', [FAILED, FINE], true],
    ['no longer needs the operator once a purchase succeeds', [{ ...FINE, at: NOW }, FAILED], false],
  ] as const)
    it(name, async () => {
      const world: OperatorWorld = await openOperatorWorld({ canary: async () => [...runs] });
      try {
        const page = await overviewOf(world);
        expect(page.includes('The last purchase by the canary failed, 60 s ago.')).to.equal(needed);
      } finally {
        await world.close();
      }
    });
});
