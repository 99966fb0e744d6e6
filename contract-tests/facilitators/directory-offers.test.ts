import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { DirectoryOffers } from '../../src/facilitators/directory-offers.js';
import { openLedger, type Ledger } from '../../src/ledger/store.js';
import { DEVNET } from '../support/craft.js';
import { onEachEngine, type LedgerPlace, forServer } from '../support/ledger-places.js';
import { operationIn, RELEASED } from '../support/sold.js';

const PAY_TO = '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4';
const HOUR = 3_600_000;
const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const CALLED = { operation: operationIn(RELEASED, 'summarize'), transport: 'http' as const };
const LISTED = { operation: 'summarize', transport: 'http' as const };

onEachEngine('servers that offer sales for a directory', make => {
  const [A, B] = ['a.example/', 'b.example/'] as const;
  const feePayers = new Map<string, string>(
    [A, B].map(name => [name, Keypair.generate().publicKey.toBase58()]),
  );
  let place: LedgerPlace;
  let ledger: Ledger;
  let clock: number;

  beforeEach(async () => {
    place = await make();
    clock = 1_700_000_000_000;
    ledger = await openLedger({ ...forServer(place.url), payTo: PAY_TO, network: DEVNET, now: () => clock });
  });
  afterEach(async () => {
    await ledger.close();
    await place.remove();
  });

  async function server(names: readonly string[] = [A]): Promise<DirectoryOffers> {
    const parts = { ledger, names, offerable: (name: string) => feePayers.get(name), log: quiet };
    const catalogue = new DirectoryOffers({ ...parts, everyMs: 6 * HOUR, now: () => clock });
    await catalogue.refresh();
    return catalogue;
  }

  it('know what another server has sold, and still know it after a restart', async () => {
    const [first, second] = [await server(), await server()];
    expect(second.feePayerFor(CALLED)).to.equal(feePayers.get(A));
    first.heard(A, LISTED, 'sold');
    await untilStored();
    await second.refresh();
    expect(second.feePayerFor(CALLED)).to.equal(undefined);
    clock += 6 * HOUR;
    const later = await server();
    expect(later.feePayerFor(CALLED)).to.equal(feePayers.get(A));
  });

  it('offer an operation to several directories in turn, until each of them lists it', async () => {
    const one = await server([A, B]);
    expect(one.feePayerFor(CALLED)).to.equal(feePayers.get(A));
    one.heard(A, LISTED, 'sold');
    expect(one.feePayerFor(CALLED)).to.equal(feePayers.get(B));
    one.heard(B, LISTED, 'sold');
    expect(one.feePayerFor(CALLED)).to.equal(undefined);
    await untilStored();
  });

  it("offer a directory's fee payer only after the ledger has recorded it for two minutes", async () => {
    const one = await server();
    clock += 120_000;
    expect(one.feePayerFor(CALLED)).to.equal(undefined);
    await one.refresh();
    expect(one.feePayerFor(CALLED)).to.equal(feePayers.get(A));
    expect((await ledger.offeredHints()).map(({ by }) => by)).to.deep.equal([A]);
  });

  async function untilStored(): Promise<void> {
    while ((await ledger.getMeta(`catalogued ${A}`)) === undefined)
      await new Promise(resolve => setTimeout(resolve, 5));
  }
});
