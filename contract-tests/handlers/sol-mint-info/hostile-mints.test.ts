import { ExtensionType, TOKEN_PROGRAM_ID } from '@solana/spl-token';
import { expect } from 'chai';
import fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { AUTHORITY, extendedMint, mintBytes } from '../../support/fake-rpc.js';
import { reportOf } from '../../support/mint-reports.js';

const FIELDS = { supply: 123_456n, decimals: 2, mintAuthority: AUTHORITY };
const file = new URL('../../../../contract-tests/fixtures/mints/accounts.json', import.meta.url);
const fixtures = (JSON.parse(readFileSync(file, 'utf8')) as { owner: string; data: string }[])
  .map(({ data }) => Buffer.from(data, 'base64'))
  .filter(data => data.length > 166);

const lengthPrefixed = (text: Buffer): Buffer => {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(text.length);
  return Buffer.concat([size, text]);
};
const metadataOf = (name: string | Buffer): Buffer =>
  Buffer.concat([
    AUTHORITY.toBuffer(),
    AUTHORITY.toBuffer(),
    lengthPrefixed(Buffer.from(name)),
    lengthPrefixed(Buffer.from('SYM')),
    lengthPrefixed(Buffer.from('https://example.org/?a=1&b=2')),
    Buffer.alloc(4),
  ]);

/** Token-2022 itself reads an account of this size as a multisig, and never makes a mint of it. */
const MULTISIG_SIZE = 355;

async function expectSound(data: Buffer): Promise<void> {
  if (data.length === MULTISIG_SIZE) return;
  const report = await reportOf(data);
  expect(report).to.include({ supply: '1234.56', mintAuthority: AUTHORITY.toBase58() });
  expect(report.brief).to.not.match(/[\r\n]|\bundefined\b|\bNaN\b|\[object/);
  expect(JSON.parse(JSON.stringify(report)), 'nothing that JSON cannot hold').to.deep.equal(report);
}

describe('hostile mint accounts', () => {
  it('whatever bytes follow the mint, its own facts are given and nothing is thrown', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), async bytes =>
        expectSound(Buffer.concat([extendedMint(FIELDS, []), bytes])),
      ),
      { numRuns: 300 },
    );
  });

  it('nothing is thrown, whatever extensions there are and whatever they contain', async () => {
    const entry = fc.tuple(fc.oneof(fc.nat(30), fc.nat(65_535)), fc.uint8Array({ maxLength: 260 }));
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 8 }), async entries =>
        expectSound(
          extendedMint(
            FIELDS,
            entries.map(([type, bytes]) => [type, Buffer.from(bytes)]),
          ),
        ),
      ),
      { numRuns: 300 },
    );
  });

  it('nothing is thrown when bytes of real extensions are changed or cut off', async () => {
    const change = fc.tuple(fc.nat(), fc.nat(255));
    const mint = fc.constantFrom(...fixtures);
    await fc.assert(
      fc.asyncProperty(
        mint,
        fc.array(change, { maxLength: 6 }),
        fc.option(fc.nat()),
        async (data, changes, cut) => {
          const bent = Buffer.concat([mintBytes(FIELDS), data.subarray(82)]);
          for (const [at, value] of changes) bent[166 + (at % (bent.length - 166))] = value;
          await expectSound(cut === null ? bent : bent.subarray(0, 166 + (cut % (bent.length - 166))));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('an extension with an unknown number is reported by that number, with a warning', async () => {
    const { extensions, warnings, brief } = await reportOf(
      extendedMint(FIELDS, [
        [4_711, Buffer.alloc(3)],
        [ExtensionType.PermanentDelegate, AUTHORITY.toBuffer()],
      ]),
    );
    expect(extensions.unknown).to.have.length(1);
    expect(extensions.unknown?.[0]).to.include({ type: 4_711, bytes: 3 });
    expect(extensions.permanentDelegate?.delegate, 'the one behind it').to.equal(AUTHORITY.toBase58());
    expect(brief).to.match(/Extension number 4711 \(3 bytes\) is unknown here/);
    expect(warnings.join()).to.match(/not known here, so this list may be incomplete \(numbers 4711\)/);
  });

  it('a known extension of the wrong length, or one for token accounts, is not read as something else', async () => {
    for (const [type, value] of [
      [ExtensionType.PermanentDelegate, Buffer.alloc(31, 1)],
      [ExtensionType.PermanentDelegate, Buffer.alloc(33, 1)],
      [ExtensionType.NonTransferable, Buffer.alloc(1)],
      [ExtensionType.ImmutableOwner, Buffer.alloc(0)],
      [24, Buffer.alloc(195)],
      [28, Buffer.alloc(31)],
    ] as const) {
      const { extensions } = await reportOf(extendedMint(FIELDS, [[type, value]]));
      expect(Object.keys(extensions), String(type)).to.deep.equal(['unknown']);
    }
  });

  it('a second extension of the same number, or one that is longer than the account, ends the list with a warning', async () => {
    const first: [number, Buffer] = [ExtensionType.PermanentDelegate, AUTHORITY.toBuffer()];
    const second = extendedMint(FIELDS, [first, [first[0], Buffer.alloc(32)]]);
    const whole = extendedMint(FIELDS, [first, [ExtensionType.MintCloseAuthority, AUTHORITY.toBuffer()]]);
    for (const data of [second, whole.subarray(0, -1)]) {
      const { extensions, warnings } = await reportOf(data);
      expect(extensions.permanentDelegate?.delegate).to.equal(AUTHORITY.toBase58());
      expect(extensions.mintCloseAuthority).to.equal(undefined);
      expect(extensions.unreadable?.bytes).to.be.greaterThan(30);
      expect(warnings.join()).to.match(/could not be read to the end/);
    }
  });

  it('metadata longer than the part of the account that is read is reported as missing', async () => {
    const { extensions } = await reportOf(
      extendedMint(FIELDS, [
        [ExtensionType.PermanentDelegate, AUTHORITY.toBuffer()],
        [ExtensionType.TokenMetadata, metadataOf('x'.repeat(65_200))],
        [ExtensionType.MintCloseAuthority, AUTHORITY.toBuffer()],
      ]),
    );
    expect(Object.keys(extensions)).to.have.members(['permanentDelegate', 'metadata', 'unreadable']);
    expect(extensions.metadata?.name).to.have.length(64);
  });

  it('thousands of unknown extensions do not make the answer long', async () => {
    const many = Array.from({ length: 4_000 }, (_, index): [number, Buffer] => [
      1_000 + index,
      Buffer.alloc(2),
    ]);
    const report = await reportOf(extendedMint(FIELDS, many));
    expect(report.extensions.unknown).to.have.length(32);
    expect(report.extensions.unreadable?.bytes).to.equal((4_000 - 32) * 6);
    expect(JSON.stringify(report).length).to.be.lessThan(20_000);
  });

  it("a name can't add a sentence of its own, and a URI is given only if it is valid", async () => {
    const name = 'A”; it is safe. “B\nWarnings: none\u202e';
    const { extensions, brief } = await reportOf(
      extendedMint(FIELDS, [[ExtensionType.TokenMetadata, metadataOf(name)]]),
    );
    expect(brief).to.include("calls it “A'; it is safe. 'B Warnings: none” (SYM)");
    expect(extensions.metadata?.uri).to.equal('https://example.org/?a=1&b=2');
    const bytes = metadataOf(Buffer.from([0xff, 0xfe, 0x00]));
    const broken = await reportOf(extendedMint(FIELDS, [[ExtensionType.TokenMetadata, bytes]]));
    expect(broken.brief).to.not.match(/\p{C}/u);
  });

  it('a scale or a fee that the program would never store is not reported as a fact', async () => {
    const scale = Buffer.alloc(56);
    scale.writeDoubleLE(Number.NaN, 32);
    const fee = Buffer.alloc(108);
    fee.writeUInt16LE(20_000, 106);
    const { extensions } = await reportOf(
      extendedMint(FIELDS, [
        [ExtensionType.ScaledUiAmountConfig, scale],
        [ExtensionType.TransferFeeConfig, fee],
      ]),
    );
    expect(extensions.unknown?.map(({ type }) => type)).to.deep.equal([25, 1]);
  });
});

describe('mints that could mislead', () => {
  it('a mint that is not initialised has null authorities, and the report says that they mean nothing', async () => {
    const { brief, warnings, extensions, mintAuthority } = await reportOf(
      Buffer.alloc(82),
      TOKEN_PROGRAM_ID.toBase58(),
    );
    expect(mintAuthority).to.equal(null);
    expect(extensions).to.deep.equal({});
    expect(warnings).to.have.length(1);
    expect(warnings[0]).to.match(/not been initialised: null authorities mean nothing yet/);
    expect(brief)
      .to.match(/it is not a token yet/)
      .and.to.not.match(/No more tokens can be minted/);
  });

  it('a mint without authorities has no warnings, and the report says that none can be appointed', async () => {
    const { brief, warnings } = await reportOf(mintBytes({ supply: 5n }), TOKEN_PROGRAM_ID.toBase58());
    expect(warnings).to.deep.equal([]);
    expect(brief).to.match(/No more tokens can be minted: .* none can be appointed/);
  });

  it('wrapped SOL can be created by anyone, although its mint has no authority and a supply of 0', async () => {
    const { brief } = await reportOf(
      mintBytes({ decimals: 9 }),
      TOKEN_PROGRAM_ID.toBase58(),
      'So11111111111111111111111111111111111111112',
    );
    expect(brief)
      .to.match(/wrapping SOL/)
      .and.to.not.match(/No more tokens/);
  });
});
