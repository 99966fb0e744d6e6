import { expect } from 'chai';
import { readinessOf } from '../../src/observe/readiness.js';

describe('Readiness', () => {
  it('reports all reasons together if it is lost, including the error of a check that throws', async () => {
    const ready = readinessOf([
      () => undefined,
      () => 'no facilitator answers',
      async () => {
        throw new Error('the ledger can not be written');
      },
    ]);
    expect(await ready()).to.deep.equal({
      ready: false,
      reasons: ['no facilitator answers', 'the ledger can not be written'],
    });
  });

  it('is checked at most once a second, however often it is requested', async () => {
    let now = 0;
    let looks = 0;
    const ready = readinessOf([() => void (looks += 1)], () => now);
    await Promise.all([ready(), ready(), ready()]);
    now = 999;
    await ready();
    expect(looks).to.equal(1);
    now = 1_000;
    expect(await ready()).to.deep.equal({ ready: true, reasons: [] });
    expect(looks).to.equal(2);
  });
});
