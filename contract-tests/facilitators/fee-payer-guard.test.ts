import { expect } from 'chai';
import fc from 'fast-check';
import { FeePayerGuard, inSol, type FeePayerLimits } from '../../src/facilitators/fee-payer-guard.js';

const HOUR = 3_600_000;
const MOST_FEE = 30_000n;

type Line = { level: 'info' | 'warn' | 'error'; message: string };

/** A fee payer on a chain that charges it for landed transactions; a read shows the balance at that time. */
class Purse {
  now = 1_700_000_000_000;
  lamports: bigint;
  down = false;
  readonly lines: Line[] = [];
  readonly guard: FeePayerGuard;

  constructor(lamports: bigint, limits: FeePayerLimits) {
    this.lamports = lamports;
    const log =
      (level: Line['level']) =>
      (_fields: object, message: string): void =>
        void this.lines.push({ level, message });
    this.guard = new FeePayerGuard({
      address: 'FeePayer',
      limits,
      log: { info: log('info'), warn: log('warn'), error: log('error') },
      now: () => this.now,
      readBalance: async () => {
        if (this.down) throw new Error('no RPC server');
        return this.lamports;
      },
    });
  }
}

const WIDE: FeePayerLimits = { floor: 1_000_000n, hourlyCap: 10n ** 12n };

describe('the guard of the fee payer', () => {
  it('signs nothing before the balance has been read', async () => {
    const purse = new Purse(10n ** 9n, WIDE);
    purse.down = true;
    await purse.guard.read();
    expect(purse.guard.refusal()).to.match(/could not be read yet/);
    expect(purse.guard.reserve('a', 10_000n)).to.match(/could not be read yet/);
    purse.down = false;
    await purse.guard.read();
    expect(purse.guard.refusal()).to.equal(undefined);
    // An old balance is better than none.
    purse.down = true;
    await purse.guard.read();
    expect(purse.guard.refusal()).to.equal(undefined);
  });

  it('warns when the balance is low, stops at the floor, and logs each of these once', async () => {
    const purse = new Purse(3_999_999n, WIDE);
    await purse.guard.read();
    await purse.guard.read();
    expect(purse.lines.map(({ level }) => level)).to.deep.equal(['warn']);
    expect(purse.lines[0]?.message).to.match(/0\.003999 SOL left and stops at 0\.001000/);
    expect(purse.guard.refusal()).to.equal(undefined);
    purse.lamports = WIDE.floor + MOST_FEE - 1n;
    await purse.guard.read();
    expect(purse.guard.refusal()).to.match(/FEE_PAYER_FLOOR/);
    expect(purse.guard.reserve('a', MOST_FEE)).to.match(/send SOL to it/);
    expect(purse.lines.map(({ level }) => level)).to.deep.equal(['warn', 'error']);
    purse.lamports = 10n ** 9n;
    await purse.guard.read();
    expect(purse.guard.refusal()).to.equal(undefined);
    expect(purse.lines.map(({ level }) => level)).to.deep.equal(['warn', 'error', 'info']);
  });

  it('counts a fee only until a balance that includes it has been read', async () => {
    const purse = new Purse(10_000_000n, WIDE);
    const { guard } = purse;
    await guard.read();
    expect(guard.reserve('a', 10_000n)).to.equal(undefined);
    expect(guard.lamports).to.equal(9_990_000n);
    guard.sent('a', 10_000n);
    guard.sent('a', 10_000n);
    expect(guard.lamports).to.equal(9_990_000n);
    purse.lamports -= 10_000n;
    guard.landed('a');
    expect(guard.lamports).to.equal(9_990_000n);
    purse.now += 1;
    await guard.read();
    expect(guard.lamports).to.equal(9_990_000n);
    guard.stop();
  });

  it('forgets what was signed and never sent, and what was sent and never landed', async () => {
    const purse = new Purse(10_000_000n, WIDE);
    const { guard } = purse;
    await guard.read();
    guard.reserve('a', 10_000n);
    guard.reserve('b', 20_000n);
    guard.sent('b', 20_000n);
    expect(guard.lamports).to.equal(9_970_000n);
    purse.now += 15_000;
    expect(guard.lamports).to.equal(9_980_000n);
    purse.now += 120_000;
    expect(guard.lamports, 'the balance was not read since').to.equal(9_980_000n);
    await guard.read();
    expect(guard.lamports).to.equal(10_000_000n);
  });

  it('counts what was sent against the hourly cap, even if another server signed it', async () => {
    const purse = new Purse(10n ** 9n, { floor: 1_000_000n, hourlyCap: 60_000n });
    const { guard } = purse;
    await guard.read();
    guard.sent('of another server', 30_000n);
    expect(guard.refusal(30_000n)).to.equal(undefined);
    expect(guard.reserve('a', 30_000n)).to.equal(undefined);
    expect(guard.reserve('b', 1n)).to.match(/FEE_PAYER_HOURLY_CAP/);
    // Signed, but redeemed for an earlier sale and never sent.
    purse.now += 15_000;
    expect(guard.reserve('b', 30_000n)).to.equal(undefined);
    guard.sent('b', 30_000n);
    expect(guard.refusal(1n)).to.match(/0\.000060 SOL/);
    purse.now += HOUR + 60_000;
    await guard.read();
    expect(guard.refusal()).to.equal(undefined);
  });

  type Step = { kind: 'pay' | 'sign' | 'read' | 'wait'; amount: number };
  const steps = fc.array(
    fc.record<Step>({
      kind: fc.constantFrom('pay', 'pay', 'pay', 'sign', 'read', 'wait'),
      amount: fc.integer({ min: 0, max: 20_000 }),
    }),
    { maxLength: 120 },
  );

  it('never lets the balance fall below the floor, and never spends more than the cap in any hour', async () => {
    await fc.assert(
      fc.asyncProperty(
        steps,
        fc.integer({ min: 0, max: 1_500_000 }),
        fc.integer({ min: 0, max: 900_000 }),
        async (taken, above, cap) => {
          const limits = { floor: 1_000_000n, hourlyCap: BigInt(cap) };
          const purse = new Purse(limits.floor + BigInt(above), limits);
          const { guard } = purse;
          await guard.read();
          const spent: { at: number; fee: bigint }[] = [];
          const flying: { signature: string; fee: bigint }[] = [];
          for (const [n, { kind, amount }] of taken.entries()) {
            const fee = 10_000n + BigInt(amount);
            const signature = `s${n}`;
            if (kind === 'wait') purse.now += amount * 100;
            else if (kind === 'sign') guard.reserve(signature, fee);
            else if (kind === 'read') {
              // The chain charges for transactions in flight; half of them are noticed before the balance is read.
              for (const [index, each] of flying.splice(0).entries()) {
                purse.lamports -= each.fee;
                if (index % 2 === 0) guard.landed(each.signature);
              }
              purse.now += 1;
              await guard.read();
            } else if (guard.reserve(signature, fee) === undefined) {
              guard.sent(signature, fee);
              flying.push({ signature, fee });
              spent.push({ at: purse.now, fee });
            }
            const owed = flying.reduce((sum, each) => sum + each.fee, 0n);
            expect(Number(purse.lamports - owed)).to.be.at.least(Number(limits.floor));
            const hour = spent.filter(({ at }) => at > purse.now - HOUR);
            expect(Number(hour.reduce((sum, each) => sum + each.fee, 0n))).to.be.at.most(cap);
          }
          guard.stop();
        },
      ),
      { numRuns: 300 },
    );
  });

  it('writes lamports as SOL', () => {
    expect([0n, 1_000n, 1_500_000_000n, -20_000n].map(inSol)).to.deep.equal([
      '0.000000',
      '0.000001',
      '1.500000',
      '-0.000020',
    ]);
  });
});
