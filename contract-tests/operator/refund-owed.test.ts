import { expect } from 'chai';
import type { Ledger } from '../../src/ledger/store.js';
import { OwedRefunds, type OwedOptions } from '../../src/operator/refund-owed.js';
import { RefundWatch } from '../../src/operator/refund-watch.js';
import { reserveRefund } from '../../src/operator/reserve-refund.js';
import { rows } from '../support/extent.js';
import { killedAt } from '../support/killed-at.js';
import { onEachEngine, type LedgerPlace } from '../support/ledger-places.js';
import { claimed, payment, settles } from '../support/ledgers.js';
import { eachWithANewLedger, ledger, time } from '../support/ledger-suite.js';
import { MINT, newKeyPair, paidBy, RefundChain } from '../support/refund-chain.js';

const PAID = 10_000n;
const HOUR_MS = 3_600_000;

onEachEngine('Orders that were given up', promises);

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  const [hot, payer] = [newKeyPair(), newKeyPair()];
  let chain: RefundChain;
  let logged: string[];

  beforeEach(() => {
    chain = new RefundChain();
    chain.open(hot.address, 1_000_000n);
    chain.open(payer.address, 0n);
    logged = [];
  });

  /** An owed payment. `againMs`: when the buyer may start the next attempt; null: no attempts are left. */
  async function owed(againMs: number | null = null): Promise<string> {
    const request = payment({ ...paidBy(payer.address), amount: PAID, flow: 'upfront', request: '{}' });
    const claim = await claimed(ledger, request);
    await settles(ledger, request.id, claim);
    await ledger.owe(request.id, claim, { settlement: `sig ${request.id}` });
    const { id } = request;
    await ledger.openOrder({ payment: id, request: '{}', wanted: 0, deadline: time.now + 60_000 });
    await ledger.failOrder(id, claim, { attempt: 1, failure: 'No.', againMs });
    return id;
  }

  function refunds(more: Partial<OwedOptions> = {}): OwedRefunds {
    const server = chain.server();
    const note = (fields: object, message: string): void =>
      void logged.push(`${message} ${JSON.stringify(fields)}`);
    return new OwedRefunds({
      ...{ ledger, chain: server, servers: [server], mint: MINT, now: () => time.now },
      wallet: { keyPair: hot, feePayer: hot, floor: 0n },
      policy: { afterMs: HOUR_MS, dailyCap: 100n * PAID },
      floor: 0n,
      log: { info: note, warn: note, error: note },
      ...more,
    });
  }

  const got = (): bigint => chain.held(payer.address);

  it('are refunded once, after the configured time and not before', async () => {
    const [id, paused] = [await owed(), await owed(5_000)];
    time.now += HOUR_MS - 1;
    await refunds().look();
    expect(got()).to.equal(0n);
    time.now += 1;
    await refunds().look();
    await refunds().look();
    expect(got()).to.equal(PAID);
    expect(await ledger.find(id)).to.include({ state: 'refunded', repaid: PAID, repaying: 0n });
    expect(await ledger.find(paused)).to.include({ state: 'owed', repaid: 0n });
    expect((await ledger.repaymentsOf(id))[0]).to.include({ cause: 'policy', state: 'done' });
  });

  it('are not refunded automatically if the operator retries them or refunds them', async () => {
    const [retried, linked] = [await owed(), await owed()];
    time.now += HOUR_MS;
    const [page] = [await ledger.givenUpOrders(HOUR_MS)];
    expect(page).to.have.length(2);
    await ledger.retryOrder(retried, time.now + HOUR_MS);
    const row = (await ledger.find(linked)) ?? expect.fail('no such payment');
    await reserveRefund(ledger, row, { way: 'wallet' });
    // They are not refunded even by a server whose view of the given-up orders is out of date.
    const stale = {
      ...ledger,
      givenUpOrders: async (_: number, after?: unknown) => (after ? [] : page),
    } as Ledger;
    await refunds({ ledger: stale }).look();
    expect([got(), chain.sent]).to.deep.equal([0n, []]);
  });

  it('are refunded up to the daily cap, by all servers together', async () => {
    for (let n = 0; n < 5; n++) await owed();
    time.now += HOUR_MS;
    const policy = { afterMs: HOUR_MS, dailyCap: 2n * PAID + 1n };
    await Promise.all([1, 2, 3].map(() => refunds({ policy }).look()));
    expect(got()).to.equal(2n * PAID);
    expect(logged.join()).to.include('REFUND_DAILY_CAP is reached');
    time.now += 24 * HOUR_MS - 1;
    await refunds({ policy }).look();
    expect(got()).to.equal(2n * PAID);
    time.now += 1;
    await refunds({ policy }).look();
    expect(got()).to.equal(4n * PAID);
  });

  it('wait while the refund would take the wallet below its floor, and the operator is notified', async () => {
    await owed();
    await owed();
    time.now += HOUR_MS;
    const policy = { afterMs: HOUR_MS, dailyCap: 2n * PAID };
    const short = refunds({ policy, floor: 1_000_000n - PAID });
    await short.look();
    expect(got()).to.equal(PAID);
    expect(short.low()).to.deep.equal({ address: hot.address, left: '0.99 USDC' });
    const enough = refunds({ policy });
    await enough.look();
    expect([got(), enough.low()]).to.deep.equal([2n * PAID, undefined]);
    chain.lamports = 900_000n;
    await enough.look();
    expect(enough.low()).to.deep.equal({ address: hot.address, left: '0.000900 SOL' });
  });

  it("whose payer can't be paid are tried again at growing intervals, and then left to the operator", async () => {
    const id = await owed();
    chain.accounts.clear();
    chain.open(hot.address, 1_000_000n);
    time.now += HOUR_MS;
    for (let look = 0; look < 60; look++) {
      await refunds().look();
      time.now += look < 16 ? HOUR_MS / 4 : 6 * HOUR_MS;
    }
    const all = await ledger.repaymentsOf(id);
    expect(all.map(({ state }) => state)).to.deep.equal(Array.from({ length: 8 }, () => 'cancelled'));
    expect((all[1]?.createdAt ?? 0) - (all[0]?.createdAt ?? 0)).to.equal(15 * 60_000);
    expect((all[2]?.createdAt ?? 0) - (all[1]?.createdAt ?? 0)).to.equal(HOUR_MS);
    expect(logged.join()).to.include('is closed');
    expect(await ledger.find(id)).to.include({ state: 'owed', repaying: 0n });
  });

  it('are refunded once, at whatever step the server is killed', async function () {
    this.timeout(120_000);
    for (let step = 1, killed = true; killed; step++)
      for (const when of rows(['after', 'before'] as const)) {
        const id = await owed();
        time.now += HOUR_MS;
        const before = got();
        const { mortal, death } = killedAt(step, when);
        const server = mortal(chain.server());
        const dying = refunds({ ledger: mortal(ledger), chain: server, servers: [server] });
        killed = await Promise.race([death, dying.look().then(() => false)]);
        const alive = chain.server();
        const log = { info: () => {}, warn: () => {}, error: () => {} };
        const watch = new RefundWatch({
          ledger,
          chain: alive,
          servers: [alive],
          mint: MINT,
          log,
          now: () => time.now,
        });
        for (let n = 0; n < 3; n++) {
          await refunds().look();
          await watch.look();
        }
        expect(got() - before, `killed ${when} step ${step}`).to.equal(PAID);
        expect(await ledger.find(id)).to.include({ state: 'refunded', repaid: PAID, repaying: 0n });
      }
  });

  it('are not paid twice while an RPC server hides a landed transfer', async () => {
    await owed();
    time.now += HOUR_MS;
    let hidden = true;
    const liar = chain.server(() => hidden);
    const honest = chain.server();
    // This server searches for its transfer until the deadline, because the RPC server hides it.
    const deceived = refunds({ chain: liar, servers: [liar, honest], sendMs: 1_500 });
    await deceived.look();
    hidden = false;
    time.now += 24 * HOUR_MS;
    await refunds().look();
    expect([got(), chain.landed.length]).to.deep.equal([PAID, 1]);
  });
}
