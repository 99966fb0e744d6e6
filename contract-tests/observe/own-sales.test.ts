import { expect } from 'chai';
import { Registry } from 'prom-client';
import { createMetrics } from '../../src/observe/metrics.js';
import type { Sold } from '../../src/observe/observer.js';

const sold = (payer: string): Sold => ({
  kind: 'sold',
  operation: 'summarize',
  payment: 'ab',
  payer,
  amount: 10_000n,
  settlement: '5',
});

describe('the metrics of a shop in which the operator also buys', () => {
  it("count the operator's purchases both among all sales and separately", async () => {
    const metrics = createMetrics(
      [{ id: 'summarize', flow: 'authorization' }],
      () => undefined,
      new Registry(),
      new Set(['Mine']),
    );
    for (const payer of ['Mine', 'Theirs', 'Others']) metrics.hear(sold(payer));
    for (let n = 0; n < 5; n += 1) metrics.unpaid('summarize');
    const answer = { kind: 'answered', transport: 'http', requestId: 'r', paid: false, ms: 1 } as const;
    metrics.hear({ ...answer, operation: 'summarize', status: 402, amount: 1n, error: 'funds: too little' });
    const text = await metrics.render();
    expect(text).to.include('coinslot_sales_total{operation="summarize"} 3');
    expect(text).to.include('coinslot_own_sales_total{operation="summarize"} 1');
    expect(text).to.include('coinslot_revenue_usdc_total{operation="summarize"} 0.03');
    expect(text).to.include('coinslot_own_revenue_usdc_total{operation="summarize"} 0.01');
    expect(metrics.counted()).to.deep.equal([
      { operation: 'summarize', unpaid: 5, sold: 3, own: 1, refusals: [['funds', 1]] },
    ]);
  });
});
