import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { SharedBucket } from '../../src/admission/admission.js';
import { MAX_HEADER_BYTES } from '../../src/methods/header-bytes.js';
import {
  asked,
  ACCEPTED,
  answer,
  bodyOf,
  eachInANewWorld,
  expectRefused,
  expectUnavailable,
  FEE_PAYER,
  Gate,
  MINUTE,
  operation,
  paid,
  RECIPE,
  SUMMARIZE,
  TERMS,
  world,
} from '../support/charge-world.js';
import { craftPayment, DEVNET_V1, v1Header, v2Header } from '../support/craft.js';

describe('charge: offers', () => {
  eachInANewWorld();

  it('a fee payer that is no longer offered is refused, but a delivered answer is still handed out', async () => {
    const [sold, unsold] = [world.payment(), world.payment()];
    await world.redeem(sold);
    world.hints.setFeePayer(Keypair.generate().publicKey.toBase58());
    await world.ledger.offerHint(FEE_PAYER);
    expect((await world.redeem(world.payment())).kind, 'for five minutes it still counts').to.equal('sold');
    world.now += 5 * MINUTE + 1;
    world.hints.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    expectRefused(await world.redeem(unsold), /fee payer .* was not offered/, true);
    expect(bodyOf(await world.redeem(sold))).to.equal('{"summary":"run 1"}');
  });

  it('a payment whose fee payer is no longer offered gets its answer, and no 402, if another server is working on it', async () => {
    const gate = new Gate();
    const payment = world.payment();
    const first = world.redeem(payment, { work: () => gate.wait(answer('{}')) });
    await gate.reached;
    const hints = world.newHints(Keypair.generate().publicKey.toBase58());
    const other = world.newCharge({ hints });
    const second = other.process(world.call(payment));
    gate.open();
    expect(bodyOf(await second)).to.equal(bodyOf(await first));
    hints.close();
  });

  it('a fee payer that was never offered is refused', async () => {
    const { transaction } = craftPayment({ ...RECIPE, feePayer: Keypair.generate().publicKey.toBase58() });
    expectRefused(
      await world.redeem(world.checkedPayment(v2Header(ACCEPTED, transaction))),
      /was not offered/,
      true,
    );
    expect(world.facilitator.verifies).to.equal(0);
  });

  it('a fee payer that another server offered is accepted at this one, and its facilitator gets the payment', async () => {
    const feePayer = Keypair.generate().publicKey.toBase58();
    const { transaction } = craftPayment({ ...RECIPE, feePayer });
    const payment = world.checkedPayment(v2Header(ACCEPTED, transaction));
    await world.ledger.offerHint(feePayer, 'fake.example/');
    const facilitator = asked(world.facilitator);
    facilitator.recorded = () => world.ledger.offeredHints();
    const charge = world.newCharge({ facilitator });
    expect((await charge.process(world.call(payment))).kind).to.equal('sold');
    expect(facilitator.nameOf(feePayer)).to.equal('fake.example/');
  });

  it('a payment with the fee payer of a facilitator that this server does not have gets a 402, and no facilitator is called', async () => {
    const feePayer = Keypair.generate().publicKey.toBase58();
    const { transaction } = craftPayment({ ...RECIPE, feePayer });
    await world.ledger.offerHint(feePayer, 'removed.example/');
    const payment = world.checkedPayment(v2Header(ACCEPTED, transaction));
    expectRefused(await world.redeem(payment), /was not offered/, true);
    expect(world.facilitator.verifies).to.equal(0);
  });

  it('a blockhash is no longer offered once a payment without a memo was signed with it', async () => {
    const blockhash = offeredBlockhash();
    expect(blockhash).to.be.a('string');
    await world.redeem(world.payment({ blockhash: String(blockhash) }));
    expect(offeredBlockhash(), 'a memo tells payments apart').to.equal(blockhash);
    await world.redeem(world.payment({ blockhash: String(blockhash), memo: null }));
    expect(offeredBlockhash()).to.equal(undefined);
  });

  it('without a view of the chain a payment gets a 503, but a delivered answer is still handed out', async () => {
    const sold = world.payment();
    await world.redeem(sold);
    world.now += MINUTE + 1;
    expectUnavailable(await world.redeem(world.payment()), /chain can't be reached/);
    expect(bodyOf(await world.redeem(sold))).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.verifies).to.equal(1);
  });

  it('the local check makes no request, and says what does not match', async () => {
    const { transaction } = craftPayment(RECIPE);
    const errorOf = async (header: string, of = SUMMARIZE): Promise<string> => {
      const result = await world.charge.checkPayment({ headers: { 'payment-signature': header } }, of);
      return 'error' in result ? result.error : result.kind;
    };
    expect((await world.charge.checkPayment({ headers: {} }, SUMMARIZE)).kind).to.equal('unpaid');
    expect(await errorOf('!')).to.match(/not base64/);
    for (const [change, error] of [
      [{ amount: '9999' }, /amount: accepted 0.009999 USDC, the price is 0.01 USDC/],
      [{ amount: undefined }, /amount: accepted undefined/],
      [{ amount: '010000' }, /amount/],
      [{ asset: TERMS.payTo }, /asset: accepted/],
      [{ payTo: FEE_PAYER }, /payTo: accepted/],
      [{ network: 'solana:other' }, /network: 'solana:other' is not offered/],
      [{ scheme: 'upto' }, /scheme: 'upto' is not offered/],
      [{ extra: { paymentFlow: 'upfront' } }, /paymentFlow: accepted upfront, must be authorization/],
    ] as [object, RegExp][]) {
      expect(await errorOf(v2Header({ ...ACCEPTED, ...change }, transaction))).to.match(error);
    }
    expect(await errorOf(v1Header('base', transaction))).to.match(/network: 'base' is not offered/);
    expect(await errorOf(v1Header(DEVNET_V1, transaction), operation('brandFeedback'))).to.match(
      /pays 0.01 USDC, must be exactly 0.50 USDC/,
    );
    expect(
      await errorOf(
        v2Header(
          { ...ACCEPTED, network: DEVNET_V1, amount: undefined, maxAmountRequired: '10000' },
          transaction,
        ),
      ),
    ).to.equal('payment');
    expect(world.facilitator).to.include({ verifies: 0, settles: 0 });
  });

  it("a refusal that quotes the buyer's data still fits into a header", async () => {
    const { transaction } = craftPayment(RECIPE);
    for (const network of ['\u0001'.repeat(256), '\u{1f600}'.repeat(120), '"\\'.repeat(128)]) {
      const result = await world.charge.checkPayment(
        { headers: { 'x-payment': v2Header({ ...ACCEPTED, network }, transaction) } },
        SUMMARIZE,
      );
      if (result.kind !== 'refused') throw new Error(result.kind);
      for (const one of paid) {
        const { headers } = world.offers.refusal(one, world.offers.methods.first, result.error, true);
        expect(headers['PAYMENT-REQUIRED']).to.have.length.at.most(MAX_HEADER_BYTES);
      }
    }
  });

  it('setting back the clock does not empty a bucket of the rate limit', () => {
    let now = 1_000_000;
    const bucket = new SharedBucket({ rate: 1, burst: 3, now: () => now });
    now -= 900_000;
    expect(['a', 'b', 'c', 'd'].map(source => bucket.take(source))).to.deep.equal([true, true, true, false]);
    now += 2_000;
    expect(['e', 'f', 'g'].map(source => bucket.take(source))).to.deep.equal([true, true, false]);
    now -= 900_000;
    expect(bucket.take('h')).to.equal(false);
    now += 1_000;
    expect(['i', 'j'].map(source => bucket.take(source))).to.deep.equal([true, false]);
  });
});

function offeredBlockhash(): unknown {
  const { body } = world.offers.challenge(SUMMARIZE, world.offers.methods.first);
  const { accepts } = JSON.parse(body.toString()) as { accepts: { extra: Record<string, unknown> }[] };
  return accepts[0]?.extra.recentBlockhash;
}
