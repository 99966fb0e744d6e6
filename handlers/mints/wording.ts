import type { MintFacts } from './mint.js';

/** The mints of wrapped SOL, one for each token program. Their supply stays 0, however much SOL is wrapped. */
const WRAPPED_SOL = [
  'So11111111111111111111111111111111111111112',
  '9pan9bMn5HatX4EJdBwg9VgCa7Uz5HL8N1m5D3NdXejP',
];

/** `690` basis points are `6.9%`. */
export const percent = (basisPoints: number): string => `${basisPoints / 100}%`;

/** A decimal amount without its trailing zeros: `5.000000` is `5`. */
export function trimZeros(amount: string): string {
  if (!amount.includes('.')) return amount;
  let end = amount.length;
  while (amount[end - 1] === '0') end--;
  return amount.slice(0, amount[end - 1] === '.' ? end - 1 : end);
}

/** `X can …` or, if the authority was removed, which is permanent, `Nobody can …, now or later`. */
export const whoCan = (authority: string | null, what: string): string =>
  authority === null ? `Nobody can ${what}, now or later.` : `${authority} can ${what}.`;

function mintingSentence({ mint, mintAuthority }: MintFacts): string {
  if (WRAPPED_SOL.includes(mint)) {
    return 'These tokens are wrapped SOL: anyone can create them by wrapping SOL, and the supply of the mint does not count them.';
  }
  return mintAuthority === null
    ? 'No more tokens can be minted: the mint has no mint authority, and none can be appointed.'
    : `${mintAuthority} can mint more tokens, without limit.`;
}

function freezingSentence({ freezeAuthority }: MintFacts): string {
  return freezeAuthority === null
    ? 'Nobody can freeze individual token accounts: the mint has no freeze authority, and none can be appointed.'
    : `${freezeAuthority} can freeze any token account, which then neither sends nor receives tokens.`;
}

/** What the two authorities of a mint can do, or that they have not been chosen yet. */
export function authoritySentences(facts: MintFacts): string[] {
  if (!facts.initialized) {
    return [
      'This account has room for a mint but has not been initialised: it is not a token yet, and no tokens exist.',
      'Whoever initialises it chooses its decimals and its authorities; null authorities do not mean that nobody will be able to mint or freeze.',
    ];
  }
  return [mintingSentence(facts), freezingSentence(facts)];
}
