import { expect } from 'chai';
import { exported, FORMATS, type Format } from '../../src/books/export-formats.js';
import { FiatRates } from '../../src/books/fiat-rates.js';
import type { Movement } from '../../src/books/movement.js';
import { movements } from '../../src/books/movements.js';
import { statementOf } from '../../src/books/booked-sums.js';
import { signatureOf } from '../../src/facilitators/send-until-landed.js';
import { openLedger, REMOVED_PAYER, type Ledger } from '../../src/ledger/store.js';
import { anonymizer } from '../../src/operator/anonymizer.js';
import { condenseEvidence } from '../../src/rails/solana/kept-evidence.js';
import { NETWORKS } from '../../src/rails/solana/networks.js';
import { onEachEngine, paymentIn, type LedgerPlace, forServer } from '../support/ledger-places.js';
import { evidenceOf, newKeyPair } from '../support/refund-chain.js';

const MARCH = { from: Date.UTC(2026, 2, 1), to: Date.UTC(2026, 3, 1) };
const TENTH = Date.UTC(2026, 2, 10, 12);
const FEE = -11_200n;

async function all(source: AsyncIterable<Movement>): Promise<Movement[]> {
  const found: Movement[] = [];
  for await (const each of source) found.push(each);
  return found;
}

onEachEngine('movements of money', make => {
  let place: LedgerPlace;
  let ledger: Ledger;
  let clock: number;
  const [receiver, payer] = [newKeyPair().address, newKeyPair().address];

  beforeEach(async () => {
    place = await make();
    clock = TENTH;
    const { caip2: network } = NETWORKS.devnet;
    ledger = await openLedger({ ...forServer(place.url), payTo: receiver, network, now: () => clock });
  });
  afterEach(async () => {
    await ledger.close();
    await place.remove();
  });

  const signed = (evidence: string): string => {
    const bytes = Buffer.from(evidence, 'base64');
    bytes.fill(7, 1, 65);
    return bytes.toString('base64');
  };
  const sell = (evidence = evidenceOf(payer), operation = 'summarize'): Promise<string> =>
    paymentIn(ledger, 'delivered', {
      ...{ payer, operation, amount: 10_000n, evidence, settlement: `sold at ${clock}` },
      network: NETWORKS.devnet.caip2,
    });

  it('list sales and refunds in order, and network fees only if this shop was the fee payer', async () => {
    const foreign = await sell();
    clock += 1_000;
    const own = await sell(signed(evidenceOf(payer)));
    const asked = await ledger.startRepayment({ payment: foreign, amount: 4_000n, way: 'wallet', after: 1 });
    if (asked.kind !== 'started') throw new Error(asked.kind);
    const landed = { signature: 'back', slot: 2_000, at: TENTH + 500, source: receiver };
    await ledger.landRepayment(asked.repayment.id, landed);
    const found = await all(movements(ledger, MARCH));
    expect(found.map(({ at, kind, amount, payment }) => [at - TENTH, kind, amount, payment])).to.deep.equal([
      [0, 'sale', 10_000n, foreign],
      [500, 'refund', -4_000n, foreign],
      [1_000, 'sale', 10_000n, own],
      [1_000, 'network fee', FEE, own],
    ]);
    expect(found[0]).to.include({ account: receiver, counterparty: payer, operation: 'summarize' });
    expect(found[0]?.transaction).to.equal(`sold at ${TENTH}`);
    expect(found[1]).to.include({ transaction: 'back', counterparty: payer, account: receiver });
  });

  it('are the same after the evidence of the sales was condensed', async () => {
    for (const evidence of [evidenceOf(payer), signed(evidenceOf(payer)), 'AAAA']) {
      clock += 1_000;
      await sell(evidence);
    }
    const before = await all(movements(ledger, MARCH));
    for (const { id, evidence } of await ledger.list())
      await ledger.audited(id, condenseEvidence(evidence, undefined));
    expect(await all(movements(ledger, MARCH))).to.deep.equal(before);
    expect((await ledger.list()).map(({ evidence }) => evidence.length > 200)).not.to.include(true);
  });

  it('are the same after the payer was removed', async () => {
    const sale = await sell(signed(evidenceOf(payer)));
    const started = await ledger.startRepayment({ payment: sale, amount: 1_000n, way: 'key', after: 1 });
    if (started.kind !== 'started') throw new Error(started.kind);
    const evidence = signed(evidenceOf(receiver));
    const signature = signatureOf(evidence) ?? '';
    await ledger.writeDownRepayment(started.repayment.id, { evidence, signature, position: 9 });
    const landed = { signature, slot: 2_000, at: clock + 1, source: receiver };
    expect(await ledger.landRepayment(started.repayment.id, landed)).to.equal('done');
    await ledger.audited(sale, (await ledger.find(sale))?.evidence ?? '');
    const before = await all(movements(ledger, MARCH));
    expect(before.map(({ kind }) => kind)).to.deep.equal(['sale', 'network fee', 'refund', 'network fee']);
    expect(await ledger.removePayer(payer, anonymizer)).to.deep.equal({ removed: 1, open: 0 });
    const named = (each: Movement): Movement =>
      each.counterparty === payer ? { ...each, counterparty: REMOVED_PAYER } : each;
    expect(await all(movements(ledger, MARCH))).to.deep.equal(before.map(named));
  });

  it("include the fee of a refund only if this shop's own key paid it", async () => {
    const sale = await sell();
    for (const [amount, isSent] of [
      [1_000n, true],
      [2_000n, false],
    ] as const) {
      const started = await ledger.startRepayment({ payment: sale, amount, way: 'key', after: 1 });
      if (started.kind !== 'started') throw new Error(started.kind);
      const evidence = signed(evidenceOf(receiver));
      const sent = `${signatureOf(evidence)}${amount}`;
      await ledger.writeDownRepayment(started.repayment.id, { evidence, signature: sent, position: 9 });
      const signature = isSent ? (signatureOf(evidence) ?? '') : 'by another wallet';
      const landed = { signature, slot: 2_000, at: clock + 1, source: isSent ? receiver : 'a wallet' };
      expect(await ledger.landRepayment(started.repayment.id, landed)).to.equal('done');
    }
    const found = await all(movements(ledger, MARCH));
    expect(found.filter(({ kind }) => kind === 'network fee').map(({ amount }) => amount)).to.deep.equal([
      FEE,
    ]);
    const { refunds, refundsElsewhere, closing } = await statementOf(ledger, MARCH);
    expect([refunds.amount, refundsElsewhere.amount, closing]).to.deep.equal([1_000n, 2_000n, 9_000n]);
  });

  it('begin a month with the balance of earlier months, and leave out movements in other months', async () => {
    clock = MARCH.from - 1;
    await sell();
    clock = MARCH.from;
    await sell();
    clock = MARCH.to - 1;
    await sell();
    clock = MARCH.to;
    await sell();
    const { opening, sales, closing } = await statementOf(ledger, MARCH);
    expect([opening, sales.count, closing]).to.deep.equal([10_000n, 2, 30_000n]);
    const april = await statementOf(ledger, { from: MARCH.to, to: MARCH.to + 86_400_000 });
    expect(april.opening).to.equal(closing);
  });

  it('are read in slices, even where many sales have the same time', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push(await sell('AAAA'));
    clock += 1;
    ids.push(await sell('AAAA'));
    const read: string[] = [];
    for await (const slice of ledger.movedSales(MARCH, 2)) read.push(...slice.map(each => each.payment));
    expect(read).to.have.length(6).and.have.members(ids);
    expect(read.at(-1)).to.equal(ids.at(-1));
  });
});

describe('exports', () => {
  const at = TENTH;
  const of = { transaction: 'sig', payment: 'aa', operation: 'text to speech' };
  const [usdc, sol] = [
    { name: 'USDC', decimals: 6 },
    { name: 'SOL', decimals: 9 },
  ];
  const each: Movement[] = [
    {
      ...of,
      at,
      kind: 'sale',
      amount: 1_250_000n,
      asset: usdc,
      account: 'Receiver1',
      counterparty: '=Payer',
    },
    {
      ...of,
      at,
      kind: 'network fee',
      amount: FEE,
      asset: sol,
      account: 'FeePayer1',
      counterparty: 'validators',
    },
    {
      ...of,
      at,
      kind: 'refund',
      amount: -500_001n,
      asset: usdc,
      account: 'Receiver1',
      counterparty: '=Payer',
    },
  ];
  const rates = FiatRates.parse(
    'day,asset,currency,rate\r\n2026-03-09,USDC,EUR,0.8\r\n2026-03-10,SOL,EUR,125\r\n',
  );
  const text = async (format: Format, valued?: FiatRates): Promise<string> => {
    let whole = '';
    for await (const piece of exported(
      format,
      (async function* () {
        yield* each;
      })(),
      valued,
    ))
      whole += piece;
    return whole;
  };

  it('are CSV without formulas, with values at the rate of the day or the last earlier rate', async () => {
    const lines = (await text('movements', rates)).split('\r\n');
    expect(lines[1]).to.equal(
      "2026-03-10T12:00:00.000Z,sale,1.25,USDC,sig,aa,text to speech,Receiver1,'=Payer,1.000000,EUR",
    );
    expect(lines[2]).to.include(',network fee,-0.0000112,SOL,').and.include(',-0.001400,EUR');
    expect(lines[3]).to.include(',refund,-0.500001,USDC,').and.include(',-0.400001,EUR');
  });

  it('are JSON', async () => {
    const read = JSON.parse(await text('json')) as Record<string, unknown>[];
    expect(read).to.have.length(3);
    expect(read[2]).to.include({
      kind: 'refund',
      amount: '-0.500001',
      asset: 'USDC',
      date: '2026-03-10T12:00:00.000Z',
    });
    expect(
      JSON.parse(
        await (async () => {
          let whole = '';
          for await (const piece of exported('json', (async function* () {})())) whole += piece;
          return whole;
        })(),
      ),
    ).to.deep.equal([]);
  });

  it('are journals that balance', async () => {
    expect(await text('hledger', rates)).to.include(
      '2026-03-10 sale of text to speech  ; payment:aa, transaction:sig, counterparty:Payer\n' +
        '    assets:coinslot:USDC:Receiver  1.25 USDC @ 0.8 EUR\n    income:sales:text to speech\n',
    );
    const bean = await text('beancount');
    expect(bean.match(/open Assets:Coinslot:USDC:Receiver\n/g)).to.have.length(1);
    expect(bean).to.include('  Assets:Coinslot:SOL:FeePayer  -0.0000112 SOL\n  Expenses:Network-fees\n');
    expect(bean).to.include('  Income:Refunds:Text-to-speech\n');
  });

  it("are rows in Stripe's columns, with a fee if rates are given", async () => {
    const [titles, sale, refund, ...rest] = (await text('stripe', rates)).split('\r\n');
    expect(titles).to.match(/^id,Type,Source,Amount,Fee,Net,Currency,Created \(UTC\),/);
    expect(sale).to.match(/^sale_sig,charge,aa,1\.000000,0\.001400,0\.9986,eur,2026-03-10 12:00:00,/);
    expect(refund).to.match(/^refund_sig,refund,aa,-0\.400001,0\.00,-0\.400001,eur,/);
    expect(rest).to.deep.equal(['']);
    expect(await text('stripe')).to.include('sale_sig,charge,aa,1.25,0.00,1.25,usdc,');
  });

  it('say which rate is missing, or which line of the rates is invalid', async () => {
    const old = FiatRates.parse('2026-03-01,USDC,EUR,0.8');
    expect(await text('movements', old).catch((error: Error) => error.message)).to.match(
      /no rate of USDC in EUR for 2026-03-10 or the 7 days before it/,
    );
    for (const [wrong, why] of [
      ['2026-03-01,USDC,EUR,0,8', /line 1/],
      ['2026-03-01,USDC,EUR,1\n2026-03-01,USDC,USD,1', /line 2: all rates must be in one currency/],
      ['day,asset\n', /has no rates/],
    ] as const)
      expect(() => FiatRates.parse(wrong)).to.throw(why);
    expect(Object.keys(FORMATS)).to.include('stripe');
  });
});
