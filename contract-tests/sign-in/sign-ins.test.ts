import { Keypair } from '@solana/web3.js';
import { base58 } from '@scure/base';
import { expect } from 'chai';
import { SignIns } from '../../src/sign-in/sign-ins.js';
import { TERMS } from '../support/charge-world.js';
import { signedStatement, statementInfo } from '../support/signed-statement.js';

const NOW = Date.parse('2026-11-23T10:31:00.000Z');
const wallet = Keypair.fromSeed(Buffer.alloc(32, 7));
const signIns = new SignIns({ publicUrl: TERMS.publicUrl, chainId: TERMS.network }, () => NOW);
const info = statementInfo(NOW);
const reasonOf = (sent: unknown): string => {
  const read = signIns.read(sent);
  return 'reason' in read ? read.reason : `signed in ${read.wallet}`;
};

const at = (ms: number): string => new Date(NOW + ms).toISOString();

describe('A wallet that signs in', () => {
  it('is recognized by a statement for this shop, as JSON or its base64', () => {
    const signed = signedStatement(wallet, info);
    const known = `signed in ${wallet.publicKey.toBase58()}`;
    expect(reasonOf(signed)).to.equal(known);
    expect(reasonOf(Buffer.from(JSON.stringify(signed)).toString('base64'))).to.equal(known);
  });

  it('is recognized in the published vector', () => {
    const example = new SignIns(
      { publicUrl: 'https://api.example.com', chainId: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' },
      () => NOW,
    );
    const read = example.read({
      domain: 'api.example.com',
      uri: 'https://api.example.com/v1/answers',
      version: '1',
      chainId: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      statement: 'List answers paid for by this wallet',
      nonce: 'a1b2c3d4e5f67890a1b2c3d4e5f67890',
      issuedAt: '2026-11-23T10:30:00.000Z',
      expirationTime: '2026-11-23T10:35:00.000Z',
      resources: ['https://api.example.com/v1/answers'],
      address: '3F5qRPtKg8GhGNnbd3qCj6nVJxWsGxq7pvH84okYLAqf',
      signature: 'Cq9AsFjzpkKAthMFA7kaew51sNQkNH3bzzz35VR84V34uFfG4kokj9NXGAmBc8FKZKwWy6y1FUG5DCMWVsduEcm',
    });
    expect(read).to.include({ wallet: '3F5qRPtKg8GhGNnbd3qCj6nVJxWsGxq7pvH84okYLAqf' });
  });

  it('can sign the statement that the shop publishes', () => {
    const { info: asked, supportedChains } = signIns.extension() as {
      info: Record<string, unknown>;
      supportedChains: [{ chainId: string }];
    };
    const signed = signedStatement(wallet, { ...asked, chainId: supportedChains[0].chainId });
    expect(reasonOf(signed)).to.equal(`signed in ${wallet.publicKey.toBase58()}`);
    expect(signIns.extension()).not.to.deep.equal(signIns.extension());
  });

  const refused: [what: string, change: object, reason: string][] = [
    ['of another shop', { domain: 'evil.example' }, 'domain_mismatch'],
    ['for an address elsewhere', { uri: 'https://evil.example/' }, 'uri_mismatch'],
    ['of another chain', { chainId: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' }, 'unsupported_chain'],
    ['of another version', { version: '2' }, 'malformed'],
    ['without a nonce', { nonce: undefined }, 'malformed'],
    ['with a nonce that can be guessed', { nonce: '1' }, 'nonce'],
    ['older than five minutes', { issuedAt: at(-300_000) }, 'issued_at_too_old'],
    ['from the future', { issuedAt: at(61_000) }, 'issued_at_in_future'],
    ['without a time', { issuedAt: 'now' }, 'malformed'],
    ['that has expired', { expirationTime: at(0) }, 'expired'],
    ['that is not valid yet', { notBefore: at(120_000) }, 'not_yet_valid'],
    ['with a second line', { statement: 'a\nNonce: b' }, 'malformed'],
  ];
  for (const [what, change, reason] of refused)
    it(`is refused with a statement ${what}`, () => {
      expect(reasonOf(signedStatement(wallet, { ...info, ...change }))).to.equal(`invalid_siwx_${reason}`);
    });

  it('is refused with the signature of another wallet, of other fields, or of a key for which anybody can sign', () => {
    const signed = signedStatement(wallet, info);
    const { signature } = signed;
    const other = Keypair.generate().publicKey.toBase58();
    for (const forged of [
      { ...signed, address: other },
      { ...signed, nonce: 'another-nonce' },
      { ...signed, statement: 'I pay' },
    ])
      expect(reasonOf(forged)).to.equal('invalid_siwx_signature');
    // With the neutral point as the key, the equation of a signature holds for R = S·B, whatever was signed.
    const neutral = base58.encode(Uint8Array.from([1, ...Array<number>(31).fill(0)]));
    const zero = base58.encode(Uint8Array.from([1, ...Array<number>(63).fill(0)]));
    expect(reasonOf({ ...info, address: neutral, signature: zero })).to.equal('invalid_siwx_signature');
    for (const wrong of [
      { signature: 'x' },
      { signature: `${String(signature)}1` },
      { address: '1' },
      { address: 7 },
    ])
      expect(reasonOf({ ...signed, ...wrong })).to.equal('invalid_siwx_malformed_signature');
    for (const wrong of ['', 'bm8', 'x'.repeat(9_000), null, 7, []])
      expect(reasonOf(wrong)).to.equal('invalid_siwx_malformed');
  });
});
