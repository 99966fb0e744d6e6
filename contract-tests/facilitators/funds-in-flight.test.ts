import { expect } from 'chai';
import { FundsInFlight, type SignedTransfer } from '../../src/facilitators/funds-in-flight.js';

const { signal } = new AbortController();
const transfer = (signature: string, amount = 10n): SignedTransfer => ({
  signature,
  account: 'account',
  amount,
});

/** A token account. `landing`: transfers, one of which lands after each read of statuses, before the balance is read. */
function chainOf(balance: bigint, landing: string[] = []) {
  const landed = new Set<string>();
  let left = balance;
  return {
    signatureStatuses: async (signatures: readonly string[]) => {
      const statuses = signatures.map(each =>
        landed.has(each) ? { finality: 'confirmed' as const, failed: false } : undefined,
      );
      const next = landing.shift();
      if (next !== undefined) {
        landed.add(next);
        left -= 10n;
      }
      return statuses;
    },
    account: async () => {
      const data = Buffer.alloc(72);
      data.writeBigUInt64LE(left, 64);
      return { data, owner: 'token', lamports: 1n };
    },
  };
}

describe('the funds of an account with transfers in flight', () => {
  const funds = (chain: ReturnType<typeof chainOf>): FundsInFlight =>
    new FundsInFlight(chain as unknown as ConstructorParameters<typeof FundsInFlight>[0]);

  it('cover a transfer even if earlier ones land while the funds are being read', async () => {
    const flying = funds(chainOf(30n, ['first', 'second']));
    expect(await flying.reserve(transfer('first'), signal)).to.equal(true);
    flying.sent(transfer('first'));
    expect(await flying.reserve(transfer('second'), signal)).to.equal(true);
    flying.sent(transfer('second'));
    expect(await flying.reserve(transfer('third'), signal)).to.equal(true);
    expect(await flying.reserve(transfer('fourth'), signal)).to.equal(false);
  });

  it('are available again once a transfer is withdrawn', async () => {
    const flying = funds(chainOf(10n));
    expect(await flying.reserve(transfer('first'), signal)).to.equal(true);
    expect(await flying.reserve(transfer('second'), signal)).to.equal(false);
    flying.over(transfer('first'));
    expect(await flying.reserve(transfer('second'), signal)).to.equal(true);
  });
});
