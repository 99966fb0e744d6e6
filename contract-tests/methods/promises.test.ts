import type { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { pickUpThrough, callThrough, type Seen } from '../support/door-calls.js';
import { Doors } from '../support/doors.js';
import { until } from '../support/faults.js';
import { onEachEngine } from '../support/ledger-places.js';
import { fundedKey } from '../support/own-facilitator.js';
import { LONG_SLOT_MS, SUMMARIZE, TestChain } from '../support/test-chain.js';
import { signed, signedForMpp, TestCluster, type TestServer } from '../support/test-server.js';
import { v1Header } from '../support/craft.js';

const COPIES = 24;
const FUNDS = 20_000_000n;
const PRICE = SUMMARIZE.price.atomic;
const TRANSPORTS = ['http', 'mcp'] as const;

type Way = {
  /** The servers pay the fees with a key of their own. */
  own: boolean;
  /** The method's name in the ledger. */
  method: string;
  /** The message for buyers who are not charged. */
  uncharged: string;
  /** Makes a payment. @returns the header that carries it */
  pay(chain: TestChain, server: TestServer, payer: Keypair): { header: string; id: string };
};

const NOT_CHARGED = 'You were not charged';

const WAYS: Record<string, Way> = {
  'x402 v2': {
    own: false,
    method: 'x402-v2',
    uncharged: NOT_CHARGED,
    pay: (chain, server, payer) => signed(chain, server, { payer, text: '' }),
  },
  'x402 v1': {
    own: false,
    method: 'x402-v1',
    uncharged: NOT_CHARGED,
    pay: (chain, server, payer) => {
      const { transaction, id } = signed(chain, server, { payer, text: '' });
      return { header: v1Header(chain.terms.v1Network, transaction), id };
    },
  },
  'MPP, the server pays the fee': {
    own: true,
    method: 'mpp',
    uncharged: NOT_CHARGED,
    pay: (chain, server, payer) => signedForMpp(chain, server, { payer, text: '' }),
  },
  'MPP, the buyer pays the fee': {
    own: false,
    method: 'mpp',
    uncharged: 'no money has moved, unless you have sent it yourself',
    pay: (chain, server, payer) => signedForMpp(chain, server, { payer, text: '' }),
  },
};

onEachEngine('the promises, by method and transport', (makePlace, engine) => {
  let testChain: TestChain;
  let key: Keypair;

  before(async () => {
    testChain = await TestChain.open(LONG_SLOT_MS);
    key = await fundedKey(testChain);
  });
  after(() => testChain.close());

  for (const [name, way] of Object.entries(WAYS))
    describe(name, () => {
      let servers: TestServer[];
      let doors: Doors[];
      let payer: Keypair;
      let runs = 0;
      let fails = false;
      const blocked = new Set<string>();
      const closers: (() => Promise<unknown>)[] = [];

      before(async () => {
        const place = await makePlace();
        const cluster = await TestCluster.open(testChain, place.url);
        const own = { blocked, ...(way.own ? { own: key } : {}) };
        // SQLite allows one server for a ledger, so there the same server is used as both.
        const first = await cluster.testServer(own);
        servers = [first, engine === 'SQLite' ? first : await cluster.testServer(own)];
        const work = async (): Promise<{ status: 200; body: { summary: string } }> => {
          if (fails) throw new Error('no');
          return { status: 200, body: { summary: `run ${++runs}` } };
        };
        doors = [await Doors.open(servers[0]!, work), await Doors.open(servers[1]!, work)];
        closers.push(...doors.map(each => each.close), () => cluster.close(), place.remove);
      });
      after(async () => {
        for (const close of closers.splice(0)) await close();
      });
      beforeEach(async () => {
        [runs, fails] = [0, false];
        [payer] = (await testChain.payers(1)) as [Keypair];
      });

      const pay = (): { header: string; id: string } => way.pay(testChain, servers[0]!, payer);
      const balance = async (): Promise<bigint> => {
        const account = testChain.tokenAccount(payer.publicKey);
        return BigInt((await testChain.connection.getTokenAccountBalance(account)).value.amount);
      };

      for (const transport of TRANSPORTS) {
        const send = (header: string, body: Record<string, unknown>, at = 0): Promise<Seen> => {
          const call = { path: SUMMARIZE.path, tool: SUMMARIZE.id, body, header };
          return callThrough(transport, doors[at]!.url, call, new AbortController().signal);
        };
        const summarize = async (header: string, text: string, at = 0): Promise<Seen> => {
          let seen = await send(header, { text }, at);
          await until(
            'it is answered',
            async () => seen.sent.kind !== 'unavailable' || !(seen = await send(header, { text }, at)),
          );
          return seen;
        };
        const bodyOf = ({ sent }: Seen): unknown =>
          sent.kind === 'sold' ? JSON.parse(sent.answer.body.toString()) : sent;

        describe(`over ${transport}`, () => {
          it(`1 and 3: ${COPIES} copies make one transfer and get one answer, which the same payment gets again and its key fetches`, async () => {
            const { header, id } = pay();
            await Promise.all(
              Array.from({ length: COPIES }, (_, n) => send(header, { text: 'copied' }, n % 2)),
            );
            const [one, other] = [
              await summarize(header, 'copied'),
              await summarize(header, 'copied', 1),
            ] as const;
            expect([bodyOf(one), bodyOf(other)]).to.deep.equal([{ summary: 'run 1' }, { summary: 'run 1' }]);
            const fetched = await pickUpThrough(transport, doors[1]!.url, one.link ?? '');
            expect(JSON.parse(String(fetched?.body))).to.deep.equal({ summary: 'run 1' });
            expect([runs, await balance()]).to.deep.equal([1, FUNDS - PRICE]);
            const row = await servers[0]!.reader.find(id);
            expect(row).to.include({ method: way.method, state: 'delivered' });
          });

          it('2: a failed call is not charged, and the same payment buys it afterwards', async () => {
            const { header } = pay();
            fails = true;
            const { sent } = await send(header, { text: 'failing' });
            expect(sent.kind).to.equal('failed');
            expect(sent).not.to.have.property('receipt');
            expect(await balance()).to.equal(FUNDS);
            fails = false;
            expect(bodyOf(await summarize(header, 'failing'))).to.deep.equal({ summary: 'run 1' });
            expect(await balance()).to.equal(FUNDS - PRICE);
          });

          it('2: an invalid body is not charged, and the same payment buys the corrected call', async () => {
            const { header } = pay();
            const { sent } = await send(header, {});
            expect(sent.kind).to.equal('invalid');
            expect((sent as { error: string }).error).to.include(`${way.uncharged}; correct the body`);
            expect(bodyOf(await summarize(header, 'right'))).to.deep.equal({ summary: 'run 1' });
            expect([runs, await balance()]).to.deep.equal([1, FUNDS - PRICE]);
          });

          it("3: a payment that has bought one call can't buy another", async () => {
            const { header } = pay();
            await summarize(header, 'one');
            const { sent } = await send(header, { text: 'another' }, 1);
            expect(sent.kind).to.equal('refused');
            expect((sent as { error: string }).error).to.match(/was sent for another call/);
            expect([runs, await balance()]).to.deep.equal([1, FUNDS - PRICE]);
          });

          it('a payer who is blocked gets no work and pays nothing, but still gets what was sold before', async () => {
            const before = pay();
            await summarize(before.header, 'before');
            blocked.add(payer.publicKey.toBase58());
            const { header, id } = pay();
            const { sent } = await send(header, { text: 'blocked' });
            expect(sent).to.include({ kind: 'refused' });
            const { error } = sent as { error: string };
            expect(error).to.include('sells nothing to this wallet').and.to.include(way.uncharged);
            expect(await servers[0]!.reader.find(id)).to.equal(undefined);
            expect(bodyOf(await summarize(before.header, 'before', 1))).to.deep.equal({ summary: 'run 1' });
            expect([runs, await balance()]).to.deep.equal([1, FUNDS - PRICE]);
            blocked.clear();
            expect(bodyOf(await summarize(pay().header, 'blocked'))).to.deep.equal({ summary: 'run 2' });
          });

          it('8: no work is done for money that is not there', async () => {
            const { header, id } = pay();
            await testChain.spendAll(payer);
            expect((await send(header, { text: 'poor' })).sent.kind).to.equal('refused');
            expect([runs, await servers[0]!.reader.find(id)]).to.deep.equal([0, undefined]);
          });
        });
      }
    });
});
