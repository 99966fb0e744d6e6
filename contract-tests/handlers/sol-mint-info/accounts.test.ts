import {
  AccountState,
  getDefaultAccountState,
  getInterestBearingMintConfigState,
  getMetadataPointerState,
  getMintCloseAuthority,
  getNonTransferable,
  getPausableConfig,
  getPermanentDelegate,
  getPermissionedBurn,
  getScaledUiAmountConfig,
  getTransferFeeConfig,
  getTransferHook,
  unpackMint,
  type Mint,
} from '@solana/spl-token';
import { PublicKey } from '@solana/web3.js';
import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { objectOf } from '../../../src/contract/references.js';
import type { MintExtensions } from '../../../handlers/mints/mint-extensions.js';
import { formatUnits } from '../../../handlers/mints/mint.js';
import { reportOf, SLOT } from '../../support/mint-reports.js';
import { SOLD } from '../../support/sold.js';
import { makeMints, RECIPES } from '../../support/vm-mints.js';

type Fixture = {
  name: string;
  source: string;
  address: string;
  owner: string;
  data: string;
  expect: { extensions: Record<string, object>; findings: string[]; warnings: string[] };
};

const file = new URL('../../../../contract-tests/fixtures/mints/accounts.json', import.meta.url);
const accounts = JSON.parse(readFileSync(file, 'utf8')) as Fixture[];

const bytesOf = ({ data }: Fixture): Buffer => Buffer.from(data, 'base64');

/** The sentences of all extensions. */
function sentencesOf(extensions: MintExtensions): string[] {
  return Object.values(extensions)
    .flat()
    .map(({ sentence }) => sentence);
}

function withoutSentences(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, inner: unknown) => (key === 'sentence' ? undefined : inner)));
}

describe('mint accounts of every kind', () => {
  it('number more than twenty, most of them with extensions', () => {
    expect(accounts.length).to.be.at.least(20);
    expect(accounts.filter(({ source }) => source.includes('solana-web3.js'))).to.have.length(6);
    expect(accounts.map(({ name }) => name)).to.include.members(Object.keys(RECIPES));
  });

  it('together have every extension that the contract declares; Token-2022 itself made those that decide what can happen to holders', function () {
    // A shop that does not sell this operation keeps its code until somebody deletes it.
    if (!SOLD.paid.some(({ id }) => id === 'solMintInfo')) this.skip();
    const declared = Object.keys(
      objectOf(objectOf(objectOf(SOLD.document.components).schemas).MintExtensions).properties as object,
    );
    const shown = (from: Fixture[]): Set<string> =>
      new Set(from.flatMap(({ expect: { extensions } }) => Object.keys(extensions)));
    // No program makes unreadable extensions: hostile-mints.test.ts covers them.
    expect(declared.filter(name => name !== 'unreadable' && !shown(accounts).has(name))).to.deep.equal([]);
    const made = shown(accounts.filter(({ name }) => name in RECIPES));
    expect(declared.filter(name => !made.has(name))).to.deep.equal(['unknown', 'unreadable']);
  });

  it('have the bytes that the Token-2022 program writes', async () => {
    for (const [name, { address, owner, data }] of await makeMints()) {
      const kept = accounts.find(account => account.name === name);
      expect({ address, owner, data: data.toString('base64') }, name).to.deep.equal({
        address: kept?.address,
        owner: kept?.owner,
        data: kept?.data,
      });
    }
  });

  for (const account of accounts) {
    it(`are reported as expected, with a sentence for each extension: ${account.name}`, async () => {
      const report = await reportOf(bytesOf(account), account.owner, account.address);
      const { mint, tokenProgram, initialized, slot, brief, findings, ...others } = report;
      const { metadata, authorities, largestAccounts, creation, ...rest } = others;
      expect({ metadata, largestAccounts, creation }).to.deep.equal({
        metadata: null,
        largestAccounts: null,
        creation: null,
      });
      expect(authorities.map(({ address }) => address)).to.include.members(
        [report.mintAuthority, report.freezeAuthority].filter(address => address !== null),
      );
      expect({ mint, tokenProgram, initialized, slot }).to.deep.equal({
        slot: SLOT,
        mint: account.address,
        tokenProgram: account.owner,
        initialized: true,
      });
      const named = findings.map(({ code, severity }) => `${severity} ${code}`);
      expect(withoutSentences({ ...rest, findings: named })).to.deep.equal(account.expect);
      expect(findings.map(({ sentence }) => sentence)).to.deep.equal(report.warnings);
      for (const sentence of sentencesOf(report.extensions)) {
        expect(sentence).to.match(/^[A-Z1-9].{20,}\.$/);
        expect(brief).to.include(sentence);
      }
      expect(brief).to.not.match(/[\r\n]/);
    });

    it(`agree with another decoder: ${account.name}`, async () => {
      const data = bytesOf(account);
      const owner = new PublicKey(account.owner);
      const mint = unpackMint(
        new PublicKey(account.address),
        { data, owner, executable: false, lamports: 1 },
        owner,
      );
      const { extensions, ...facts } = await reportOf(data, account.owner, account.address);
      expect(facts.supply).to.equal(formatUnits(mint.supply, mint.decimals));
      expect(facts.mintAuthority).to.equal(mint.mintAuthority?.toBase58() ?? null);
      expect(facts.freezeAuthority).to.equal(mint.freezeAuthority?.toBase58() ?? null);
      compare(extensions, mint);
    });
  }
});

/** An address that the other decoder returned, as text; null for a missing one, which it returns as null, undefined or all zeros. */
const addressOf = (key: PublicKey | null | undefined): string | null =>
  key && !key.equals(PublicKey.default) ? key.toBase58() : null;

const timeOf = (seconds: bigint): string => new Date(Number(seconds) * 1_000).toISOString();

function compare(extensions: MintExtensions, mint: Mint): void {
  compareControls(extensions, mint);
  const interest = getInterestBearingMintConfigState(mint);
  expect(extensions.interestBearing?.basisPoints).to.equal(interest?.currentRate);
  if (interest) expect(extensions.interestBearing?.since).to.equal(timeOf(interest.initializationTimestamp));
  const scaled = getScaledUiAmountConfig(mint);
  expect(extensions.scaledUiAmount?.multiplier).to.equal(scaled?.multiplier);
  expect(extensions.scaledUiAmount?.newMultiplier).to.equal(scaled?.newMultiplier);
}

/** The addresses in the extensions as the other decoder reads them, under our names. */
const addressesOf = (mint: Mint): Record<string, PublicKey | null | undefined> => ({
  'permanentDelegate.delegate': getPermanentDelegate(mint)?.delegate,
  'mintCloseAuthority.authority': getMintCloseAuthority(mint)?.closeAuthority,
  'transferHook.program': getTransferHook(mint)?.programId,
  'transferHook.authority': getTransferHook(mint)?.authority,
  'pausable.authority': getPausableConfig(mint)?.authority,
  'permissionedBurn.authority': getPermissionedBurn(mint)?.authority,
  'metadataPointer.address': getMetadataPointerState(mint)?.metadataAddress,
  'transferFee.authority': getTransferFeeConfig(mint)?.transferFeeConfigAuthority,
  'transferFee.withdrawAuthority': getTransferFeeConfig(mint)?.withdrawWithheldAuthority,
});

function compareControls(extensions: MintExtensions, mint: Mint): void {
  for (const [path, key] of Object.entries(addressesOf(mint))) {
    const [name, field] = path.split('.') as [keyof MintExtensions, string];
    const given = (extensions[name] as Record<string, unknown> | undefined)?.[field] ?? null;
    expect(given, path).to.equal(addressOf(key));
  }
  expect(extensions.pausable?.paused).to.equal(getPausableConfig(mint)?.paused);
  const frozen = getDefaultAccountState(mint)?.state === AccountState.Frozen;
  expect(extensions.defaultAccountState?.state === 'frozen').to.equal(frozen);
  expect(extensions.nonTransferable !== undefined).to.equal(getNonTransferable(mint) !== null);
  const fee = getTransferFeeConfig(mint);
  expect(extensions.transferFee?.older).to.deep.equal(fee ? feeOf(fee.olderTransferFee, mint) : undefined);
  expect(extensions.transferFee?.newer).to.deep.equal(fee ? feeOf(fee.newerTransferFee, mint) : undefined);
}

function feeOf(
  {
    epoch,
    transferFeeBasisPoints,
    maximumFee,
  }: {
    epoch: bigint;
    transferFeeBasisPoints: number;
    maximumFee: bigint;
  },
  { decimals }: Mint,
): object {
  return {
    epoch: Number(epoch),
    basisPoints: transferFeeBasisPoints,
    maximum: formatUnits(maximumFee, decimals),
  };
}
