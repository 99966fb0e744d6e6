import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { bodyOf, eachInANewWorld, Gate, SIGNATURE, world } from '../support/charge-world.js';

describe('the key of a payment that redeems an earlier sale', () => {
  eachInANewWorld();

  it('fetches the answer of that sale, with its receipt', async () => {
    const payer = Keypair.generate();
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const cut = world.redeem(world.payment({ payer }), { gone: gone.signal });
    await gate.reached;
    gone.abort();
    gate.open();
    await cut;
    const alias = world.payment({ payer });
    expect(bodyOf(await world.redeem(alias))).to.equal('{"summary":"run 1"}');
    const found = await world.charge.pickUp({ id: alias.checked.id, number: 0 });
    if (found.kind !== 'found') throw new Error(found.error);
    expect(bodyOf(found.outcome)).to.equal('{"summary":"run 1"}');
    expect(found.outcome.receipt).to.include({ success: true, transaction: SIGNATURE });
    expect(world.facilitator.settles).to.equal(1);
  });
});
