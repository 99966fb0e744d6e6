import { expect } from 'chai';
import { Facilitators } from '../../src/facilitators/facilitators.js';
import { loadFacilitatorTrust, type FacilitatorTrust } from '../../src/facilitators/facilitator-trust.js';
import {
  eachInANewWorld,
  expectPending,
  FEE_PAYER,
  FakeFacilitator,
  world,
} from '../support/charge-world.js';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

/** A server that is configured with one facilitator, `fake.example/`, which has the fee payer of all payments here. */
const configured = {
  names: ['fake.example/'],
  nameOf: (one: string) => (one === FEE_PAYER ? 'fake.example/' : undefined),
  findName: async () => undefined,
};

describe('the facilitators whose success reports are believed', () => {
  eachInANewWorld();

  const load = (facilitators: Parameters<typeof loadFacilitatorTrust>[1]): Promise<FacilitatorTrust> =>
    loadFacilitatorTrust(world.ledger, facilitators, SILENT);

  it('include a configured one until it has lied; after that, no server believes its reports, even after a restart', async () => {
    const trust = await load(configured);
    const elsewhere = await load(configured);
    expect(trust.lied(FEE_PAYER)).to.equal(false);
    await trust.distrust(FEE_PAYER);
    expect([trust.lied(FEE_PAYER), trust.isLiar('fake.example/')]).to.deep.equal([true, true]);
    expect(elsewhere.lied(FEE_PAYER), 'not read yet').to.equal(false);
    await elsewhere.refresh();
    expect(elsewhere.lied(FEE_PAYER)).to.equal(true);
    expect((await load(configured)).lied(FEE_PAYER), 'a later start').to.equal(true);
  });

  it('exclude an unknown one: its success is checked on the chain before the answer is sent', async () => {
    const trust = await load({ ...configured, nameOf: () => undefined });
    expect(trust.lied(FEE_PAYER)).to.equal(true);
    const looked: string[] = [];
    const confirm = async (id: string): Promise<boolean> => looked.push(id) < 0;
    world.charge = world.newCharge({ trust, confirm });
    const payment = world.payment();
    expectPending(await world.redeem(payment));
    expect(looked).to.deep.equal([payment.checked.id]);
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  it('exclude, after a false report, a facilitator whose fee payer another server has offered since the start', async () => {
    const facilitators = new Facilitators([{ name: 'fake.example/', facilitator: new FakeFacilitator() }]);
    facilitators.recorded = async () => [{ hint: 'another', by: 'fake.example/' }];
    const trust = await load(facilitators);
    await trust.distrust('another');
    expect(trust.isLiar('fake.example/')).to.equal(true);
  });

  it('include the configured ones after a false report of one that is no longer configured', async () => {
    const facilitators = new Facilitators([{ name: 'fake.example/', facilitator: new FakeFacilitator() }]);
    const trust = await load(facilitators);
    await trust.distrust('a fee payer of the past');
    expect(trust.isLiar('fake.example/')).to.equal(false);
  });
});
