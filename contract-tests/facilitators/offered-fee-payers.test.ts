import { expect } from 'chai';
import { Keypair } from '@solana/web3.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { OfferedFeePayers, rememberedFeePayers } from '../../src/facilitators/offered-fee-payers.js';
import { SolanaHints } from '../../src/rails/solana/solana-hints.js';
import { DEVNET } from '../support/craft.js';
import { payment } from '../support/ledgers.js';
import { PLACES, type LedgerPlace, forServer } from '../support/ledger-places.js';

const PAY_TO = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4';
const [X, Y, Z] = Array.from({ length: 3 }, () => Keypair.generate().publicKey.toBase58()) as [
  string,
  string,
  string,
];
const MINUTE = 60_000;
const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const OTHER = 'b.example/x402';

/** A server whose challenges name `X` first. Its facilitator also has Y. */
type Server = { hints: SolanaHints; feePayers: OfferedFeePayers; facilitators: { choice: string } };

for (const { name, make } of PLACES) {
  const run = make ? describe : describe.skip;
  run(`several servers of one ledger on ${name}, and several fee payers`, function () {
    this.timeout(30_000);
    let place: LedgerPlace;
    let ledgers: Ledger[];
    let clock: number;

    /** On SQLite, all servers share one ledger object; on PostgreSQL, each has its own. */
    async function server(feePayer: string): Promise<Server & { ledger: Ledger }> {
      const own = name === 'PostgreSQL' || ledgers.length === 0;
      const ledger = own
        ? await openLedger({ ...forServer(place.url), payTo: PAY_TO, network: DEVNET, now: () => clock })
        : ledgers[0]!;
      if (own) ledgers.push(ledger);
      const hints = new SolanaHints(feePayer, () => clock);
      const facilitators = {
        choice: feePayer,
        feePayers: [],
        nameOf: (each: string) => (each === Y ? OTHER : undefined),
        refresh: async () => new Map<string, unknown>(),
        probe: async () => {},
      };
      const feePayers = new OfferedFeePayers({ ledger, hints, facilitators, network: DEVNET, log: quiet });
      await feePayers.share();
      return { hints, feePayers, facilitators, ledger };
    }

    /** Whether a server accepts a payment with this fee payer. */
    async function takes({ ledger }: { ledger: Ledger }, feePayer: string): Promise<boolean> {
      const { kind } = await ledger.claim(payment({ hint: { name: feePayer, by: [OTHER] } }));
      return kind === 'claimed';
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

    it('a server accepts a fee payer that another server offered, until no server has offered it for five minutes', async () => {
      const [a, b] = [await server(X), await server(Y)];
      expect(await takes(a, Y)).to.equal(true);
      expect(await takes(b, X)).to.equal(true);
      expect(await takes(a, Z), 'nobody did').to.equal(false);
      expect(a.hints.feePayer, 'and goes on with its own').to.equal(X);
      clock += 4 * MINUTE;
      await b.feePayers.share();
      clock += MINUTE;
      expect([await takes(a, Y), await takes(b, X)]).to.deep.equal([true, true]);
      clock += 1;
      expect([await takes(a, Y), await takes(b, X)]).to.deep.equal([true, false]);
    });

    it('a new fee payer is in the ledger before any challenge names it, and from then on the former one expires', async () => {
      const { hints, feePayers, facilitators, ledger } = await server(X);
      clock += 4 * MINUTE;
      const named = hints.hints();
      facilitators.choice = Y;
      const following = feePayers.follow();
      expect(hints.hints()).to.equal(named);
      await following;
      expect(hints.feePayer).to.equal(Y);
      clock += 5 * MINUTE;
      expect([await takes({ ledger }, X), await takes({ ledger }, Y)]).to.deep.equal([true, true]);
    });

    it('a restarted server continues with the fee payers last offered, and forgets those that no server has offered for a day', async () => {
      await server(X);
      clock += 1;
      const { feePayers, ledger } = await server(Y);
      expect(await rememberedFeePayers(ledger)).to.deep.equal([{ hint: Y, by: OTHER }, { hint: X }]);
      clock += 24 * 60 * MINUTE + 1;
      await feePayers.share();
      expect(await ledger.offeredHints()).to.deep.equal([{ hint: Y, by: OTHER }]);
    });

    it('a fee payer that version 1.0.0 stored is remembered', async () => {
      const ledger = await openLedger({ ...forServer(place.url), payTo: PAY_TO, network: DEVNET });
      ledgers.push(ledger);
      await ledger.setMeta('offered-fee-payers', JSON.stringify([{ feePayer: X, lastOfferedAt: 5 }]));
      expect(await rememberedFeePayers(ledger)).to.deep.equal([{ hint: X }]);
    });

    it("an offered fee payer is stored with its facilitator and the time of the ledger's clock", async () => {
      const ledger = await openLedger({ ...forServer(place.url), payTo: PAY_TO, network: DEVNET });
      ledgers.push(ledger);
      await ledger.offerHint(Y, OTHER);
      expect(await ledger.offeredHints()).to.deep.equal([{ hint: Y, by: OTHER }]);
      expect(await takes({ ledger }, Y)).to.equal(true);
      const beside = await ledger.getMeta(`fee-payer ${Y}`);
      expect(beside).to.match(/^\d{13} b\.example/);
    });
  });
}
