import { expect } from 'chai';
import type { Reply, ReplyStore } from '../../../handlers/brand-feedback/replies.js';
import { openLedger, type Ledger } from '../../../src/ledger/store.js';
import { openReplies } from '../../support/brand-replies.js';
import { faultOf, OWNER } from '../../support/ledgers.js';
import { aRefund, claimRequest, onEachEngine, paymentIn, forServer } from '../../support/ledger-places.js';
import type { LedgerPlace } from '../../support/ledger-places.js';

let serial = 0;

function reply(overrides: Partial<Reply> = {}): Reply {
  serial += 1;
  return {
    id: `reply-${serial}`,
    text: 'Nice.',
    sentiment: 'positive',
    respondent: `person-${serial}`,
    isSample: false,
    ...overrides,
  };
}

onEachEngine('a store of replies', (make, engine) => promises(make, engine === 'PostgreSQL' ? 3 : 1));

function promises(make: () => Promise<LedgerPlace>, servers: number): void {
  let place: LedgerPlace;
  let ledger: Ledger;
  let all: Ledger[];
  let replies: ReplyStore;
  /** Shared by all servers. */
  let every: ReplyStore[];
  let clock: number;

  const open = (): Promise<Ledger> => openLedger({ ...forServer(place.url), ...OWNER, now: () => clock });
  /** Opens an order for an owed payment. */
  const asked = async (wanted = 3): Promise<string> => {
    const payment = await paymentIn(ledger, 'owed');
    const request = '{"brand":"Acme","question":"Any good?"}';
    await ledger.openOrder({ payment, request, wanted, deadline: clock + 60_000 });
    return payment;
  };
  const texts = async (payment: string): Promise<string[]> =>
    (await replies.replies(payment)).map(({ text }) => text);

  beforeEach(async () => {
    clock = 1_800_000_000_000;
    place = await make();
    all = await Promise.all(Array.from({ length: servers }, open));
    [ledger] = all as [Ledger];
    every = await Promise.all(all.map(openReplies));
    [replies] = every as [ReplyStore];
  });

  afterEach(async () => {
    await Promise.all(all.map(each => each.close()));
    await place.remove();
  });

  it('counts the replies to a question, except rejected ones', async () => {
    const payment = await asked();
    await replies.add(payment, reply({ id: 'thrown out' }));
    await replies.add(payment, reply());
    await replies.reject(payment, 'thrown out');
    const question = { id: payment, brand: 'Acme', question: 'Any good?', wanted: 3, attempt: 1 };
    const [open] = await replies.open();
    expect(open).to.deep.include({ ...question, replies: 1 });
    expect((await ledger.order(payment))?.done).to.equal(1);
  });

  it('accepts no more replies once the operator has refunded their order', async () => {
    const payment = await asked();
    await ledger.refund(payment, aRefund());
    expect(await replies.add(payment, reply())).to.equal('closed');
    expect(await replies.open()).to.deep.equal([]);
  });

  it('keeps replies as they were given, in order, across attempts and after the ledger is reopened', async () => {
    const payment = await asked(5);
    const given = [
      reply({ text: 'Größe "9" \u{1F600}\n', sentiment: 'unknown' }),
      reply({ sentiment: 'negative' }),
      reply({ isSample: true }),
    ];
    for (const each of given) expect(await replies.add(payment, each)).to.equal('added');
    expect(await replies.replies(payment)).to.deep.equal(given);
    await ledger.finishOrder(payment);
    await ledger.reopenOrder(payment, clock + 1);
    await Promise.all(all.map(each => each.close()));
    all = [(ledger = await open())];
    replies = await openReplies(ledger);
    expect(await replies.replies(payment)).to.deep.equal(given);
  });

  it('never counts more replies than wanted, however many come at once on however many servers', async () => {
    const payment = await asked(7);
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        (every[index % every.length] ?? replies).add(payment, reply()),
      ),
    );
    expect(results.filter(result => result === 'added')).to.have.length(7);
    expect(results.filter(result => result === 'full')).to.have.length(53);
    expect(await replies.replies(payment)).to.have.length(7);
  });

  it('accepts one reply per respondent, however many arrive at once', async () => {
    const payment = await asked(7);
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (every[index % every.length] ?? replies).add(payment, reply({ respondent: 'eager' })),
      ),
    );
    expect(results.filter(result => result === 'added')).to.have.length(1);
    expect(results.filter(result => result === 'duplicate')).to.have.length(19);
  });

  it('accepts no further reply from a rejected respondent, but one from somebody else in their place', async () => {
    const payment = await asked(1);
    await replies.add(payment, reply({ id: 'spam', respondent: 'spammer' }));
    expect(await replies.reject(payment, 'spam')).to.equal(true);
    expect(await replies.reject(payment, 'spam')).to.equal(false);
    expect(await replies.reject(payment, 'nothing')).to.equal(false);
    expect(await replies.replies(payment)).to.deep.equal([]);
    expect(await replies.add(payment, reply({ respondent: 'spammer' }))).to.equal('duplicate');
    expect(await replies.add(payment, reply({ id: 'spam' }))).to.equal('duplicate');
    expect(await replies.add(payment, reply())).to.equal('added');
  });

  it('does not reject a reply that is in a saved answer, delivered or not, or that belongs to a refunded payment', async () => {
    const payment = await asked();
    await replies.add(payment, reply({ id: 'early' }));
    await replies.add(payment, reply({ id: 'sold' }));
    const row = (await ledger.adopt(payment, 60_000)) ?? expect.fail('another server held it');
    expect(await replies.reject(payment, 'early')).to.equal(true);
    await ledger.saveAnswer(payment, row.claim, { status: 200, headers: {}, body: Buffer.from('{}') });
    expect(await replies.reject(payment, 'sold'), 'saved').to.equal(false);
    const how = { settlement: '5'.repeat(88), answerExpiresAt: clock + 1_000 };
    expect(await ledger.deliver(payment, row.claim, how)).to.equal(true);
    expect(await replies.reject(payment, 'sold'), 'delivered').to.equal(false);
    expect(await replies.replies(payment)).to.have.length(1);
    const returned = await asked();
    await replies.add(returned, reply({ id: 'unsold' }));
    expect(await ledger.refund(returned, aRefund())).to.equal('refunded');
    expect(await replies.reject(returned, 'unsold'), 'refunded').to.equal(false);
  });

  it('accepts replies only while the order is open', async () => {
    const payment = await asked();
    await ledger.finishOrder(payment);
    expect(await replies.add(payment, reply())).to.equal('closed');
    expect(await replies.add('f'.repeat(64), reply())).to.equal('closed');
    await ledger.reopenOrder(payment, clock + 1);
    expect(await replies.add(payment, reply())).to.equal('added');
  });

  it("never lets sample replies take a person's place", async () => {
    const payment = await asked(3);
    await replies.add(payment, reply({ isSample: true, text: 'house 1' }));
    await replies.add(payment, reply({ text: 'person 1' }));
    await replies.add(payment, reply({ isSample: true, text: 'house 2' }));
    expect(await replies.add(payment, reply({ isSample: true }))).to.equal('full');
    expect(await replies.add(payment, reply({ text: 'person 2' }))).to.equal('added');
    expect(await texts(payment)).to.deep.equal(['house 1', 'person 1', 'person 2']);
    expect(await replies.add(payment, reply({ text: 'person 3' }))).to.equal('added');
    expect(await texts(payment)).to.deep.equal(['person 1', 'person 2', 'person 3']);
    expect(await replies.add(payment, reply())).to.equal('full');
  });

  it('does not replace a sample reply once the order is closed, or if the respondent has already replied', async () => {
    const payment = await asked(2);
    await replies.add(payment, reply({ respondent: 'once' }));
    await replies.add(payment, reply({ isSample: true, text: 'house' }));
    expect(await replies.add(payment, reply({ respondent: 'once' }))).to.equal('duplicate');
    await ledger.finishOrder(payment);
    expect(await replies.add(payment, reply())).to.equal('closed');
    expect(await texts(payment)).to.deep.equal(['Nice.', 'house']);
  });

  it('keeps a held reply without counting it, even in earlier versions, until it is admitted', async () => {
    const payment = await asked(2);
    expect(await replies.add(payment, reply({ id: 'h', text: 'asdf', isHeld: true }))).to.equal('held');
    expect(await replies.replies(payment)).to.deep.equal([]);
    expect((await ledger.order(payment))?.done).to.equal(0);
    const stored = (await ledger.storedRows(payment))['brand_feedback_replies'] ?? [];
    expect(
      stored.map(row => row['rejected_at']),
      'taken as rejected',
    ).to.deep.equal([0]);
    expect(await replies.admit(payment, 'h')).to.equal(true);
    expect(await replies.admit(payment, 'h')).to.equal(false);
    expect((await ledger.order(payment))?.done).to.equal(1);
    expect(await texts(payment)).to.deep.equal(['asdf']);
  });

  it('admits held replies only up to the wanted number, unless one takes the place of a sample reply', async () => {
    const payment = await asked(2);
    await replies.add(payment, reply({ id: 'h1', text: 'h1', isHeld: true }));
    await replies.add(payment, reply({ id: 'h2', text: 'h2', isHeld: true }));
    await replies.add(payment, reply({ text: 'person' }));
    await replies.add(payment, reply({ text: 'sample', isSample: true }));
    expect(await replies.admit(payment, 'h1')).to.equal(true);
    expect(await texts(payment)).to.have.members(['h1', 'person']);
    expect(await replies.admit(payment, 'h2')).to.equal(false);
    expect(await replies.add(payment, reply({ isHeld: true }))).to.equal('full');
    expect(await replies.reject(payment, 'h2')).to.equal(true);
    expect(await replies.held(payment)).to.deep.equal([]);
    expect((await ledger.order(payment))?.done).to.equal(2);
  });

  it('stores an intent, and refuses one for an order that does not exist', async () => {
    const payment = await asked();
    expect(await replies.intent(payment)).to.equal(null);
    await replies.saveIntent(payment, '{"task":"coinslot-1"}');
    expect(await replies.intent(payment)).to.equal('{"task":"coinslot-1"}');
    expect((await faultOf(replies.saveIntent('f'.repeat(64), 'lost'))).code).to.equal('failed');
  });

  it('stores a text with characters that databases may reject', async () => {
    const payment = await asked();
    const neighbour = ledger.claim(claimRequest());
    expect(
      await replies.add(payment, reply({ text: "a\0b'; drop table brand_feedback_replies; --" })),
    ).to.equal('added');
    expect((await neighbour).kind).to.equal('claimed');
    expect(await texts(payment)).to.deep.equal(["ab'; drop table brand_feedback_replies; --"]);
  });
}
