import { formatUnits, type MintFacts } from './mint.js';
import type { TransferFee } from './mint-extensions.js';
import { addressOrNull, encryptionKey, type Describers } from './describer.js';
import { percent, trimZeros, whoCan } from './wording.js';

const MAX_BASIS_POINTS = 10_000;
const MAX_AMOUNT = 2n ** 64n - 1n;
/** `AccountState` of the program. */
const FROZEN = 2;
const INITIALIZED = 1;

type RawFee = { epoch: bigint; maximumFee: bigint; transferFeeBasisPoints: number };

function readFee(fee: RawFee, { decimals }: MintFacts): TransferFee {
  const epoch = Number(fee.epoch);
  if (!Number.isSafeInteger(epoch) || fee.transferFeeBasisPoints > MAX_BASIS_POINTS) {
    throw new RangeError('a fee that the program would not store');
  }
  return {
    epoch,
    basisPoints: fee.transferFeeBasisPoints,
    maximum: formatUnits(fee.maximumFee, decimals),
  };
}

export const isFree = ({ basisPoints, maximum }: TransferFee): boolean =>
  basisPoints === 0 || /^[0.]+$/.test(maximum);

function feeWords(fee: TransferFee, { decimals }: MintFacts): string {
  if (isFree(fee)) return 'no fee';
  const capped = fee.maximum !== formatUnits(MAX_AMOUNT, decimals);
  return `${percent(fee.basisPoints)} of the amount${capped ? `, at most ${trimZeros(fee.maximum)} tokens` : ''}`;
}

function feeSentence(older: TransferFee, newer: TransferFee, mint: MintFacts): string {
  const before = feeWords(older, mint);
  const after = feeWords(newer, mint);
  if (before === after) {
    return isFree(newer) ? 'Transfers cost no fee.' : `Each transfer costs the recipient a fee: ${after}.`;
  }
  return `The fee on each transfer, which the recipient bears: ${before}, before epoch ${newer.epoch}; ${after}, from that epoch on.`;
}

/** Extensions that let somebody mint, freeze, tax, seize, hide or stop tokens. */
export const controls: Describers = {
  PermanentDelegate: extension => {
    const delegate = addressOrNull(extension.delegate);
    if (delegate === null) {
      const sentence =
        'There is no permanent delegate any more, so nobody can move or burn the tokens of others as a delegate, now or later.';
      return { permanentDelegate: { delegate, sentence } };
    }
    const sentence = `${delegate} can transfer or burn tokens from any account without its owner's consent.`;
    return { permanentDelegate: { delegate, sentence } };
  },

  TransferFeeConfig: (extension, mint) => {
    const authority = addressOrNull(extension.transferFeeConfigAuthority);
    const withdrawAuthority = addressOrNull(extension.withdrawWithheldAuthority);
    const older = readFee(extension.olderTransferFee, mint);
    const newer = readFee(extension.newerTransferFee, mint);
    const change =
      authority === null
        ? whoCan(null, 'change the fee')
        : `${authority} can set another fee of up to 100%, which applies two epochs later.`;
    const sentence = `${feeSentence(older, newer, mint)} ${change}`;
    const withheld = formatUnits(extension.withheldAmount, mint.decimals);
    return { transferFee: { authority, withdrawAuthority, withheld, older, newer, sentence } };
  },

  TransferHook: extension => {
    const authority = addressOrNull(extension.authority);
    const program = addressOrNull(extension.programId);
    const now =
      program === null
        ? 'No program runs on transfers now.'
        : `The program ${program} runs on every transfer and can refuse it.`;
    const sentence = `${now} ${whoCan(authority, program === null ? 'set one that refuses transfers' : 'replace it')}`;
    return { transferHook: { authority, program, sentence } };
  },

  DefaultAccountState: ({ state }, { freezeAuthority }) => {
    const code = state as number;
    if (code !== INITIALIZED && code !== FROZEN) throw new RangeError('a state that no account starts in');
    const frozen = code === FROZEN;
    const nobody = 'and since the mint has no freeze authority, nobody can change that';
    const sentence = frozen
      ? `New token accounts start frozen: nobody can receive or send tokens with one ${freezeAuthority === null ? `for ever (${nobody})` : `until ${freezeAuthority} has thawed it`}.`
      : `New token accounts can be used immediately${freezeAuthority === null ? ', and nobody can change that' : `; ${freezeAuthority} can make them start frozen`}.`;
    return { defaultAccountState: { state: frozen ? 'frozen' : 'initialized', sentence } };
  },

  PausableConfig: ({ authority: raw, paused }) => {
    const authority = addressOrNull(raw);
    const now = paused
      ? 'The token is paused: nobody can transfer, mint or burn it.'
      : 'The token is not paused.';
    const who = whoCan(authority, paused ? 'resume it' : 'pause all transfers, minting and burning');
    return { pausable: { authority, paused, sentence: `${now} ${who}` } };
  },

  MintCloseAuthority: extension => {
    const authority = addressOrNull(extension.closeAuthority);
    const sentence =
      authority === null
        ? whoCan(null, 'close the mint')
        : `${authority} can close the mint while no tokens exist; its address can then be used for another token.`;
    return { mintCloseAuthority: { authority, sentence } };
  },

  NonTransferable: () => ({
    nonTransferable: {
      sentence:
        'Tokens cannot be transferred or sold: each stays in the account it was minted to, until it is burnt.',
    },
  }),

  ConfidentialTransferMint: extension => {
    const authority = addressOrNull(extension.authority);
    const auditorKey = encryptionKey(addressOrNull(extension.auditorElgamalPubkey));
    const automaticApproval = extension.autoApproveNewAccounts;
    const approval = automaticApproval
      ? 'every account may do so'
      : `an account may do so only if ${authority ?? 'an authority that no longer exists'} approves it`;
    const audit =
      auditorKey === null ? 'no auditor can read the amounts' : 'an auditor with a key can read the amounts';
    const sentence = `Holders can keep and transfer tokens in encrypted amounts: ${approval}, and ${audit}.`;
    return { confidentialTransfers: { authority, automaticApproval, auditorKey, sentence } };
  },

  ConfidentialTransferFee: extension => {
    const authority = addressOrNull(extension.authority);
    const withdrawKey = encryptionKey(addressOrNull(extension.elgamalPubkey));
    const sentence = 'Fees on encrypted transfers are withheld in encrypted form, too.';
    return { confidentialTransferFees: { authority, withdrawKey, sentence } };
  },
};
