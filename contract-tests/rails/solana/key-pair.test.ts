import { Keypair, VersionedTransaction } from '@solana/web3.js';
import { expect } from 'chai';
import { KeyPairFault, readKeyPair } from '../../../src/rails/solana/key-pair.js';
import { craftPayment } from '../../support/craft.js';

describe('a key pair of the Solana CLI', () => {
  const pair = Keypair.generate();
  const numbers = [...pair.secretKey];
  const text = JSON.stringify(numbers);

  it('signs as fee payer what web3.js would sign, and returns the signature that the chain uses', () => {
    for (const version of [0, 'legacy'] as const) {
      const key = readKeyPair(text);
      expect(key.address).to.equal(pair.publicKey.toBase58());
      const { transaction } = craftPayment({ feePayer: key.address, version });
      const expected = VersionedTransaction.deserialize(Buffer.from(transaction, 'base64'));
      expected.sign([pair]);
      const signed = key.signAsFeePayer(transaction);
      expect(signed.transaction).to.equal(Buffer.from(expected.serialize()).toString('base64'));
      const other = VersionedTransaction.deserialize(Buffer.from(signed.transaction, 'base64'));
      expect(other.signatures[0]).to.deep.equal(expected.signatures[0]);
      // Signing is deterministic, so another run would store the same bytes.
      expect(readKeyPair(text).signAsFeePayer(transaction)).to.deep.equal(signed);
    }
  });

  it('refuses to sign if somebody else pays the fee', () => {
    const { transaction } = craftPayment({ payer: pair });
    expect(() => readKeyPair(text).signAsFeePayer(transaction)).to.throw(/is not the fee payer/);
  });

  const others = [...Keypair.generate().secretKey];
  const WRONG: [string, string][] = [
    ['nothing', ''],
    ['words', 'my secret key'],
    ['an object', JSON.stringify({ secretKey: numbers })],
    ['a seed alone', JSON.stringify(numbers.slice(0, 32))],
    ['a number too many', JSON.stringify([...numbers, 0])],
    ['a number above 255', JSON.stringify([256, ...numbers.slice(1)])],
    ['a fraction', JSON.stringify([0.5, ...numbers.slice(1)])],
    ['texts', JSON.stringify(numbers.map(String))],
    ['the public key of another pair', JSON.stringify([...numbers.slice(0, 32), ...others.slice(32)])],
  ];
  for (const [what, wrong] of WRONG) {
    it(`can't be ${what}, and the error quotes none of it`, () => {
      try {
        readKeyPair(wrong);
      } catch (error) {
        expect(error).to.be.instanceOf(KeyPairFault);
        return expect((error as Error).message).to.not.match(/secret key,|my secret|\d{3},/);
      }
      throw new Error('was accepted');
    });
  }
});
