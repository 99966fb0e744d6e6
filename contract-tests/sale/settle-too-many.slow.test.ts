import { expect } from 'chai';
import { pause, settleFault, until, type SettleFault } from '../support/faults.js';
import { signed } from '../support/test-server.js';
import {
  again,
  allOnOneStage,
  answerOf,
  buy,
  cluster,
  expectPending,
  landed,
  openServer,
  payer,
  rowOf,
  stateBecomes,
  testChain,
  testServer,
} from '../support/one-chain.js';

describe('a facilitator that answers settle with 429 and asks to wait', function () {
  this.timeout(60_000);
  allOnOneStage();

  let bodies: string[];
  /** The facilitator answers settle requests in this order, and then repeats the last one. */
  function facilitatorAnswers(...kinds: [SettleFault, ...SettleFault[]]): void {
    bodies = [];
    cluster.onSettle(ask => {
      bodies.push(ask.body.toString());
      return settleFault(kinds[Math.min(bodies.length, kinds.length) - 1] ?? 'none')(ask);
    });
  }

  it('gets the same request again, and every copy of the payment gets the same answer within its call, charged once', async () => {
    facilitatorAnswers('tooMany', 'none');
    const text = 'many copies';
    const { id, payment } = signed(testChain, testServer, { payer, text });
    const copies = Array.from({ length: 30 }, () => testServer.send({ payment, text }, { holdMs: 20_000 }));
    for (const sent of await Promise.all(copies)) expect(answerOf(sent)).to.equal('{"summary":"run 1"}');
    expect(landed(id)).to.equal(1);
    expect(bodies).to.have.lengthOf(2);
    expect(bodies[1]).to.equal(bodies[0]);
    expect(await rowOf(id)).to.include({ state: 'delivered', asks: 2 });
  });

  it('causes no second transfer if it has already settled, and the answer is not lost', async () => {
    facilitatorAnswers('tooManyAfter', 'none');
    const bought = await buy();
    await stateBecomes(bought.id, 'delivered');
    expect(answerOf(await again(bought))).to.equal('{"summary":"run 1"}');
    expect(landed(bought.id)).to.equal(1);
  });

  it('gets at most two requests if it always does so; the buyer gets a 503 that says not to sign again, then a 402 without a charge, and can buy with the next payment', async () => {
    facilitatorAnswers('tooMany');
    const bought = await buy();
    expectPending(bought.sent);
    expect(bought.sent).to.have.property(
      'error',
      'The settlement of this payment is not yet certain. Do not sign a new one: send the same payment again.',
    );
    expectPending(await again(bought));
    expect(bodies).to.have.lengthOf(2);
    await stateBecomes(bought.id, 'released');
    expect(await again(bought)).to.include({ kind: 'refused', because: 'used' });
    expect(landed(bought.id)).to.equal(0);
    facilitatorAnswers('none');
    await until('the facilitator has rested', async () => {
      const next = await buy();
      return next.sent.kind === 'sold' && landed(next.id) === 1;
    });
  });

  it('gets no second transfer if the server dies while it waits, and the next server delivers the answer', async () => {
    facilitatorAnswers('tooMany', 'none');
    const text = 'a server that dies';
    const { id, payment } = signed(testChain, testServer, { payer, text });
    const cut = testServer.send({ payment, text });
    await until('it was asked', () => bodies.length === 1);
    await pause(200);
    testServer.kill();
    expect(await cut).to.include({ kind: 'cut' });
    await testServer.close();
    await openServer({ work: () => Promise.reject(new Error('the answer was made before')) });
    await until('it is answered', async () => (await again({ payment, text })).kind === 'sold');
    expect(answerOf(await again({ payment, text }))).to.equal('{"summary":"run 1"}');
    expect(landed(id)).to.equal(1);
  });
});
