import { expect } from 'chai';
import { jsonAnswer, signed } from '../support/test-server.js';
import { pause, settleFault, until } from '../support/faults.js';
import { BRAND } from '../support/test-chain.js';
import {
  allOnOneStage,
  answerOf,
  cluster,
  expectNextAttaches,
  expectPending,
  landed,
  ledgerFault,
  openServer,
  payer,
  rowOf,
  testServer,
  testChain,
  stateBecomes,
} from '../support/one-chain.js';

describe('reconciler: a buyer who signs again while a payment is unresolved is charged once', function () {
  this.timeout(60_000);
  allOnOneStage();

  it('a new signature for the same call attaches to the unresolved payment, and its own row is never settled or searched for', async () => {
    cluster.onSettle(settleFault('dropAfter'));
    const text = 'signed anew';
    const first = signed(testChain, testServer, { payer, text });
    expectPending(await testServer.send({ payment: first.payment, text }));
    const second = signed(testChain, testServer, { payer, text });
    await until('the alias gets the answer', async () => {
      const sent = await testServer.send({ payment: second.payment, text });
      expect(sent.kind, JSON.stringify(sent)).to.be.oneOf(['sold', 'unavailable']);
      return sent.kind === 'sold';
    });
    expect([landed(first.id), landed(second.id)]).to.deep.equal([1, 0]);
    expect(await rowOf(second.id)).to.include({ aliasOf: first.id, asks: 0 });
  });

  it('a buyer who hangs up and pays on another connection at the same moment is charged once', async () => {
    cluster.onSettle(settleFault('slow'));
    const text = 'hung up and paid at once';
    const [first, second] = [
      signed(testChain, testServer, { payer, text }),
      signed(testChain, testServer, { payer, text }),
    ];
    const gone = new AbortController();
    const sent = testServer.send({ payment: first.payment, text }, { gone: gone.signal });
    await stateBecomes(first.id, 'settling');
    const other = testServer.send({ payment: second.payment, text });
    // A server notices a closed connection some turns of the event loop later than data on another connection.
    for (let turn = 0; turn < 3; turn++) await new Promise(resolve => setImmediate(resolve));
    gone.abort();
    await Promise.all([sent, other]);
    await until('it is answered', async () => {
      const more = await testServer.send({ payment: second.payment, text });
      return more.kind === 'sold';
    });
    expect([landed(first.id), landed(second.id)]).to.deep.equal([1, 0]);
  });

  it('a buyer who hangs up while the money is moving may sign again at once and is charged once', async () => {
    cluster.onSettle(settleFault('slow'));
    const text = 'hung up';
    const first = signed(testChain, testServer, { payer, text });
    const gone = new AbortController();
    const sent = testServer.send({ payment: first.payment, text }, { gone: gone.signal });
    await stateBecomes(first.id, 'settling');
    gone.abort();
    await pause(30);
    const second = signed(testChain, testServer, { payer, text });
    const early = await testServer.send({ payment: second.payment, text });
    expect(early.kind).to.be.oneOf(['unavailable', 'sold']);
    await sent;
    await until(
      'the answer is there',
      async () => (await testServer.send({ payment: second.payment, text })).kind === 'sold',
    );
    expect([landed(first.id), landed(second.id)]).to.deep.equal([1, 0]);
  });

  it('if the ledger fails just after `settling` was written, there is no second sale and at most one transfer', async () => {
    await testServer.close();
    let failed = false;
    await openServer({
      faults: method => {
        if (method !== 'settle' || failed) return undefined;
        failed = true;
        return 'failAfter';
      },
    });
    const text = 'unknown commit';
    const first = signed(testChain, testServer, { payer, text });
    expect(await testServer.send({ payment: first.payment, text })).to.include({ kind: 'unavailable' });
    await expectNextAttaches(first.id, text);
  });

  it('if the ledger fails when a caller is sent away, the caller is answered only once that is recorded, so a new signature attaches', async () => {
    await testServer.close();
    let failures = 2;
    await openServer({
      faults: method => (method === 'removeCaller' && failures-- > 0 ? 'fail' : undefined),
    });
    cluster.onSettle(settleFault('dropAfter'));
    const text = 'sent away';
    const first = signed(testChain, testServer, { payer, text });
    expectPending(await testServer.send({ payment: first.payment, text }));
    expect(failures).to.be.below(0);
    await expectNextAttaches(first.id, text);
  });

  it('a buyer who hangs up just before the money is requested is not charged, and the next signature is the only sale', async () => {
    await testServer.close();
    const gone = new AbortController();
    await openServer({ faults: method => (method === 'settle' ? 'stall' : undefined) });
    const text = 'hung up while the answer was saved';
    const first = signed(testChain, testServer, { payer, text });
    const sent = testServer.send(
      { payment: first.payment, text },
      {
        gone: gone.signal,
        work: async () => {
          setTimeout(() => gone.abort(), 50);
          return jsonAnswer({ summary: 'done' });
        },
      },
    );
    await until('it has hung up', () => gone.signal.aborted);
    const second = signed(testChain, testServer, { payer, text });
    const other = testServer.send({ payment: second.payment, text });
    await Promise.all([sent, other]);
    await until('it is answered', async () => {
      const more = await testServer.send({ payment: second.payment, text });
      return more.kind === 'sold';
    });
    expect([landed(first.id), landed(second.id)]).to.deep.equal([0, 1]);
  });

  it('a buyer who hangs up while the server checks for available respondents is not charged for an order', async () => {
    const text = 'hung up before the order';
    const gone = new AbortController();
    let ask = (): void => undefined;
    const asked = new Promise<void>(resolve => (ask = resolve));
    const ready = async (): Promise<undefined> => {
      gone.abort();
      await asked;
      return undefined;
    };
    const upfront = { request: '{}', ready };
    const first = signed(testChain, testServer, { payer, text, operation: BRAND });
    const call = { operation: BRAND, text };
    const sent = testServer.send({ payment: first.payment, ...call }, { gone: gone.signal, upfront });
    await until('it has hung up', () => gone.signal.aborted);
    const second = signed(testChain, testServer, { payer, text, operation: BRAND });
    answerOf(await testServer.send({ payment: second.payment, ...call }));
    ask();
    await sent;
    expect([landed(first.id), landed(second.id)]).to.deep.equal([0, 1]);
  });

  it('a new signature attaches to an order whose answer was lost on the way to the buyer', async () => {
    const text = 'lost on its way';
    const first = signed(testChain, testServer, { payer, text, operation: BRAND });
    const sent = await testServer.send({ payment: first.payment, text, operation: BRAND });
    answerOf(sent);
    if ('sale' in sent) await sent.sale.lost();
    await pause(50);
    const second = signed(testChain, testServer, { payer, text, operation: BRAND });
    answerOf(await testServer.send({ payment: second.payment, text, operation: BRAND }));
    expect([landed(first.id), landed(second.id)]).to.deep.equal([1, 0]);
  });

  it('a new signature attaches to an order that failed and stays owed, and begins the next attempt', async () => {
    await testServer.close();
    let attempts = 0;
    await openServer({ ordered: () => (++attempts === 1 ? 'Nobody answered.' : undefined) });
    const text = 'failed at first';
    const first = signed(testChain, testServer, { payer, text, operation: BRAND });
    const failed = await testServer.send({ payment: first.payment, text, operation: BRAND });
    expect(failed).to.have.nested.property('receipt.success', true);
    expect(failed).to.include({ kind: 'unavailable' });
    const second = signed(testChain, testServer, { payer, text, operation: BRAND });
    answerOf(await testServer.send({ payment: second.payment, text, operation: BRAND }));
    expect([landed(first.id), landed(second.id)]).to.deep.equal([1, 0]);
    expect(attempts).to.equal(2);
  });

  it('after a lost answer and a 503 because the ledger failed, a new signature attaches to the first payment', async () => {
    const text = 'lost, then failed';
    const first = signed(testChain, testServer, { payer, text });
    // The answer is delivered, but neither written nor known to be lost, as if the server had died here.
    answerOf(await testServer.send({ payment: first.payment, text }));
    ledgerFault.method = 'lookUp';
    setTimeout(() => (ledgerFault.method = undefined), 150);
    expect(await testServer.send({ payment: first.payment, text })).to.include({ kind: 'unavailable' });
    const second = signed(testChain, testServer, { payer, text });
    answerOf(await testServer.send({ payment: second.payment, text }));
    expect([landed(first.id), landed(second.id)]).to.deep.equal([1, 0]);
  });
});
