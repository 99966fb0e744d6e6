import { cleanName, cleanSymbol, cleanText, cleanUri } from './clean-text.js';
import { addressOrNull, type Describers } from './describer.js';
import { percent, whoCan } from './wording.js';

const MAX_FIELDS = 20;
const MAX_KEY = 64;
const MAX_VALUE = 256;
/** The maximum number of milliseconds since 1970 that a `Date` can hold. */
const MAX_TIME = 8.64e15;

/** Seconds since 1970 in ISO 8601; null if that is beyond the calendar. */
function isoTime(seconds: bigint): string | null {
  const ms = Number(seconds) * 1_000;
  return Math.abs(ms) > MAX_TIME ? null : new Date(ms).toISOString();
}

function multiplierOf(value: number): number {
  if (!Number.isFinite(value) || value < 0)
    throw new RangeError('a multiplier that the program would not store');
  return value;
}

function pointerSentence(
  what: string,
  authority: string | null,
  address: string | null,
  mint: string,
): string {
  const where =
    address === null
      ? `The mint names no ${what}.`
      : address === mint
        ? `The ${what} is stored in the mint itself.`
        : `The ${what} is in the account ${address}, which was not read.`;
  return `${where} ${whoCan(authority, 'point to another account')}`;
}

/** Extensions that change what wallets show: amounts, names, groups. */
export const display: Describers = {
  InterestBearingConfig: extension => {
    const authority = addressOrNull(extension.rateAuthority);
    const basisPoints = extension.currentRate;
    const sentence = `Wallets show balances with interest of ${percent(basisPoints)} a year added; this creates no tokens, and the amounts on chain stay the same. ${whoCan(authority, 'change the rate')}`;
    return {
      interestBearing: {
        authority,
        basisPoints,
        averageBasisPoints: extension.preUpdateAverageRate,
        since: isoTime(extension.initializationTimestamp),
        changed: isoTime(extension.lastUpdateTimestamp),
        sentence,
      },
    };
  },

  ScaledUiAmountConfig: extension => {
    const authority = addressOrNull(extension.authority);
    const multiplier = multiplierOf(extension.multiplier);
    const newMultiplier = multiplierOf(extension.newMultiplier);
    const newMultiplierFrom = isoTime(extension.newMultiplierEffectiveTimestamp);
    const factor =
      multiplier === newMultiplier
        ? `${multiplier}`
        : `${multiplier}, and by ${newMultiplier} ${newMultiplierFrom === null ? 'at no time within the calendar' : `from ${newMultiplierFrom} on`}`;
    const sentence = `Wallets show amounts multiplied by ${factor}; the amounts on chain and the supply given here are not multiplied. ${whoCan(authority, 'change the multiplier')}`;
    return {
      scaledUiAmount: { authority, multiplier, newMultiplier, newMultiplierFrom, sentence },
    };
  },

  MetadataPointer: (extension, { mint }) => {
    const authority = addressOrNull(extension.authority);
    const address = addressOrNull(extension.metadataAddress);
    const sentence = pointerSentence('metadata', authority, address, mint);
    return { metadataPointer: { authority, address, sentence } };
  },

  TokenMetadata: extension => {
    const authority = addressOrNull(extension.updateAuthority);
    const name = cleanName(extension.name) ?? null;
    const symbol = cleanSymbol(extension.symbol) ?? null;
    const fields = [...extension.additionalMetadata].slice(0, MAX_FIELDS).flatMap(([key, value]) => {
      const cleaned = cleanText(key, MAX_KEY);
      return cleaned === undefined ? [] : [{ key: cleaned, value: cleanText(value, MAX_VALUE) ?? '' }];
    });
    const uri = cleanUri(extension.uri);
    const called =
      name === null ? 'Its issuer gave it no name' : `Its issuer calls it “${name.replace(/[“”]/g, "'")}”`;
    const sentence = `${called}${symbol === null ? '' : ` (${symbol})`}; anyone can choose the same name. ${whoCan(authority, 'change the name')}`;
    return { metadata: { authority, name, symbol, uri, fields, sentence } };
  },

  GroupPointer: (extension, { mint }) => {
    const authority = addressOrNull(extension.authority);
    const address = addressOrNull(extension.groupAddress);
    const sentence = pointerSentence('group', authority, address, mint);
    return { groupPointer: { authority, address, sentence } };
  },

  TokenGroup: extension => {
    const authority = addressOrNull(extension.updateAuthority);
    const size = String(extension.size);
    const maxSize = String(extension.maxSize);
    const sentence = `The mint defines a group of mints with ${size} members, at most ${maxSize}. ${whoCan(authority, 'add members')}`;
    return { group: { authority, size, maxSize, sentence } };
  },

  GroupMemberPointer: (extension, { mint }) => {
    const authority = addressOrNull(extension.authority);
    const address = addressOrNull(extension.memberAddress);
    const sentence = pointerSentence('group membership', authority, address, mint);
    return { groupMemberPointer: { authority, address, sentence } };
  },

  TokenGroupMember: extension => {
    const group = String(extension.group);
    const number = String(extension.memberNumber);
    const sentence = `The mint is member ${number} of the group ${group}.`;
    return { groupMember: { group, number, sentence } };
  },
};
