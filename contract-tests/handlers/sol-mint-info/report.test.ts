import { expect } from 'chai';
import type { Finding } from '../../../handlers/mints/findings.js';
import { programAddress, readAddress, toAddress } from '../../../src/rails/solana/address.js';
import { knownAs } from '../../../handlers/mints/known-programs.js';
import { metadataAddress, readMetadata } from '../../../handlers/mints/metaplex.js';
import { reportMint, type MintReport } from '../../../handlers/mints/report.js';
import { createChain, type SolanaChain } from '../../../src/rails/solana/rpc.js';
import { never } from '../../support/fake-rpc.js';
import { allInOneSandbox, sandbox } from '../../support/one-sandbox.js';

const SUPPLY = 1_000_000;

const codes = (findings: Finding[]): string[] => findings.map(({ code }) => code);

describe('a mint of the sandbox, read from its RPC server', () => {
  allInOneSandbox();
  let chain: SolanaChain;
  const asked: string[] = [];
  before(() => {
    chain = createChain({ urls: [sandbox.info.rpcUrl] });
  });
  after(() => chain.close());

  const report = (mint: string, over: Partial<SolanaChain> = {}): Promise<MintReport> =>
    reportMint({ ...chain, ...over }, mint, never);

  it('gives the name in its metadata, cleaned, and says who can rename it', async () => {
    const { metadata, findings } = await report(sandbox.info.mints.doubtful);
    expect(metadata).to.include({
      address: metadataAddress(sandbox.info.mints.doubtful),
      name: 'Sure Profit now',
      symbol: 'SURE',
      uri: 'https://example.com/sure.json',
      mutable: true,
    });
    expect(codes(findings)).to.include('mutable-metadata');
    const example = await report(sandbox.info.mints.example);
    expect(example.metadata).to.include({ name: 'Jupiter', symbol: 'JUP', uri: null, mutable: false });
    expect(example.metadata?.sentence).to.match(/Nobody can change the name or the symbol, now or later/);
    expect(example.findings).to.deep.equal([]);
    expect((await report(sandbox.info.mints.classic)).metadata).to.equal(null);
  });

  it('says what each authority is: a multisig with its m of n, an address of a program, a wallet', async () => {
    const { authorities, mintAuthority, freezeAuthority } = await report(sandbox.info.mints.doubtful);
    const of = (role: string) => authorities.find(({ roles }) => roles.includes(role));
    expect(of('mint')).to.include({ address: mintAuthority, kind: 'multisig', required: 2 });
    expect(of('mint')?.signers).to.have.length(3);
    expect(of('mint')?.sentence).to.match(/is a multisig: 2 of 3 keys must sign\.$/);
    expect(of('freeze')).to.include({ address: freezeAuthority, kind: 'program-address' });
    expect(of('metadata')).to.include({ kind: 'wallet' });
    const classic = await report(sandbox.info.mints.classic);
    expect(classic.authorities.map(({ kind, roles }) => ({ kind, roles }))).to.deep.equal([
      { kind: 'wallet', roles: ['mint', 'freeze'] },
    ]);
  });

  it('gives the largest accounts with their share, and identifies pools and burned tokens', async () => {
    const { largestAccounts, findings } = await report(sandbox.info.mints.doubtful);
    expect(largestAccounts?.accounts.map(({ kind, name, percent }) => [kind, name, percent])).to.deep.equal([
      ['wallet', null, 48],
      ['wallet', null, 22],
      ['burned', 'burned (incinerator)', 15],
      ['program', 'Orca Whirlpools', 10],
      ['program', 'Raydium pools (AMM v4)', 5],
    ]);
    expect(Number(largestAccounts?.accounts[0]?.amount)).to.equal(SUPPLY * 0.48);
    expect(largestAccounts?.topTenPercent).to.equal(70);
    expect(findings.find(({ code }) => code === 'concentrated-accounts')?.sentence).to.match(
      /hold 70% of the supply/,
    );
  });

  it('lists its findings, the most severe first, and repeats them as warnings', async () => {
    const { findings, warnings } = await report(sandbox.info.mints.doubtful);
    expect(findings.map(({ code, severity }) => `${severity} ${code}`)).to.deep.equal([
      'high freeze-authority',
      'high mint-authority',
      'medium concentrated-accounts',
      'low mutable-metadata',
    ]);
    expect(warnings).to.deep.equal(findings.map(({ sentence }) => sentence));
  });

  it('says “for ever” for accounts that start frozen where nobody can thaw them', async () => {
    const { findings, brief } = await report(sandbox.info.mints.frozenForEver);
    expect(findings[0]).to.include({ code: 'frozen-for-ever', severity: 'critical' });
    expect(findings[0]?.sentence).to.match(/^New token accounts are frozen for ever:/);
    expect(brief).to.match(/with one for ever \(and since the mint has no freeze authority/);
  });

  it('is read in one round for the mint and one for what it names; a mint that names nothing needs only the first', async () => {
    const counted = (mint: string): Promise<MintReport> => {
      asked.length = 0;
      const accounts: SolanaChain['accounts'] = (addresses, ...rest) => {
        asked.push(`${addresses.length}`);
        return chain.accounts(addresses, ...rest);
      };
      return report(mint, { accounts });
    };
    await counted(sandbox.info.mints.example);
    expect(asked).to.deep.equal(['2']);
    await counted(sandbox.info.mints.doubtful);
    expect(asked.slice(0, 2)).to.deep.equal(['2', '3']);
    expect(asked.slice(2), 'the largest accounts, then the owner that is no wallet').to.deep.equal([
      '5',
      '1',
    ]);
  });

  it('gives its creation time only if the RPC server shows the transaction that created it', async () => {
    const mint = sandbox.info.mints.classic;
    expect((await report(mint)).creation, 'the sandbox has no transaction for it').to.equal(null);
    const entry = { signature: 's', slot: 7, failed: false, blockTime: 1_700_000_000 };
    const signaturesFor = () => Promise.resolve([{ ...entry, signature: 'newer' }, entry]);
    const landed = { blockTime: 1_700_000_000, opened: [mint] } as unknown as Awaited<
      ReturnType<SolanaChain['transaction']>
    >;
    const { creation } = await report(mint, { signaturesFor, transaction: () => Promise.resolve(landed) });
    expect(creation).to.deep.equal({ signature: 's', slot: 7, at: '2023-11-14T22:13:20.000Z' });
    const touched = { ...landed, opened: [] } as unknown as typeof landed;
    const later = await report(mint, { signaturesFor, transaction: () => Promise.resolve(touched) });
    expect(later.creation).to.equal(null);
    const busy = () => Promise.resolve(Array.from({ length: 1_000 }, () => entry));
    const old = await report(mint, { signaturesFor: busy, transaction: () => Promise.resolve(landed) });
    expect(old.creation).to.equal(null);
  });

  it('omits the largest accounts and the creation if an RPC server refuses to return them', async () => {
    const refuse = (): Promise<never> => Promise.reject(new Error('method disabled'));
    const { largestAccounts, creation, findings } = await report(sandbox.info.mints.doubtful, {
      largestHoldings: refuse,
      signaturesFor: refuse,
    });
    expect({ largestAccounts, creation }).to.deep.equal({ largestAccounts: null, creation: null });
    expect(codes(findings)).to.include('mint-authority').and.not.include('concentrated-accounts');
  });
});

describe('what is known about programs and metadata', () => {
  const derived = (seed: string, program: string): string =>
    toAddress(programAddress([Buffer.from(seed)], readAddress(program) ?? Buffer.alloc(0)));

  it("the owners of Raydium's accounts are derived from its programs", () => {
    const AMM = '675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8';
    const CPMM = 'CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C';
    const LAUNCHLAB = 'LanMV9sAd7wArD4vJFi2qDdfnVhFxYSUg6eADduJ3uj';
    expect(knownAs(derived('amm authority', AMM), null)).to.equal('Raydium pools (AMM v4)');
    expect(knownAs(derived('vault_and_lp_mint_auth_seed', CPMM), null)).to.equal('Raydium pools (CPMM)');
    expect(knownAs(derived('vault_auth_seed', LAUNCHLAB), null)).to.equal('Raydium LaunchLab');
  });

  it('metadata is ignored if it is cut off, belongs to another mint or is from another program', () => {
    const mint = toAddress(Buffer.alloc(32, 7));
    const text = (value: string): Buffer => {
      const size = Buffer.alloc(4);
      size.writeUInt32LE(Buffer.byteLength(value));
      return Buffer.concat([size, Buffer.from(value)]);
    };
    const creators = Buffer.concat([Buffer.of(1, 2, 0, 0, 0), Buffer.alloc(2 * 34, 1)]);
    const whole = Buffer.concat([
      Buffer.of(4),
      Buffer.alloc(32, 9),
      Buffer.alloc(32, 7),
      text('N'.repeat(500)),
      text('“A”. “B'),
      text('javascript: alert(1)'),
      Buffer.of(0, 0),
      creators,
      Buffer.of(0, 1),
    ]);
    const account = (data: Buffer, owner = 'metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s') => ({
      owner,
      data,
      lamports: 1,
      executable: false,
      slot: 1,
    });
    expect(readMetadata(account(whole), mint)).to.include({
      name: 'N'.repeat(64),
      uri: null,
      mutable: true,
    });
    expect(readMetadata(account(whole, mint), mint)).to.equal(null);
    expect(readMetadata(account(whole), toAddress(Buffer.alloc(32, 8)))).to.equal(null);
    for (let length = 0; length < whole.length; length += 1)
      expect(readMetadata(account(whole.subarray(0, length)), mint), String(length)).to.equal(null);
    const huge = Buffer.from(whole);
    huge.writeUInt32LE(0xffffffff, 65);
    expect(readMetadata(account(huge), mint)).to.equal(null);
  });
});
