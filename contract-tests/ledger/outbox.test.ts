import { expect } from 'chai';
import { openLedgerReader, type Ledger, type OutboxEvent } from '../../src/ledger/store.js';
import {
  closeLater,
  eachWithANewLedger,
  ledger,
  open,
  place,
  reopen,
  time,
} from '../support/ledger-suite.js';
import { onEachEngine } from '../support/ledger-places.js';
import { claimed, delivered, payment, settles } from '../support/ledgers.js';

const HOUR = 3_600_000;
const SHOP = 'shop.example-1';
const CHAT = 'chat.example-2';

async function tellsTo(server: Ledger, ...targets: { name: string; kinds: string[] }[]): Promise<void> {
  await server.setTargets(targets);
  await server.refreshTargets();
}

async function owed(server: Ledger, flow: 'authorization' | 'upfront' = 'authorization'): Promise<string> {
  const request = payment({ flow });
  const claim = await claimed(server, request);
  await settles(server, request.id, claim);
  await server.owe(request.id, claim, { settlement: 'sig' });
  return request.id;
}

const kindsOf = (events: readonly OutboxEvent[]): string[] => events.map(({ kind }) => kind);
const written = async (): Promise<string[]> => kindsOf((await ledger.events(100)).toReversed());

async function told(server: Ledger, events: readonly OutboxEvent[]): Promise<void> {
  await server.attempted(events.map(({ seq, attempts: attempt }) => ({ seq, attempt, answer: '200' })));
}

onEachEngine('The outbox', make => {
  eachWithANewLedger(make);

  it('stays empty while there are no webhooks', async () => {
    await delivered(ledger, payment());
    await owed(ledger);
    expect(await ledger.events(10)).to.deep.equal([]);
  });

  it('contains each sale once, whether its answer is delivered with it or later', async () => {
    await tellsTo(ledger, { name: SHOP, kinds: [] });
    await delivered(ledger, payment());
    const request = payment({ flow: 'upfront' });
    const claim = await claimed(ledger, request);
    await settles(ledger, request.id, claim);
    await ledger.owe(request.id, claim, { settlement: 'sig' });
    await ledger.deliver(request.id, claim, { settlement: 'sig', answerExpiresAt: time.now + HOUR });
    expect(await written()).to.deep.equal(['sale.paid', 'sale.paid']);
    const [newest] = await ledger.events(1);
    expect(newest?.facts).to.deep.include({
      payment: request.id,
      operation: 'summarize',
      amount: '10000',
      settlement: 'sig',
    });
  });

  it('has no event for a transition that did not happen', async () => {
    await tellsTo(ledger, { name: SHOP, kinds: [] });
    const request = payment();
    const claim = await claimed(ledger, request);
    await settles(ledger, request.id, claim);
    expect(await ledger.owe(request.id, claim + 1, { settlement: 'sig' })).to.equal(false);
    expect(await written()).to.deep.equal([]);
  });

  it('has the outcome of an order: opened, failed, refunded by a command while the server is running', async () => {
    await tellsTo(ledger, { name: SHOP, kinds: [] });
    const id = await owed(ledger, 'upfront');
    await ledger.openOrder({ payment: id, request: '{}', wanted: 3, deadline: time.now + HOUR });
    const claim = (await ledger.find(id))?.claim ?? 0;
    const ended = { attempt: 1, failure: 'No one answered.', againMs: null };
    await ledger.failOrder(id, claim, ended);
    expect(await ledger.failOrder(id, claim, ended)).to.equal(false);
    const beside = await openLedgerReader({ url: place.url, now: () => time.now });
    closeLater(beside);
    await beside.refund(id, { signature: 'back', amount: 10_000n, slot: 2_000, refundedAt: time.now });
    expect(await written()).to.deep.equal(['sale.paid', 'order.opened', 'payment.owed', 'payment.refunded']);
    const events = await ledger.events(10, { waiting: true });
    expect(events[2]?.facts).to.deep.include({ attempt: 1, failure: 'No one answered.', final: true });
    expect(events[3]?.facts).to.deep.include({ refund: 'back', refunded: '10000' });
  });

  it('gives each webhook the kinds of events that it wants', async () => {
    await tellsTo(ledger, { name: SHOP, kinds: [] }, { name: CHAT, kinds: ['payment.owed', 'order.late'] });
    await owed(ledger);
    expect(kindsOf(await ledger.takeEvents(SHOP, 10))).to.deep.equal(['sale.paid']);
    expect(kindsOf(await ledger.takeEvents(CHAT, 10))).to.deep.equal(['payment.owed']);
  });

  it('gives the second event of a payment only once the target has the first, but gives events of other payments immediately', async () => {
    await tellsTo(ledger, { name: SHOP, kinds: [] });
    const first = await owed(ledger);
    const second = await owed(ledger);
    const events = await ledger.takeEvents(SHOP, 10);
    expect(events.map(({ kind, subject }) => [kind, subject])).to.deep.equal([
      ['sale.paid', first],
      ['sale.paid', second],
    ]);
    const [one, other] = events as [OutboxEvent, OutboxEvent];
    await ledger.attempted([{ seq: one.seq, attempt: 1, answer: '500', againMs: 5_000 }]);
    await told(ledger, [other]);
    const next = await ledger.takeEvents(SHOP, 10);
    expect(next.map(({ kind, subject }) => [kind, subject])).to.deep.equal([['payment.owed', second]]);
    time.now += 5_000;
    expect(kindsOf(await ledger.takeEvents(SHOP, 10))).to.deep.equal(['sale.paid']);
  });

  it('gives an event to one server at a time, and to another one when that server is gone', async () => {
    await tellsTo(ledger, { name: SHOP, kinds: [] });
    for (let n = 0; n < 20; n++) await delivered(ledger, payment());
    const taken = await Promise.all(Array.from({ length: 8 }, () => ledger.takeEvents(SHOP, 5)));
    const seqs = taken.flat().map(({ seq }) => seq);
    expect(new Set(seqs).size).to.equal(seqs.length);
    while ((await ledger.takeEvents(SHOP, 5)).length > 0);
    time.now += 61_000;
    const again = await ledger.takeEvents(SHOP, 30);
    expect(again.map(({ attempts }) => attempts)).to.deep.equal(Array<number>(20).fill(2));
    // The first server comes back late: its report no longer counts.
    await ledger.attempted(seqs.map(seq => ({ seq, attempt: 1, answer: '200' })));
    expect((await ledger.eventsWaiting())[0]?.events).to.equal(20);
  });

  it('writes the same event once, whoever reports it', async () => {
    await tellsTo(ledger, { name: SHOP, kinds: [] });
    const late = { kind: 'order.late', subject: 'a'.repeat(64), once: 'attempt 1', facts: {} };
    await Promise.all([ledger.tell(late), ledger.tell(late), ledger.tell({ ...late, once: 'attempt 2' })]);
    expect((await ledger.events(10)).length).to.equal(2);
  });

  it('gives up after three days, deletes after a week, and delivers again on request', async () => {
    await tellsTo(ledger, { name: SHOP, kinds: [] });
    await owed(ledger);
    time.now += 72 * HOUR;
    expect(await ledger.takeEvents(SHOP, 10)).to.have.lengthOf(1);
    expect(await ledger.sweepEvents()).to.deep.equal({ givenUp: 2, dropped: 0 });
    expect(await ledger.takeEvents(SHOP, 10)).to.deep.equal([]);
    const [event] = await ledger.events(1);
    expect(event?.outcome).to.equal('given up');
    expect(await ledger.resendEvent(event?.seq ?? 0)).to.equal(true);
    expect(kindsOf(await ledger.takeEvents(SHOP, 10))).to.deep.equal(['payment.owed']);
    time.now += 169 * HOUR;
    await ledger.sweepEvents();
    expect(await ledger.events(10)).to.have.lengthOf(1);
    expect(await ledger.resendEvent(999_999)).to.equal(false);
  });

  it('keeps no events for a webhook that was dropped, or whose hold has expired', async () => {
    await ledger.holdTarget('listener', [], time.now + 30_000);
    await delivered(ledger, payment());
    expect(await ledger.takeEvents('listener', 10)).to.have.lengthOf(1);
    await ledger.dropTarget('listener');
    expect(await ledger.events(10)).to.deep.equal([]);
    await ledger.holdTarget('another', [], time.now + 30_000);
    time.now += 31_000;
    await delivered(ledger, payment());
    await ledger.refreshTargets();
    await delivered(ledger, payment());
    expect(await ledger.events(10)).to.deep.equal([]);
  });

  it('continues after a restart, and keeps nothing for webhooks that were removed from the settings', async () => {
    await tellsTo(ledger, { name: SHOP, kinds: [] });
    await owed(ledger);
    await ledger.takeEvents(SHOP, 10);
    await reopen();
    time.now += place.url.startsWith('file:') ? 0 : 61_000;
    expect(kindsOf(await ledger.takeEvents(SHOP, 10))).to.deep.equal(['sale.paid']);
    await tellsTo(ledger);
    await owed(ledger);
    expect(await ledger.events(10)).to.have.lengthOf(2);
  });
});

onEachEngine('An outbox of two servers', (make, engine) => {
  eachWithANewLedger(make);
  if (engine === 'SQLite') return;

  it('gives each event to one of the servers', async () => {
    const other = await open();
    await tellsTo(ledger, { name: SHOP, kinds: [] });
    for (let n = 0; n < 30; n++) await delivered(ledger, payment());
    const takes = Array.from({ length: 12 }, (_, n) => (n % 2 ? other : ledger).takeEvents(SHOP, 5));
    const seqs = (await Promise.all(takes)).flat().map(({ seq }) => seq);
    expect(new Set(seqs).size).to.equal(seqs.length);
  });
});
