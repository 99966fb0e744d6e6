import { expect } from 'chai';
import { Keypair } from '@solana/web3.js';
import { openLedger, type Ledger, type OfferedFeePayer } from '../../src/ledger/store.js';
import { SolanaHints } from '../../src/rails/solana/solana-hints.js';
import { SharedFeePayers } from '../../src/offers/shared-fee-payers.js';
import { rememberedFeePayers } from '../../src/offers/refresh-offers.js';
import { DEVNET } from '../support/craft.js';
import { pause } from '../support/faults.js';
import { PLACES, type LedgerPlace } from '../support/ledger-places.js';

const PAY_TO = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4';
const [X, Y, Z] = Array.from({ length: 3 }, () => Keypair.generate().publicKey.toBase58()) as [
  string,
  string,
  string,
];
const MINUTE = 60_000;
const quiet = { info: () => {}, warn: () => {}, error: () => {} };

for (const { name, make } of PLACES) {
  const run = make ? describe : describe.skip;
  run(`several servers of one ledger on ${name}, and several fee payers`, function () {
    this.timeout(30_000);
    let place: LedgerPlace;
    let ledgers: Ledger[];
    let clock: number;
    let reads: number;

    /** A server that offers `feePayer`. On SQLite there is one ledger for all, on PostgreSQL each server has its own. */
    async function server(feePayer: string): Promise<{ hints: SolanaHints; feePayers: SharedFeePayers }> {
      const own = name === 'PostgreSQL' || ledgers.length === 0;
      const ledger = own
        ? await openLedger({ url: place.url, payTo: PAY_TO, network: DEVNET, now: () => clock })
        : ledgers[0]!;
      if (own) ledgers.push(ledger);
      const hints = new SolanaHints(feePayer, await rememberedFeePayers(ledger), () => clock);
      const counted = {
        offerFeePayer: ledger.offerFeePayer,
        offeredFeePayers: () => {
          reads += 1;
          return ledger.offeredFeePayers();
        },
      };
      const feePayers = new SharedFeePayers({ ledger: counted, hints, log: quiet, lookEveryMs: 300 });
      await feePayers.share();
      return { hints, feePayers };
    }

    beforeEach(async () => {
      place = await make!();
      ledgers = [];
      clock = 1_700_000_000_000;
    });
    afterEach(async () => {
      await Promise.all(ledgers.map(ledger => ledger.close()));
      await place.remove();
    });

    it('what A offered B takes: it looks into the ledger before it refuses', async () => {
      const a = await server(X);
      const b = await server(Y);
      expect(a.hints.isOffered(Y)).to.equal(false);
      await a.feePayers.lookUp(Y);
      expect(a.hints.isOffered(Y)).to.equal(true);
      await b.feePayers.offer(Z);
      await a.feePayers.lookUp(Z);
      expect([X, Y, Z].map(each => a.hints.isOffered(each))).to.deep.equal([true, true, true]);
      expect(a.hints.feePayer, 'and goes on with its own').to.equal(X);
      await a.feePayers.lookUp(PAY_TO);
      expect(a.hints.isOffered(PAY_TO)).to.equal(false);
    });

    it('is in the ledger before any challenge names it', async () => {
      const { hints, feePayers } = await server(X);
      const named = hints.hints();
      const offering = feePayers.offer(Y);
      expect(hints.hints()).to.equal(named);
      await offering;
      expect(hints.feePayer).to.equal(Y);
    });

    it('servers overwrite nothing of each other, and learn from each other as time goes on', async () => {
      const servers = [await server(X), await server(Y), await server(Z)];
      await Promise.all(servers.map(({ feePayers }) => feePayers.share()));
      for (const { hints, feePayers } of servers) {
        await feePayers.share();
        expect([X, Y, Z].map(each => hints.isOffered(each))).to.deep.equal([true, true, true]);
      }
      clock += 4 * MINUTE;
      await servers[1]!.feePayers.share();
      await servers[0]!.feePayers.share();
      clock += 2 * MINUTE;
      const taken = [X, Y, Z].map(each => servers[0]!.hints.isOffered(each));
      expect(taken, 'what nobody offered for five minutes is not').to.deep.equal([true, true, false]);
    });

    it('unknown fee payers cost one look for all who come meanwhile', async () => {
      const { feePayers } = await server(X);
      await feePayers.lookUp(Y);
      reads = 0;
      const strangers = Array.from({ length: 50 }, () => Keypair.generate().publicKey.toBase58());
      await Promise.all(strangers.map(each => feePayers.lookUp(each)));
      expect(reads).to.equal(1);
      await Promise.all(strangers.map(each => feePayers.lookUp(each)));
      expect(reads).to.equal(2);
      await feePayers.lookUp(X);
      expect(reads, 'a known one costs none').to.equal(2);
    });

    it('a payment that comes while looks are rare is still judged by a look of its own time', async () => {
      const a = await server(X);
      const b = await server(X);
      await a.feePayers.lookUp(Y);
      const waiting = a.feePayers.lookUp(Z);
      await pause(50);
      await b.feePayers.offer(Z);
      await waiting;
      expect(a.hints.isOffered(Z)).to.equal(true);
    });

    it('a restart goes on with what was offered last, and a day later what nobody offers is forgotten', async () => {
      await server(X);
      clock += 1;
      const { feePayers } = await server(Y);
      const ledger = ledgers[0]!;
      expect((await rememberedFeePayers(ledger)).map(({ feePayer }) => feePayer)).to.deep.equal([Y, X]);
      clock += 24 * 60 * MINUTE + 1;
      await feePayers.share();
      expect(await ledger.offeredFeePayers()).to.deep.equal([{ feePayer: Y, lastOfferedAt: clock }]);
    });

    it('which facilitator pays with a fee payer is known to every server and after a restart', async () => {
      const { feePayers } = await server(X);
      const ledger = ledgers[0]!;
      const named = new Map([[Y, 'b.example/x402']]);
      const facilitators = {
        nameOf: (each: string) => named.get(each),
        learn: () => [],
        choice: Y,
        feePayers: [],
      };
      const { hints } = await server(X);
      const asB = new SharedFeePayers({ ledger, hints, facilitators, log: quiet });
      clock += 1;
      await asB.offer(Y);
      await feePayers.share();
      expect(await rememberedFeePayers(ledger)).to.have.deep.members([
        { feePayer: Y, lastOfferedAt: clock, facilitator: 'b.example/x402' },
        { feePayer: X, lastOfferedAt: clock },
      ]);
      const learned: OfferedFeePayer[] = [];
      const other = {
        nameOf: () => undefined,
        learn: (some: readonly OfferedFeePayer[]) => {
          learned.push(...some);
          return [];
        },
        choice: undefined,
        feePayers: [],
      };
      await new SharedFeePayers({ ledger, hints, facilitators: other, log: quiet }).share();
      expect(learned.find(({ feePayer }) => feePayer === Y)?.facilitator).to.equal('b.example/x402');
      clock += 24 * 60 * MINUTE + 1;
      await feePayers.share();
      expect(
        (await ledger.offeredFeePayers()).map(each => each.feePayer),
        'forgotten as others are',
      ).to.deep.equal([X]);
    });

    it('one that was kept by version 1.0.0 is remembered', async () => {
      const ledger = await openLedger({ url: place.url, payTo: PAY_TO, network: DEVNET });
      ledgers.push(ledger);
      const former = [{ feePayer: X, lastOfferedAt: 5 }];
      await ledger.setMeta('offered-fee-payers', JSON.stringify(former));
      expect(await rememberedFeePayers(ledger)).to.deep.equal(former);
    });
  });
}
