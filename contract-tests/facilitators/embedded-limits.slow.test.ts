import { Keypair, PublicKey, SystemProgram, type TransactionInstruction } from '@solana/web3.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { memoInstruction, openAccountInstruction, type Recipe } from '../support/craft.js';
import { ownFacilitator, WIDE, type OwnFacilitator } from '../support/own-facilitator.js';
import { TestChain } from '../support/test-chain.js';

const MAX_UNITS = 200_000;
const MAX_PRIORITY = 20_000n;
const MAX_PRICE = 5_000_000n;
/** More compute units than a payment uses: a payment that requests too few fails in its simulation. */
const ENOUGH_UNITS = 60_000;
const RUNS = { numRuns: 60 };

/** The chain's priority fee for a transaction, in lamports. */
const priorityOf = (units: number, price: bigint): bigint => (BigInt(units) * price + 999_999n) / 1_000_000n;

/** Values around the limits, and random ones. */
const units = fc.oneof(
  fc.integer({ min: 0, max: 1_400_000 }),
  fc.integer({ min: MAX_UNITS - 2, max: MAX_UNITS + 2 }),
  fc.integer({ min: ENOUGH_UNITS, max: MAX_UNITS }),
);
const price = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.bigInt({ min: MAX_PRICE - 1n, max: MAX_PRICE + 1n }),
  fc.bigInt({ min: 0n, max: 300_000n }),
);

describe('the cost of a payment for the fee payer, on a chain that charges it', function () {
  this.timeout(60_000);
  let testChain: TestChain;
  let payer: Keypair;
  let own: OwnFacilitator;
  const opened: OwnFacilitator[] = [];

  before(async () => {
    testChain = await TestChain.open();
    [payer] = (await testChain.payers(1, 100_000_000n)) as [Keypair];
    own = await open();
  });
  after(async () => {
    for (const each of opened) await each.close();
    await testChain.close();
  });

  async function open(options: Parameters<typeof ownFacilitator>[1] = {}): Promise<OwnFacilitator> {
    const made = await ownFacilitator(testChain, options);
    opened.push(made);
    return made;
  }

  /** Signs and settles a payment. @returns the lamports that the chain charged, and whether it was signed */
  async function cost(
    recipe: Recipe,
    meanwhile?: () => Promise<void>,
  ): Promise<{ charged: bigint; signed: boolean }> {
    const request = own.payment({ payer, ...recipe });
    const before = own.lamports();
    const signed = await own.facilitator.sign(request);
    if (signed.kind !== 'signed') {
      expect(own.lamports()).to.equal(before);
      expect(signed.kind).to.equal('refused');
      return { charged: 0n, signed: false };
    }
    await meanwhile?.();
    await own.facilitator.settle({ ...request, transaction: signed.transaction });
    return { charged: before - own.lamports(), signed: true };
  }

  it('is the fee for two signatures and at most 20 000 lamports of priority fee; what would cost more is not signed', async () => {
    await fc.assert(
      fc.asyncProperty(units, price, async (computeLimit, computePrice) => {
        const priority = priorityOf(computeLimit, computePrice);
        const { charged, signed } = await cost({ computeLimit, computePrice });
        const allowed = computeLimit <= MAX_UNITS && computePrice <= MAX_PRICE && priority <= MAX_PRIORITY;
        if (!allowed || computeLimit >= ENOUGH_UNITS) expect(signed).to.equal(allowed);
        if (signed) expect(charged).to.equal(10_000n + priority);
      }),
      RUNS,
    );
  });

  it('is the same for a payment that fails on the chain', async () => {
    const cheap = fc.bigInt({ min: 0n, max: 300_000n });
    const low = fc.integer({ min: ENOUGH_UNITS, max: MAX_UNITS });
    await fc.assert(
      fc.asyncProperty(low, cheap, async (computeLimit, computePrice) => {
        const [spender] = (await testChain.payers(1, 10_000n)) as [Keypair];
        const recipe = { payer: spender, computeLimit, computePrice };
        const { charged, signed } = await cost(recipe, () => testChain.spendAll(spender));
        const priority = priorityOf(computeLimit, computePrice);
        expect(signed).to.equal(priority <= MAX_PRIORITY);
        expect(charged).to.equal(signed ? 10_000n + priority : 0n);
      }),
      { numRuns: 25 },
    );
  });

  it('never includes a third signature, however many signers there are', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 4 }), async count => {
        const cosigners = Array.from({ length: count }, () => Keypair.generate());
        const { signed } = await cost({ cosigners });
        expect(signed).to.equal(count === 0);
      }),
      { numRuns: 20 },
    );
  });

  it('never includes an instruction that names the fee payer, at any position and for any program', async () => {
    const kinds = ['memo', 'transfer', 'account', 'authority', 'destination', 'source'] as const;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...kinds), fc.integer({ min: 0, max: 4 }), async (kind, at) => {
        const feePayer = own.feePayer.publicKey;
        const one: Record<(typeof kinds)[number], () => Recipe> = {
          memo: () => inserted(memoInstruction('mine', [feePayer]), at),
          transfer: () =>
            inserted(
              SystemProgram.transfer({ fromPubkey: feePayer, toPubkey: payer.publicKey, lamports: 1 }),
              at,
            ),
          account: () => inserted(openAccountInstruction(feePayer, Keypair.generate().publicKey), at),
          authority: () => ({ authority: feePayer, extra: [memoInstruction('me', [payer.publicKey])] }),
          destination: () => ({ destination: feePayer }),
          source: () => ({ source: feePayer }),
        };
        expect((await cost({ computeLimit: MAX_UNITS, ...one[kind]() })).signed).to.equal(false);
      }),
      // The reference implementation accepts a memo signed by the fee payer after the transfer.
      { numRuns: 25, examples: [['memo', 4]] },
    );
  });

  it('never includes the rent of an account: a payment that opens one is not signed', async () => {
    const anybody = new PublicKey(payer.publicKey);
    const recipe = { extra: [openAccountInstruction(anybody, Keypair.generate().publicKey)] };
    expect((await cost(recipe)).signed).to.equal(false);
  });

  it('never exceeds the hourly cap, and never uses the reserve of the account', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.bigInt({ min: 0n, max: 120_000n }), { minLength: 4, maxLength: 12 }),
        fc.integer({ min: 0, max: 200_000 }),
        fc.integer({ min: 30_000, max: 200_000 }),
        async (prices, above, cap) => {
          const limits = { floor: WIDE.floor, hourlyCap: BigInt(cap) };
          own = await open({ lamports: Number(limits.floor) + above, limits });
          const [rich] = (await testChain.payers(1, 1_000_000n)) as [Keypair];
          let spent = 0n;
          for (const computePrice of prices) {
            const request = own.payment({ payer: rich, computeLimit: MAX_UNITS, computePrice });
            const before = own.lamports();
            const signed = await own.facilitator.sign(request);
            if (signed.kind === 'signed')
              await own.facilitator.settle({ ...request, transaction: signed.transaction });
            spent += before - own.lamports();
            expect(own.lamports() >= limits.floor, `${own.lamports()} are left`).to.equal(true);
          }
          expect(spent <= limits.hourlyCap, `${spent} of ${cap}`).to.equal(true);
        },
      ),
      { numRuns: 12 },
    );
  });
});

/** One more instruction, in any place. */
function inserted(instruction: TransactionInstruction, at: number): Recipe {
  return { instructions: usual => [...usual.slice(0, at), instruction, ...usual.slice(at)] };
}
