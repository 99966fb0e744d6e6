import type { Account } from '../../../src/rails/solana/rpc-results.js';
import { Keypair, PublicKey, SYSVAR_RECENT_BLOCKHASHES_PUBKEY } from '@solana/web3.js';
import { expect } from 'chai';
import { setTimeout as pause } from 'node:timers/promises';
import { BlockhashLife } from '../../../src/rails/solana/blockhash-life.js';
import { SolanaHints } from '../../../src/rails/solana/solana-hints.js';
import { bytesOf } from '../../../src/rails/solana/transaction.js';
import { FEE_PAYER } from '../../support/charge-world.js';
import { craftPayment, v2Header } from '../../support/craft.js';
import { challengeOf, openWorld, post, TEXT, type World } from '../../support/world.js';
import { priceOf } from '../../support/sold.js';

const hash = (): string => Keypair.generate().publicKey.toBase58();
const entryOf = (blockhash: string): Buffer =>
  Buffer.concat([Buffer.from(bytesOf(blockhash), 'latin1'), Buffer.alloc(8)]);

/** The chain's list of recent blockhashes. */
function listOf(hashes: readonly string[]): Buffer {
  const count = Buffer.alloc(8);
  count.writeBigUInt64LE(BigInt(hashes.length));
  return Buffer.concat([count, ...hashes.map(entryOf)]);
}

describe('The remaining life of a blockhash', () => {
  let now: number;
  let reads: number;
  let hints: SolanaHints;
  let listed: Buffer | undefined | Error;
  let life: BlockhashLife;
  const hashes = Array.from({ length: 150 }, hash);

  beforeEach(() => {
    now = 1_000_000;
    reads = 0;
    listed = listOf(hashes);
    hints = new SolanaHints(FEE_PAYER, () => now);
    life = new BlockhashLife({
      hints,
      closing: new AbortController().signal,
      now: () => now,
      chain: {
        account: async (): Promise<Account | null> => {
          reads += 1;
          if (listed instanceof Error) throw listed;
          return listed ? { owner: hash(), lamports: 1, slot: 1, executable: false, data: listed } : null;
        },
      },
    });
  });
  afterEach(() => hints.close());

  const left = (blockhash: string): Promise<number | undefined> => life.blocksLeft(bytesOf(blockhash));

  it('is known without a request if this server saw the blockhash, and decreases as the chain advances and time passes', async () => {
    const [first, second] = [hash(), hash()];
    hints.setView({ blockhash: first, slot: 1_000, height: 900 });
    expect(await left(first)).to.equal(150);
    now += 40_000;
    expect(await left(first)).to.equal(50);
    hints.setView({ blockhash: second, slot: 1_130, height: 1_020 });
    expect(await left(first)).to.equal(30);
    expect(await left(second)).to.equal(150);
    expect(reads).to.equal(0);
  });

  it("is taken from the chain's list if this server did not see the blockhash; the list is read at most once in two seconds", async () => {
    const all = await Promise.all(hashes.map(left));
    expect(all).to.deep.equal(hashes.map((_, age) => 150 - age));
    now += 1_200;
    expect(await left(hashes[100]!)).to.equal(47);
    expect(reads).to.equal(1);
    now += 800;
    await left(hashes[0]!);
    expect(reads).to.equal(2);
  });

  it("is unknown if the chain does not list the blockhash, or can't be read", async () => {
    expect(await left(hash())).to.equal(undefined);
    for (const said of [undefined, new Error('no such account')]) {
      now += 2_000;
      listed = said;
      expect(await left(hashes[149]!)).to.equal(undefined);
      expect(await left(hashes[149]!)).to.equal(undefined);
    }
    expect(reads).to.equal(3);
  });

  it('is read as far as possible from a list that is cut short or declares more than it has', async () => {
    const [first, second] = [hash(), hash()];
    const whole = Buffer.concat([Buffer.alloc(8, 0xff), entryOf(first), entryOf(second)]);
    listed = whole.subarray(0, -1);
    expect([await left(first), await left(second)]).to.deep.equal([150, undefined]);
    now += 2_000;
    listed = Buffer.alloc(7);
    expect(await left(first)).to.equal(undefined);
  });
});

describe('A payment signed long before it is sent', function () {
  this.timeout(60_000);
  let world: World;
  before(async () => (world = await openWorld()));
  after(() => world.close());

  type Offer = { payTo: string; extra: { feePayer: string; recentBlockhash: string } };

  /** Buys a summary with a payment signed over this blockhash. */
  async function pay(
    payer: Keypair,
    blockhash: string,
  ): Promise<{ status: number; error: string | undefined }> {
    const offer = challengeOf(await post(`${world.url}/v1/summarize`, {})).accepts[0] as Offer;
    const { transaction } = craftPayment({
      amount: priceOf('summarize'),
      payer,
      payTo: offer.payTo,
      feePayer: offer.extra.feePayer,
      blockhash,
    });
    const header = { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) };
    const answer = await post(`${world.url}/v1/summarize`, { text: TEXT }, header);
    return { status: answer.status, error: answer.status === 200 ? undefined : challengeOf(answer).error };
  }

  async function listed(): Promise<string[]> {
    const account = await world.connection.getAccountInfo(SYSVAR_RECENT_BLOCKHASHES_PUBKEY);
    const data = account?.data ?? Buffer.alloc(0);
    expect(data.readBigUInt64LE()).to.equal(150n);
    return Array.from({ length: 150 }, (_, age) =>
      new PublicKey(data.subarray(8 + 40 * age, 40 + 40 * age)).toBase58(),
    );
  }

  it('is refused before work for a new payer begins, although it passes verify; one signed over a more recent blockhash is accepted', async () => {
    const payer = Keypair.fromSecretKey(world.buyer);
    const before = await listed();
    const late = await pay(payer, before[110]!);
    expect(late.status).to.equal(402);
    expect(late.error).to.match(/expire before the work is done/);
    expect(await world.earned()).to.equal(0n);
    expect((await pay(payer, before[10]!)).status).to.equal(200);
    expect((await pay(payer, (await listed())[110]!)).status, 'known by now').to.equal(200);
  });

  it('may be signed over the first blockhash that the sandbox gives out in a slot, because its chain lists that one', async () => {
    await pause(450);
    const { blockhash } = await world.connection.getLatestBlockhash('processed');
    expect(await listed()).to.include(blockhash);
    expect((await world.connection.getLatestBlockhash('processed')).blockhash).to.not.equal(blockhash);
  });
});
