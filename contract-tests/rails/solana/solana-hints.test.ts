import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { toAddress } from '../../../src/rails/solana/address.js';
import { SolanaHints, type ChainView } from '../../../src/rails/solana/solana-hints.js';
import { bytesOf } from '../../../src/rails/solana/transaction.js';

const FEE_PAYER = toAddress(randomBytes(32));
const aHash = (): string => toAddress(randomBytes(32));
const keysOf = (hashes: string[]): string[] => hashes.map(bytesOf);

describe('the blockhashes in challenges', () => {
  let hints: SolanaHints;
  let now: number;
  let chain: string[];
  let slot: number;
  /** The chain as it is read after this many more blocks. */
  const view = (blocks: number): ChainView => {
    chain.unshift(...Array.from({ length: blocks }, aHash));
    slot += blocks;
    const [blockhash = '', ...earlier] = chain;
    return { blockhash, slot, height: slot, earlier: keysOf(earlier) };
  };
  const next = (): string => String(hints.hints().recentBlockhash);
  const nextFew = (count: number): string[] => Array.from({ length: count }, next);
  const use = (hash: string, paid = true): void =>
    hints.markBlockhashUsed({ payer: 'payer', blockhash: bytesOf(hash), hasNonce: false }, paid);

  beforeEach(() => {
    now = 1_000_000;
    chain = [];
    slot = 0;
    hints = new SolanaHints(FEE_PAYER, () => now);
  });
  afterEach(() => hints.close());

  it('take turns among the newest sixteen, so ten challenges in a row differ', () => {
    hints.setView(view(60));
    const offered = nextFew(32);
    expect(new Set(offered.slice(0, 16)).size).to.equal(16);
    expect(offered.slice(16)).to.deep.equal(offered.slice(0, 16));
    expect(new Set(offered)).to.deep.equal(new Set(chain.slice(0, 16)));
    for (let start = 0; start < 22; start++)
      expect(new Set(offered.slice(start, start + 10)).size).to.equal(10);
  });

  it('are offered with the same hints each time, so that each challenge is built only once', () => {
    hints.setView(view(60));
    const [first] = Array.from({ length: 16 }, () => hints.hints());
    hints.setView(view(2));
    const turns = Array.from({ length: 16 }, () => hints.hints());
    expect(turns.slice(0, 2).map(({ recentBlockhash }) => recentBlockhash)).to.deep.equal(chain.slice(0, 2));
    expect(turns[2]).to.equal(first);
    hints.setFeePayer(aHash());
    expect(hints.hints().feePayer).not.to.equal(FEE_PAYER);
  });

  it('that a payment has used are not offered again, and ten sales at once still leave others', () => {
    hints.setView(view(60));
    let reads = 0;
    hints.onUsedUp = () => void (reads += 1);
    const sold = nextFew(10);
    for (const hash of sold) use(hash);
    expect(reads).to.be.greaterThan(0);
    expect(hints.nextReadAfterMs()).to.be.lessThan(1_000);
    expect(nextFew(40).filter(hash => sold.includes(hash))).to.deep.equal([]);
    hints.setView(view(1));
    const more = nextFew(10);
    expect(new Set(more).size).to.equal(10);
    expect(more.filter(hash => sold.includes(hash))).to.deep.equal([]);
    expect(more.every(hash => chain.indexOf(hash) < 24)).to.equal(true);
  });

  it('that a refused payment used are not offered to its buyer again while there is another', () => {
    hints.setView(view(60));
    const hash = chain[0] ?? '';
    const payment = { blockhash: bytesOf(hash), hasNonce: false } as never;
    for (let turn = 0; turn < 20; turn++)
      expect(hints.hintsAfter(false, payment).recentBlockhash).to.be.a('string').and.not.equal(hash);
    for (const each of chain.slice(1, 16)) use(each);
    expect(hints.hintsAfter(false, payment)).to.deep.equal({ feePayer: FEE_PAYER });
    expect(hints.hintsAfter(true, payment).recentBlockhash).to.equal(hash);
  });

  it('can be used up by unpaid requests no faster than one every two seconds', () => {
    hints.setView(view(60));
    for (const hash of nextFew(16)) use(hash, false);
    expect(new Set(nextFew(32)).size).to.equal(15);
  });

  it('are limited to the one that was read if the chain has no list, and none are left once it is used', () => {
    hints.setView({ blockhash: aHash(), slot: 1, height: 1 });
    expect(new Set(nextFew(3)).size).to.equal(1);
    use(next());
    expect(hints.hints()).to.deep.equal({ feePayer: FEE_PAYER });
  });

  it('have a known age, even if this server has only read them in the list', () => {
    hints.setView(view(60));
    expect(chain.slice(0, 20).map(hash => hints.blockhashAge(bytesOf(hash)))).to.deep.equal(
      Array.from({ length: 20 }, (_, age) => age),
    );
  });
});
