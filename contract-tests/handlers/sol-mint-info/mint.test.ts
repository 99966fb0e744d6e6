import {
  AccountLayout,
  AccountType,
  ExtensionType,
  getMintLen,
  MULTISIG_SIZE,
  TOKEN_2022_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
} from '@solana/spl-token';
import { PublicKey, SystemProgram } from '@solana/web3.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { formatUnits, readMintAccount, type MintFacts } from '../../../handlers/mints/mint.js';
import { createChain, type SolanaChain } from '../../../src/rails/solana/rpc.js';
import {
  ADDRESS,
  AUTHORITY,
  FakeRpc,
  extendedMint,
  publicFailureOf,
  mintBytes,
  never,
  type Answer,
  type StoredAccount,
} from '../../support/fake-rpc.js';

const metadata = Buffer.concat([
  AUTHORITY.toBuffer(),
  ADDRESS.toBuffer(),
  ...['Lighthouse', 'LGT', 'https://example.org/lgt.json'].map(value => {
    const size = Buffer.alloc(4);
    size.writeUInt32LE(value.length);
    return Buffer.concat([size, Buffer.from(value)]);
  }),
  Buffer.alloc(4),
]);

/** The facts alone, from 1 KiB of the account. */
async function readMint(chain: SolanaChain, mint: string, signal: AbortSignal): Promise<MintFacts> {
  return (await readMintAccount(chain, mint, signal, 1_024)).facts;
}

describe('the reader of mint facts', () => {
  let rpc: FakeRpc;
  let chain: SolanaChain;

  beforeEach(async () => {
    rpc = new FakeRpc();
    chain = createChain({ urls: [await rpc.open()], timeoutMs: 2_000 });
  });
  afterEach(async () => {
    await chain.close();
    await rpc.close();
  });

  const read = (
    data: Buffer,
    owner = TOKEN_PROGRAM_ID,
    more: Partial<StoredAccount> = {},
  ): Promise<MintFacts> => {
    rpc.accounts.set(ADDRESS.toBase58(), { owner, data, ...more });
    return readMint(chain, ADDRESS.toBase58(), never);
  };

  it('reads a classic mint with both authorities, in one call', async () => {
    const facts = await read(
      mintBytes({ supply: 1_000_000n, mintAuthority: AUTHORITY, freezeAuthority: ADDRESS }),
    );
    expect(facts).to.deep.equal({
      mint: ADDRESS.toBase58(),
      decimals: 6,
      supply: '1.000000',
      mintAuthority: AUTHORITY.toBase58(),
      freezeAuthority: ADDRESS.toBase58(),
      tokenProgram: TOKEN_PROGRAM_ID.toBase58(),
      initialized: true,
      slot: 5,
    });
    expect(rpc.calls.map(({ method }) => method)).to.deep.equal(['getMultipleAccounts']);
  });

  it('returns null for authorities that were given up', async () => {
    expect(await read(mintBytes({ supply: 5n, decimals: 0 }))).to.include({
      supply: '5',
      mintAuthority: null,
      freezeAuthority: null,
    });
  });

  it('gives the largest supply exactly', async () => {
    expect((await read(mintBytes({ supply: 2n ** 64n - 1n, decimals: 9 }))).supply).to.equal(
      '18446744073.709551615',
    );
    expect((await read(mintBytes({ supply: 1n, decimals: 255 }))).supply).to.match(/^0\.0{254}1$/);
  });

  it('formats every amount with exactly its fractional digits', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        fc.integer({ min: 0, max: 255 }),
        (amount, decimals) => {
          const text = formatUnits(amount, decimals);
          expect(text).to.match(
            decimals === 0 ? /^(?:0|[1-9]\d*)$/ : new RegExp(`^(?:0|[1-9]\\d*)\\.\\d{${decimals}}$`),
          );
          expect(BigInt(text.replace('.', ''))).to.equal(amount);
        },
      ),
    );
  });

  const extensions: [string, [number, Buffer][]][] = [
    ['no extension', []],
    ['a transfer fee', [[ExtensionType.TransferFeeConfig, Buffer.alloc(108, 7)]]],
    [
      'a metadata pointer and metadata',
      [
        [ExtensionType.MetadataPointer, Buffer.alloc(64, 1)],
        [ExtensionType.TokenMetadata, metadata],
      ],
    ],
    [
      'a permanent delegate, a close authority and a hook',
      [
        [ExtensionType.PermanentDelegate, Buffer.alloc(32, 2)],
        [ExtensionType.MintCloseAuthority, Buffer.alloc(32, 3)],
        [ExtensionType.TransferHook, Buffer.alloc(64, 4)],
      ],
    ],
    [
      'extensions with unknown numbers',
      [
        [16, Buffer.alloc(129)],
        [24, Buffer.alloc(20)],
        [4_711, Buffer.alloc(3)],
      ],
    ],
    ['metadata that is longer than what is read', [[ExtensionType.TokenMetadata, Buffer.alloc(9_000, 65)]]],
  ];
  for (const [name, entries] of extensions) {
    it(`reads a Token-2022 mint with ${name}`, async () => {
      const fields = { supply: 123_456n, decimals: 2, mintAuthority: AUTHORITY };
      const data = entries.length === 0 ? mintBytes(fields) : extendedMint(fields, entries);
      const facts = await read(data, TOKEN_2022_PROGRAM_ID);
      expect(facts).to.include({ supply: '1234.56', mintAuthority: AUTHORITY.toBase58(), initialized: true });
      expect(facts.tokenProgram).to.equal(TOKEN_2022_PROGRAM_ID.toBase58());
    });
  }

  it('reads a Token-2022 mint whose extensions are cut short', async () => {
    const whole = extendedMint({ supply: 10n, decimals: 1 }, [
      [ExtensionType.TransferFeeConfig, Buffer.alloc(108, 7)],
    ]);
    expect(whole.length).to.equal(getMintLen([ExtensionType.TransferFeeConfig]));
    for (const length of [whole.length - 50, 169, 167]) {
      expect((await read(whole.subarray(0, length), TOKEN_2022_PROGRAM_ID)).supply).to.equal('1.0');
    }
  });

  it('says that a mint is not initialised yet', async () => {
    for (const owner of [TOKEN_PROGRAM_ID, TOKEN_2022_PROGRAM_ID]) {
      const facts = await read(Buffer.alloc(82), owner);
      expect(facts).to.include({
        initialized: false,
        supply: '0',
        decimals: 0,
        mintAuthority: null,
        freezeAuthority: null,
      });
    }
  });

  it('explains for each kind of address that is not a mint what it is instead', async () => {
    const holder = Buffer.alloc(AccountLayout.span);
    holder[108] = 1;
    const cases: [RegExp, () => Promise<unknown>][] = [
      [/wallet/, () => read(Buffer.alloc(0), SystemProgram.programId)],
      [/token account, which holds tokens/, () => read(holder)],
      [
        /token account, which holds tokens/,
        () =>
          read(
            extendedMint({}, [[ExtensionType.ImmutableOwner, Buffer.alloc(0)]], AccountType.Account),
            TOKEN_2022_PROGRAM_ID,
          ),
      ],
      [/multisig/, () => read(Buffer.alloc(MULTISIG_SIZE, 1))],
      [/multisig/, () => read(Buffer.alloc(MULTISIG_SIZE, 1), TOKEN_2022_PROGRAM_ID)],
      [/but not a mint/, () => read(Buffer.alloc(100))],
      [/but not a mint/, () => read(extendedMint({}, []).fill(1, 165), TOKEN_PROGRAM_ID)],
      [
        /program, not of a token/,
        () =>
          read(Buffer.alloc(36), new PublicKey('BPFLoaderUpgradeab1e11111111111111111111111'), {
            executable: true,
          }),
      ],
      [/another program/, () => read(mintBytes({}), AUTHORITY)],
      [/closed/, () => read(Buffer.alloc(0), SystemProgram.programId, { lamports: 0 })],
      [/closed/, () => read(Buffer.alloc(0))],
    ];
    for (const [words, ask] of cases) {
      const failure = await publicFailureOf(ask());
      expect(failure.kind).to.equal('invalid');
      expect(failure.message).to.match(words);
      expect(failure.message, 'what to do').to.match(/send the/);
    }
    const missing = await publicFailureOf(readMint(chain, AUTHORITY.toBase58(), never));
    expect(missing.kind).to.equal('invalid');
    expect(missing.message).to.match(/does not exist on this chain/);
  });

  it('refuses base58 that is not 32 bytes, without asking the chain', async () => {
    for (const mint of ['1'.repeat(44), 'z'.repeat(44), 'z'.repeat(32), '2'.repeat(43)]) {
      const failure = await publicFailureOf(readMint(chain, mint, never));
      expect(failure.kind, mint).to.equal('invalid');
      expect(failure.message).to.match(/32 bytes/);
    }
    expect(rpc.calls).to.have.length(0);
  });

  it('fails on invalid answers of the RPC server', async () => {
    const wrongs: Answer[] = [
      response => response.end('<html>Welcome</html>'),
      response => response.end('null'),
      response => response.end('{}'),
      response => response.end(),
      response => response.end('[]'),
      (response, _call, id) => rpc.send(response, id, { context: { slot: 1 } }),
      (response, _call, id) =>
        rpc.send(response, id, { context: { slot: 1 }, value: { owner: 'x', data: 'y' } }),
      (response, _call, id) =>
        response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'no' } })),
      response => response.writeHead(403).end('{"error":"key"}'),
      response =>
        response.writeHead(200, { 'content-length': '500' }).write('{"js') &&
        setTimeout(() => response.destroy(), 20),
      response => response.end(' '.repeat(5_000_000)),
    ];
    for (const [index, answer] of wrongs.entries()) {
      rpc.answer = answer;
      const failure = await publicFailureOf(readMint(chain, ADDRESS.toBase58(), never));
      expect(failure.kind, `answer ${index}`).to.equal('failed');
    }
  });

  it('is unavailable on a 503, on a 429 (with the wait that it names), and on a node that is behind', async () => {
    rpc.answer = response => response.writeHead(429, { 'retry-after': '9' }).end('slow down');
    expect(await publicFailureOf(readMint(chain, ADDRESS.toBase58(), never))).to.include({
      kind: 'unavailable',
      retryAfterSeconds: 9,
    });
    expect(rpc.calls, 'no retry on 429').to.have.length(1);
    rpc.answer = response => response.writeHead(503).end('<html>');
    expect((await publicFailureOf(readMint(chain, ADDRESS.toBase58(), never))).kind).to.equal('unavailable');
    rpc.answer = (response, _call, id) =>
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32005, message: 'behind' } }));
    expect((await publicFailureOf(readMint(chain, ADDRESS.toBase58(), never))).kind).to.equal('unavailable');
  });
});
