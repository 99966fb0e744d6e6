import { isFree } from './controls.js';
import type { Row } from './findings.js';
import type { LargestAccounts } from './largest-accounts.js';
import type { Metadata } from './metaplex.js';
import type { MintExtensions } from './mint-extensions.js';
import type { MintFacts } from './mint.js';
import { percent } from './wording.js';

/** The data behind the findings about a mint. `largestAccounts` is null where it was not read. */
export type MintSubject = MintFacts & {
  extensions: MintExtensions;
  metadata: Metadata | null;
  largestAccounts: LargestAccounts | null;
};

/** The share of the supply, in per cent, above which the ten largest accounts of unknown owners give a warning. */
const CONCENTRATED_PERCENT = 50;

type Says = Row<MintSubject>['says'];

const taxed: Says = ({ extensions: { transferFee } }) => {
  const fees = transferFee ? [transferFee.older, transferFee.newer].filter(fee => !isFree(fee)) : [];
  if (fees.length === 0) return undefined;
  const highest = percent(Math.max(...fees.map(({ basisPoints }) => basisPoints)));
  return `Transfers are taxed: up to ${highest} of the amount is withheld (transfer fee).`;
};

const scaled: Says = ({ extensions: { scaledUiAmount: scale } }) =>
  scale && !(scale.multiplier === 1 && scale.newMultiplier === 1 && scale.authority === null)
    ? 'Balances that wallets show can differ from the amounts on chain (scaled UI amount).'
    : undefined;

const renamed: Says = ({ metadata, extensions }) => {
  const editor = metadata?.mutable ? metadata.updateAuthority : extensions.metadata?.authority;
  return by(editor, who => `${who} can change the name and the symbol (metadata update authority).`);
};

const unknownExtensions: Says = ({ extensions: { unknown } }) =>
  unknown &&
  `It has extensions that are not known here, so this list may be incomplete (numbers ${unknown.map(({ type }) => type).join(', ')}).`;

const concentrated: Says = ({ largestAccounts: largest }) =>
  largest !== null && largest.topTenPercent > CONCENTRATED_PERCENT
    ? `The ten largest accounts that are neither burned nor owned by a known program hold ${largest.topTenPercent}% of the supply: their owners can move the price at will.`
    : undefined;

const by = (who: string | null | undefined, sentence: (who: string) => string): string | undefined =>
  who === null || who === undefined ? undefined : sentence(who);

/** Every warning about a mint: what somebody can do to holders, or already does. */
export const MINT_FINDINGS: readonly Row<MintSubject>[] = [
  {
    code: 'uninitialised',
    severity: 'critical',
    says: ({ initialized }) =>
      initialized
        ? undefined
        : 'This mint has not been initialised: null authorities mean nothing yet, because whoever initialises it chooses them.',
  },
  {
    code: 'paused',
    severity: 'critical',
    says: ({ extensions: { pausable } }) =>
      pausable?.paused ? 'The token is stopped: no transfers, minting or burning (paused).' : undefined,
  },
  {
    code: 'frozen-for-ever',
    severity: 'critical',
    says: ({ extensions: { defaultAccountState }, freezeAuthority }) =>
      defaultAccountState?.state === 'frozen' && freezeAuthority === null
        ? 'New token accounts are frozen for ever: the mint has no freeze authority, so nobody can ever thaw them (default account state).'
        : undefined,
  },
  {
    code: 'non-transferable',
    severity: 'critical',
    says: ({ extensions: { nonTransferable } }) =>
      nonTransferable && 'Tokens cannot be transferred (non-transferable).',
  },
  {
    code: 'permanent-delegate',
    severity: 'high',
    says: ({ extensions: { permanentDelegate } }) =>
      by(
        permanentDelegate?.delegate,
        who => `${who} can seize tokens from any account (permanent delegate).`,
      ),
  },
  {
    code: 'frozen-by-default',
    severity: 'high',
    says: ({ extensions: { defaultAccountState }, freezeAuthority }) =>
      defaultAccountState?.state === 'frozen' && freezeAuthority !== null
        ? 'New token accounts are frozen until somebody thaws them (default account state).'
        : undefined,
  },
  {
    code: 'transfer-hook',
    severity: 'high',
    says: ({ extensions: { transferHook } }) =>
      by(transferHook?.program, program => `The program ${program} can refuse any transfer (transfer hook).`),
  },
  {
    code: 'transfer-hook-authority',
    severity: 'high',
    says: ({ extensions: { transferHook } }) =>
      by(
        transferHook?.authority,
        who => `${who} can set a program that refuses transfers (transfer hook authority).`,
      ),
  },
  { code: 'transfer-fee', severity: 'high', says: taxed },
  {
    code: 'transfer-fee-authority',
    severity: 'high',
    says: ({ extensions: { transferFee } }) =>
      by(
        transferFee?.authority,
        who => `${who} can tax transfers: it can set a fee of up to 100% (transfer fee authority).`,
      ),
  },
  {
    code: 'pause-authority',
    severity: 'high',
    says: ({ extensions: { pausable } }) =>
      by(pausable?.authority, who => `${who} can stop all transfers, minting and burning (pause authority).`),
  },
  {
    code: 'freeze-authority',
    severity: 'high',
    says: ({ freezeAuthority }) =>
      by(freezeAuthority, who => `${who} can freeze any token account (freeze authority).`),
  },
  {
    code: 'mint-authority',
    severity: 'high',
    says: ({ mintAuthority }) => by(mintAuthority, who => `${who} can mint more tokens (mint authority).`),
  },
  {
    code: 'hidden-supply',
    severity: 'high',
    says: ({ extensions: { confidentialMintBurn } }) =>
      confidentialMintBurn && 'The true supply is hidden: tokens can be minted in encrypted amounts.',
  },
  {
    code: 'mint-close-authority',
    severity: 'medium',
    says: ({ extensions: { mintCloseAuthority } }) =>
      by(
        mintCloseAuthority?.authority,
        who => `${who} can close the mint once no tokens exist (mint close authority).`,
      ),
  },
  { code: 'concentrated-accounts', severity: 'medium', says: concentrated },
  { code: 'unknown-extensions', severity: 'medium', says: unknownExtensions },
  {
    code: 'unreadable-extensions',
    severity: 'medium',
    says: ({ extensions: { unreadable } }) =>
      unreadable && 'Its extensions could not be read to the end, so this list may be incomplete.',
  },
  {
    code: 'interest-bearing',
    severity: 'low',
    says: ({ extensions: { interestBearing } }) =>
      interestBearing && 'Balances that wallets show differ from the amounts on chain (interest-bearing).',
  },
  { code: 'scaled-amounts', severity: 'low', says: scaled },
  { code: 'mutable-metadata', severity: 'low', says: renamed },
];
