import { expect } from 'chai';
import type { Ledger } from '../../src/ledger/store.js';
import { RefundWatch } from '../../src/operator/refund-watch.js';
import { reserveRefund } from '../../src/operator/reserve-refund.js';
import { lookForGivenUp, sendRefund, type RefundSending } from '../../src/operator/send-refund.js';
import { delivered, payment } from '../support/ledgers.js';
import { eachWithANewLedger, ledger, time } from '../support/ledger-suite.js';
import { rows } from '../support/extent.js';
import { killedAt } from '../support/killed-at.js';
import { onEachEngine, type LedgerPlace } from '../support/ledger-places.js';
import { accountOf, MINT, newKeyPair, paidBy, RefundChain } from '../support/refund-chain.js';

const PAID = 10_000n;
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

onEachEngine('A refund that is sent with a key', promises);

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  const [hot, second, feePayer, payer] = [newKeyPair(), newKeyPair(), newKeyPair(), newKeyPair()];
  let chain: RefundChain;

  beforeEach(() => {
    chain = new RefundChain();
    for (const { address } of [hot, second]) chain.open(address, 10_000_000n);
    chain.open(payer.address, 0n);
  });

  async function sold(more: object = {}): Promise<string> {
    const request = payment({ ...paidBy(payer.address), amount: PAID, ...more });
    await delivered(ledger, request);
    return request.id;
  }

  type With = Partial<RefundSending> & { wallet?: typeof hot; floor?: bigint; amount?: string; ms?: number };

  /** Sends a refund as the command does: each run knows only the ledger and the chain. */
  async function refund(id: string, given: With = {}): Promise<string> {
    const { wallet = hot, floor = 0n, amount, ms = 20_000, ...parts } = given;
    const server = chain.server();
    const heights = { checkRise: () => {} };
    const sending = { ledger, chain: server, servers: [server], mint: MINT, heights, log: SILENT, ...parts };
    const signal = AbortSignal.timeout(ms);
    const paid = async () => (await sending.ledger.find(id)) ?? expect.fail('no such payment');
    await lookForGivenUp(sending, await paid(), signal);
    const books = sending.ledger as Ledger;
    const reserved = await reserveRefund(books, await paid(), { amount, way: 'key' });
    return sendRefund(sending, await paid(), reserved, { keyPair: wallet, feePayer, floor }, signal);
  }

  const rejected = (sent: Promise<string>): Promise<string> =>
    sent.then(
      signature => expect.fail(`it was sent: ${signature}`),
      (error: Error) => error.message,
    );

  async function refundedOnce(id: string): Promise<void> {
    expect(chain.held(payer.address)).to.equal(PAID);
    expect(chain.landed).to.have.length(1);
    expect(await ledger.find(id)).to.include({
      repaid: PAID,
      repaying: 0n,
      repaidBy: chain.landed[0]?.signature,
    });
  }

  it('reaches the account that the payment came from, and is recorded', async () => {
    const id = await sold();
    const signature = await refund(id);
    await refundedOnce(id);
    expect(chain.landed[0]?.signature).to.equal(signature);
    expect(await rejected(refund(id))).to.include('was refunded in full');
    await refundedOnce(id);
  });

  it('can be paid in parts up to the amount, but never more', async () => {
    const id = await sold();
    await refund(id, { amount: '0.004' });
    expect(await rejected(refund(id, { amount: '0.006001' }))).to.include('Only 0.006 USDC of payment');
    await refund(id);
    expect(chain.held(payer.address)).to.equal(PAID);
    expect(await rejected(refund(id))).to.include('was refunded in full');
  });

  it('is paid once, at whatever step its sender is killed', async function () {
    this.timeout(120_000);
    for (let step = 1, killed = true; killed; step++)
      for (const when of rows(['after', 'before'] as const)) {
        const id = await sold();
        const before = chain.held(payer.address);
        killed = await diesAt(step, when, id);
        // If the command was not killed, the refund is complete.
        if (killed)
          await refund(id).catch(({ message }: Error) => expect(message).to.include('was refunded'));
        expect(chain.held(payer.address) - before, `killed ${when} step ${step}`).to.equal(PAID);
        expect(await ledger.find(id)).to.include({ repaid: PAID, repaying: 0n });
        const all = await ledger.repaymentsOf(id);
        expect(all.filter(({ state }) => state === 'done')).to.have.length(1);
      }
  });

  /**
   * Runs the command until it is killed, after which it makes no request and gets no answer. @returns false if it ended
   * before that
   */
  async function diesAt(step: number, when: 'before' | 'after', id: string): Promise<boolean> {
    const { mortal, death } = killedAt(step, when);
    const server = mortal(chain.server());
    const run = refund(id, { ledger: mortal(ledger), chain: server, servers: [server] });
    return Promise.race([death, run.then(() => false)]);
  }

  it('is sent once if several operators send it at the same time from different wallets', async () => {
    const id = await sold();
    const all = await Promise.allSettled([hot, second, hot, second].map(wallet => refund(id, { wallet })));
    const signatures = new Set(all.flatMap(each => (each.status === 'fulfilled' ? [each.value] : [])));
    expect([...signatures]).to.have.length(1);
    await refundedOnce(id);
    expect(new Set(chain.sent)).to.have.length(1);
  });

  it('is not signed again while an RPC server hides that it landed', async () => {
    const id = await sold();
    let hidden = true;
    const liar = chain.server(() => hidden);
    const both = { chain: liar, servers: [liar, chain.server()] };
    const alone = { chain: liar, servers: [liar] };
    expect(await rejected(refund(id, { ...alone, ms: 500 }))).to.include('It is not known yet');
    chain.height += 200;
    expect(await rejected(refund(id, { ...alone, ms: 500 }))).to.include('It is not known yet');
    chain.height += 1_000;
    await refund(id, both);
    await refundedOnce(id);
    hidden = false;
    expect(await rejected(refund(id, alone))).to.include('was refunded in full');
    await refundedOnce(id);
  });

  it('that counted as lost because an RPC server lied is found again before another refund is sent', async () => {
    const id = await sold();
    const liar = chain.server(() => true);
    expect(await rejected(refund(id, { chain: liar, servers: [liar], ms: 500 }))).to.include('not known yet');
    chain.height += 1_000;
    const lied = await rejected(refund(id, { chain: liar, servers: [liar] }));
    expect(lied).to.include('did not move any money');
    expect(await rejected(refund(id))).to.include('was refunded in full');
    await refundedOnce(id);
  });

  it('is sent with a new signature once the old one can never land, and not before', async () => {
    const id = await sold();
    chain.loses = true;
    expect(await rejected(refund(id, { ms: 300 }))).to.include('sends the same transaction, never another');
    chain.height += 250;
    expect(await rejected(refund(id, { ms: 300 }))).to.include('It is not known yet');
    expect(new Set(chain.sent)).to.have.length(1);
    chain.height += 100;
    expect(await rejected(refund(id)))
      .to.include('never landed')
      .and.include('The amount is available again');
    chain.loses = false;
    await refund(id);
    await refundedOnce(id);
  });

  it('counts as lost only if every RPC server shows that it can never land', async () => {
    const id = await sold();
    chain.loses = true;
    expect(await rejected(refund(id, { ms: 300 }))).to.include('not known yet');
    chain.height += 1_000;
    const away = { ...chain.server(), transaction: () => Promise.reject(new Error('it is away')) };
    const servers = [chain.server(), away];
    expect(await rejected(refund(id, { servers, ms: 300 }))).to.include('it is away');
    expect((await ledger.repaymentsOf(id))[0]).to.include({ state: 'sending' });
  });

  it('that failed on chain moves nothing, and may be sent again', async () => {
    const id = await sold();
    chain.fails = true;
    expect(await rejected(refund(id))).to.include('it failed on chain');
    chain.fails = false;
    await refund(id);
    expect(chain.held(payer.address)).to.equal(PAID);
  });

  const CLOSED: [string, RegExp, () => void][] = [
    ['is closed', /is closed.*Ask the buyer to open it again/, () => chain.accounts.clear()],
    ['is frozen', /is frozen/, () => chain.open(payer.address, 0n, 2)],
    [
      'belongs to somebody else now',
      /no longer that payer's USDC account/,
      () => Object.assign(chain.accounts.get(accountOf(payer.address)) ?? {}, { owner: second.address }),
    ],
    [
      'holds another token',
      /no longer that payer's USDC account/,
      () => Object.assign(chain.accounts.get(accountOf(payer.address)) ?? {}, { mint: second.address }),
    ],
  ];
  for (const [how, said, close] of CLOSED)
    it(`is not sent to an account that ${how}, and the amount is released`, async () => {
      const id = await sold();
      close();
      expect(await rejected(refund(id)))
        .to.match(said)
        .and.include('Nothing was sent');
      expect(chain.sent).to.deep.equal([]);
      expect(await ledger.find(id)).to.include({ repaid: 0n, repaying: 0n });
    });

  it('is not sent if the wallet or the fee payer has too little, or the chain would refuse it, and the message says which', async () => {
    const id = await sold();
    const poor = newKeyPair();
    expect(await rejected(refund(id, { wallet: poor }))).to.include(
      'has 0.00 USDC, but the refund needs 0.01',
    );
    chain.lamports = 1_011_199n;
    const message = await rejected(refund(id, { floor: 1_000_000n }));
    expect(message).to.include(feePayer.address).and.include('send SOL to it');
    chain.lamports = 1_011_200n;
    chain.simulation = '"BlockhashNotFound"';
    expect(await rejected(refund(id, { floor: 1_000_000n }))).to.include('BlockhashNotFound');
    expect(await rejected(refund(id, { wallet: payer }))).to.include('it is the payer of payment');
    expect(chain.sent).to.deep.equal([]);
    expect(await ledger.find(id)).to.include({ repaid: 0n, repaying: 0n });
  });

  it('is not sent with a transaction from the ledger that pays something else', async () => {
    const [one, other] = [await sold(), await sold()];
    chain.loses = true;
    expect(await rejected(refund(other, { ms: 300 }))).to.include('not known yet');
    const [written] = await ledger.repaymentsOf(other);
    const paid = (await ledger.find(one)) ?? expect.fail('no payment');
    const reserved = await reserveRefund(ledger, paid, { way: 'key' });
    await ledger.writeDownRepayment(reserved.id, {
      evidence: written?.evidence ?? '',
      signature: `${written?.signature} copied`,
      position: 2_000,
    });
    const before = chain.sent.length;
    expect(await rejected(refund(one, { ms: 300 }))).to.include('does not pay it');
    expect(chain.sent).to.have.length(before);
  });

  it("can't be sent while a wallet may pay the same refund by a link", async () => {
    const id = await sold();
    const paid = (await ledger.find(id)) ?? expect.fail('no payment');
    await reserveRefund(ledger, paid, { way: 'wallet' });
    expect(await rejected(refund(id))).to.include('is waiting for a wallet');
    const [asked] = await ledger.repaymentsOf(id);
    await ledger.cancelRepayment(asked?.id ?? '', 'by the operator');
    await refund(id);
    await refundedOnce(id);
    const sending = await sold();
    chain.loses = true;
    await rejected(refund(sending, { ms: 300 }));
    const again = reserveRefund(ledger, (await ledger.find(sending)) ?? paid, { way: 'wallet' });
    expect(await again.catch((error: Error) => error.message)).to.include('is being sent with a key');
  });

  function watchOf(): RefundWatch {
    const server = chain.server();
    const now = (): number => time.now;
    return new RefundWatch({ ledger, chain: server, servers: [server], mint: MINT, log: SILENT, now });
  }

  it('is sent again by a running server, which does not have the key, once its sender has died', async () => {
    const id = await sold();
    chain.loses = true;
    await rejected(refund(id, { ms: 300 }));
    chain.loses = false;
    const watch = watchOf();
    await watch.look();
    await watch.look();
    await watch.stop();
    await refundedOnce(id);
    expect(new Set(chain.sent)).to.have.length(1);
  });

  it('is given up by a running server once it can never land, or if it was never signed', async () => {
    const [lost, unsigned] = [await sold(), await sold()];
    chain.loses = true;
    await rejected(refund(lost, { ms: 300 }));
    await reserveRefund(ledger, (await ledger.find(unsigned)) ?? expect.fail('no payment'), { way: 'key' });
    const watch = watchOf();
    await watch.look();
    expect(await ledger.find(unsigned), 'just reserved').to.include({ repaying: PAID });
    chain.height += 1_000;
    time.now += 3_600_000;
    await watch.look();
    await watch.stop();
    for (const id of [lost, unsigned]) expect(await ledger.find(id)).to.include({ repaid: 0n, repaying: 0n });
  });
}
