import { createHash, createPrivateKey } from 'node:crypto';
import { Keypair } from '@solana/web3.js';

/** The addresses and keys of a benchmark. All keys are derived from a word, so that payments signed for one run can be used in the next. */

export const NETWORK = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
export const GENESIS_HASH = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
export const USDC = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU';
/**
 * Few enough for a new server to accept one payment from each payer concurrently. Enough for equal calls from one payer, which wait for each
 * other, to be rare.
 */
export const PAYERS = 384;
/** In atomic units. All operations bought here cost 0.01 USDC, except speech and orders. */
export const PRICE = 10_000n;
export const ORDER_PRICE = 500_000n;
export const SPEECH_PRICE = 25_000n;

/** @param {string} word @returns {Buffer} 32 bytes */
function seedOf(word) {
  return createHash('sha256').update(`coinslot bench: ${word}`).digest();
}

/** @param {string} word @returns {Keypair} */
export function keyOf(word) {
  return Keypair.fromSeed(seedOf(word));
}

/** @param {string} word @returns {string} base58 */
export function addressOf(word) {
  return keyOf(word).publicKey.toBase58();
}

const PKCS8_OF_SEED = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A payer's private key, in the form that node:crypto uses for signing. @param {string} word */
export function signingKeyOf(word) {
  return createPrivateKey({
    key: Buffer.concat([PKCS8_OF_SEED, seedOf(word)]),
    format: 'der',
    type: 'pkcs8',
  });
}

export const PAY_TO = addressOf('seller');
export const FEE_PAYER = addressOf('fee payer');
export const MINT = addressOf('a token');
