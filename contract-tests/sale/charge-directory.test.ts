import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { DirectoryOffers } from '../../src/facilitators/directory-offers.js';
import { Facilitators } from '../../src/facilitators/facilitators.js';
import { Listings } from '../../src/facilitators/listings.js';
import type { Transport } from '../../src/observe/observer.js';
import type { Charge } from '../../src/sale/charge.js';
import type { Payment } from '../../src/sale/check-payment.js';
import type { Outcome } from '../../src/sale/outcome.js';
import { toolShapeOf } from '../../src/mcp/tool-arguments.js';
import {
  eachInANewWorld,
  expectPending,
  expectRefused,
  expectUnavailable,
  FakeFacilitator,
  FEE_PAYER,
  Gate,
  MINT_INFO,
  MINUTE,
  SUMMARIZE,
  TERMS,
  world,
} from '../support/charge-world.js';
import { DEVNET } from '../support/craft.js';

const HOUR = 60 * MINUTE;
const DIRECTORY = 'directory.example/';
const ITS_FEE_PAYER = Keypair.generate().publicKey.toBase58();

class WithDirectory extends FakeFacilitator {
  override async supported(): Promise<{ feePayer: string }> {
    return { feePayer: ITS_FEE_PAYER };
  }
}

describe("charge: sales through a directory's facilitator", () => {
  eachInANewWorld();
  let directory: WithDirectory;
  let facilitators: Facilitators;
  let charge: Charge;
  let catalogue: DirectoryOffers;

  beforeEach(async () => {
    directory = new WithDirectory();
    facilitators = new Facilitators(
      [
        { name: 'fake.example/', facilitator: world.facilitator },
        { name: DIRECTORY, facilitator: directory, forDirectory: true },
      ],
      world.clock,
    );
    await facilitators.refresh(DEVNET);
    catalogue = new DirectoryOffers({
      ledger: world.ledger,
      names: [DIRECTORY],
      offerable: name => facilitators.offerable(name),
      everyMs: 6 * HOUR,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      now: world.clock,
    });
    facilitators.onDirectory = (name, listing, went) => catalogue.heard(name, listing, went);
    world.hints.elsewhere = called => catalogue.feePayerFor(called);
    await catalogue.refresh();
    charge = world.newCharge({ facilitator: facilitators, listings: new Listings(TERMS, toolShapeOf) });
  });

  /** The fee payer in the answer to a call without payment. */
  function offered(operation = SUMMARIZE, transport: Transport = 'http'): string {
    const { body } = world.offers.challenge(operation, world.offers.methods.first, transport);
    return feePayerIn(body);
  }

  /** The fee payer of the challenge after a refusal. */
  function offeredAgain(): string {
    const { offers } = world;
    return feePayerIn(offers.refusal(SUMMARIZE, offers.methods.first, 'refused', true).body);
  }

  function feePayerIn(body: Buffer): string {
    const { accepts } = JSON.parse(body.toString('utf8')) as { accepts: { extra: { feePayer: string } }[] };
    return accepts[0]!.extra.feePayer;
  }

  const paying = (feePayer: string): Payment => world.payment({ feePayer });
  const buy = (payment: Payment): Promise<Outcome> => charge.process(world.call(payment));

  it('the first sale of an operation over HTTP and over MCP goes through it, and then one sale every six hours', async () => {
    expect(offered()).to.equal(ITS_FEE_PAYER);
    expect((await buy(paying(ITS_FEE_PAYER))).kind).to.equal('sold');
    expect([directory.verifies, directory.settles]).to.deep.equal([1, 1]);
    expect([world.facilitator.verifies, world.facilitator.settles]).to.deep.equal([0, 0]);
    expect([offered(), offered(SUMMARIZE, 'mcp'), offered(MINT_INFO)]).to.deep.equal([
      FEE_PAYER,
      ITS_FEE_PAYER,
      ITS_FEE_PAYER,
    ]);
    expect((await buy(paying(FEE_PAYER))).kind).to.equal('sold');
    expect(directory.settles).to.equal(1);
    world.now += 6 * HOUR;
    await catalogue.refresh();
    expect(offered()).to.equal(ITS_FEE_PAYER);
  });

  it('after three calls that nobody paid for, the usual facilitator is offered for a minute', () => {
    expect([1, 2, 3, 4].map(() => offered())).to.deep.equal([
      ITS_FEE_PAYER,
      ITS_FEE_PAYER,
      ITS_FEE_PAYER,
      FEE_PAYER,
    ]);
    world.now += MINUTE;
    expect(offered()).to.equal(ITS_FEE_PAYER);
  });

  it('if it is down, one buyer gets an error, signs for the usual facilitator and is served; other buyers do not notice', async () => {
    directory.onVerify = () => ({ kind: 'unavailable', detail: 'down' });
    expect(offered()).to.equal(ITS_FEE_PAYER);
    const outcome = await buy(paying(ITS_FEE_PAYER));
    expectRefused(
      outcome,
      /directory\.example\/ can't be reached.*sign a new payment with the fee payer/,
      true,
    );
    expect(outcome).to.include({ because: 'outage' });
    expect([offeredAgain(), offered(), offered(MINT_INFO)]).to.deep.equal([FEE_PAYER, FEE_PAYER, FEE_PAYER]);
    expect((await buy(paying(FEE_PAYER))).kind).to.equal('sold');
    expect([world.runs, directory.verifies, directory.settles]).to.deep.equal([1, 1, 0]);
    world.now += 10 * MINUTE;
    await catalogue.refresh();
    expect(offered(), 'tried again').to.equal(ITS_FEE_PAYER);
    world.hints.setView({ blockhash: Keypair.generate().publicKey.toBase58(), slot: 3000, height: 2800 });
    await buy(paying(ITS_FEE_PAYER));
    world.now += 10 * MINUTE;
    await catalogue.refresh();
    expect(offered(), 'and later each time').to.equal(FEE_PAYER);
  });

  it('if it is down together with the usual one, no buyer is asked to sign again', async () => {
    directory.onVerify = () => ({ kind: 'unavailable', detail: 'down' });
    const alone = new Facilitators([
      { name: 'fake.example/', facilitator: world.facilitator },
      { name: DIRECTORY, facilitator: directory, forDirectory: true },
    ]);
    alone.learn([{ hint: ITS_FEE_PAYER, by: DIRECTORY }]);
    expect(alone.choice, 'it stands in for nobody').to.equal(undefined);
    charge = world.newCharge({ facilitator: alone });
    expectUnavailable(await buy(paying(ITS_FEE_PAYER)), /send the same payment again/);
  });

  it('if it rejects a payment, the next challenge names the usual facilitator, but other operations are still offered through it', async () => {
    directory.onVerify = () => ({ kind: 'refused', reason: 'no' });
    expect(offered()).to.equal(ITS_FEE_PAYER);
    expectRefused(await buy(paying(ITS_FEE_PAYER)), /refused by the facilitator: no/, true);
    expect([offeredAgain(), offered(), offered(MINT_INFO)]).to.deep.equal([
      FEE_PAYER,
      FEE_PAYER,
      ITS_FEE_PAYER,
    ]);
    expect((await buy(paying(FEE_PAYER))).kind).to.equal('sold');
  });

  it('while it is working on a payment, it is offered to no other buyer', async () => {
    const gate = new Gate();
    directory.onVerify = () => gate.wait({ kind: 'valid' });
    expect(offered()).to.equal(ITS_FEE_PAYER);
    const slow = buy(paying(ITS_FEE_PAYER));
    await gate.reached;
    expect(offered()).to.equal(FEE_PAYER);
    expect((await buy(paying(FEE_PAYER))).kind).to.equal('sold');
    gate.open();
    expect((await slow).kind).to.equal('sold');
  });

  it('if it leaves a settlement open, the payment stays with it when it is sent again, and is charged once', async () => {
    directory.onSettle = () => ({ kind: 'unknown', reason: 'no answer', signature: '' });
    const payment = paying(ITS_FEE_PAYER);
    expectPending(await buy(payment));
    expect(offered()).to.equal(FEE_PAYER);
    world.now += MINUTE / 6;
    await buy(payment);
    expect(world.facilitator.settles, 'the usual one is never asked about it').to.equal(0);
    expect(directory.settles).to.be.at.most(2);
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  it('the payment of a known buyer is verified before its work begins', async () => {
    const payer = await world.knownPayer();
    directory.onVerify = () => ({ kind: 'refused', reason: 'no' });
    await buy(world.payment({ payer, feePayer: ITS_FEE_PAYER }));
    expect([world.runs, directory.verifies]).to.deep.equal([0, 1]);
  });

  it('its fee payer is not offered unless the ledger has recorded it', async () => {
    let feePayer = ITS_FEE_PAYER;
    const late = new DirectoryOffers({
      ledger: world.ledger,
      names: [DIRECTORY],
      offerable: () => feePayer,
      everyMs: HOUR,
      log: { info: () => {}, warn: () => {}, error: () => {} },
    });
    const called = { operation: SUMMARIZE, transport: 'http' as const };
    expect(late.feePayerFor(called)).to.equal(undefined);
    await late.refresh();
    expect(late.feePayerFor({ ...called, operation: { ...SUMMARIZE, unlisted: true } })).to.equal(undefined);
    expect(late.feePayerFor(called)).to.equal(ITS_FEE_PAYER);
    feePayer = FEE_PAYER;
    expect(late.feePayerFor(called), 'it names another one since').to.equal(undefined);
  });
});
