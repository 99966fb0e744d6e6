import { TOKEN_2022_PROGRAM_ID } from '@solana/spl-token';
import { Keypair, PublicKey, SystemProgram } from '@solana/web3.js';
import { receiverAccount } from '../../src/rails/solana/transaction.js';
import { bentTransfer, budget, longLength, memo, replaced, stranger, tableOf } from './bent-transactions.js';
import {
  craftPayment,
  craftVersion1,
  lighthouseInstruction,
  memoInstruction,
  openAccountInstruction,
  type Recipe,
} from './craft.js';

export type GoodPayment = Recipe & Required<Pick<Recipe, 'payer' | 'feePayer' | 'payTo' | 'asset'>>;

/**
 * Each row has what is wrong with a payment, the message of our check, and the transaction (base64). `good` is the valid payment
 * that each row changes; its fee payer, receiver and payer must be given.
 */
export function wrongTransactions(good: GoodPayment): [string, RegExp, () => string][] {
  const craft = (bend: Recipe = {}): string => craftPayment({ ...good, ...bend }).transaction;
  const payer = good.payer.publicKey;
  const feePayer = new PublicKey(good.feePayer);
  const receiver = new PublicKey(receiverAccount({ asset: good.asset, payTo: good.payTo }));
  return [
    [
      'pays one unit too little',
      /pays 0.009999 USDC, must be exactly 0.01 USDC/,
      () => craft({ amount: 9_999n }),
    ],
    [
      'pays one unit too much',
      /pays 0.010001 USDC, must be exactly 0.01 USDC/,
      () => craft({ amount: 10_001n }),
    ],
    ['pays nothing', /pays 0.00 USDC, must be exactly/, () => craft({ amount: 0n })],
    ['pays the price modulo 2^32', /must be exactly/, () => craft({ amount: 2n ** 32n + 10_000n })],
    ['pays in another mint', /mint .* instead of USDC/, () => craft({ asset: stranger().toBase58() })],
    ['claims other decimals', /decimals are 5, but must be 6/, () => craft({ decimals: 5 })],
    [
      'pays somebody else',
      /pays to token account .* instead of/,
      () => craft({ payTo: stranger().toBase58() }),
    ],
    [
      'pays to the wallet instead of its token account',
      /pays to token account/,
      () => craft({ destination: new PublicKey(good.payTo) }),
    ],
    [
      'moves the money in a circle',
      /source and destination are the same account/,
      () => craft({ source: receiver }),
    ],
    [
      'uses Token-2022',
      /third instruction must be TransferChecked of the Token program/,
      () => craft({ tokenProgram: TOKEN_2022_PROGRAM_ID }),
    ],
    [
      'uses plain Transfer',
      /third instruction must be TransferChecked/,
      () => craft(bentTransfer(transfer => (transfer.data[0] = 3))),
    ],
    [
      'carries a byte too many in the transfer',
      /third instruction must be TransferChecked/,
      () => craft(bentTransfer(transfer => (transfer.data = Buffer.concat([transfer.data, Buffer.of(0)])))),
    ],
    [
      'carries a cut transfer',
      /third instruction must be TransferChecked/,
      () => craft(bentTransfer(transfer => (transfer.data = transfer.data.subarray(0, 9)))),
    ],
    [
      'names five transfer accounts, as a multisig does',
      /single authority|3 signatures/,
      () =>
        craft(
          bentTransfer(transfer =>
            transfer.keys.push({ pubkey: stranger(), isSigner: false, isWritable: false }),
          ),
        ),
    ],
    [
      'names three transfer accounts',
      /single authority/,
      () =>
        craft({
          instructions: usual => {
            usual[2]?.keys.pop();
            return [...usual, memoInstruction('signed', [payer])];
          },
        }),
    ],
    [
      'needs three signers',
      /needs 3 signatures instead of 2/,
      () => craft({ cosigners: [Keypair.generate()] }),
    ],
    [
      'needs one signer: the fee payer pays for itself',
      /needs 1 signatures instead of 2/,
      () => craft({ feePayer: payer.toBase58() }),
    ],
    [
      'moves the money of the fee payer',
      /fee payer must not appear in any instruction/,
      () =>
        craft({
          authority: feePayer,
          extra: [memoInstruction('signed', [payer])],
        }),
    ],
    [
      'has the fee payer sign a memo',
      /fee payer must not appear in any instruction/,
      () => craft({ memo: null, extra: [memoInstruction('mine', [feePayer])] }),
    ],
    [
      'drains the fee payer beside the transfer',
      /program 11111111111111111111111111111111 is not accepted/,
      () =>
        craft({
          extra: [
            SystemProgram.transfer({
              fromPubkey: feePayer,
              toPubkey: payer,
              lamports: 1,
            }),
          ],
        }),
    ],
    [
      'opens a token account at the cost of the fee payer',
      /is not accepted; only Memo and Lighthouse/,
      () => craft({ extra: [openAccountInstruction(feePayer, stranger())] }),
    ],
    [
      'transfers a second time',
      /is not accepted; only Memo and Lighthouse/,
      () => craft({ instructions: usual => [...usual.slice(0, 3), ...usual.slice(2, 3)] }),
    ],
    [
      'moves the money of somebody who did not sign',
      /your signature is missing/,
      () =>
        craft({
          authority: stranger(),
          extra: [memoInstruction('signed', [payer])],
          message: message => {
            message.header.numRequiredSignatures = 2;
          },
        }),
    ],
    [
      'is signed by somebody else than the owner of the money',
      /second signer must be the owner of the money/,
      () =>
        craft({
          memo: null,
          extra: [memoInstruction('signed', [payer])],
          ...bentTransfer(
            transfer => (transfer.keys[3] = { pubkey: stranger(), isSigner: false, isWritable: false }),
          ),
        }),
    ],
    [
      'lacks the compute limit',
      /first instruction must set the compute unit limit/,
      () => craft(replaced(0, memo())),
    ],
    [
      'lacks the compute price',
      /second instruction must set the compute unit price/,
      () => craft(replaced(1, memo())),
    ],
    [
      'swaps limit and price',
      /first instruction must set the compute unit limit/,
      () =>
        craft({
          instructions: ([limit, price, ...rest]) => [price, limit, ...rest].filter(one => one !== undefined),
        }),
    ],
    [
      'puts the memo before the transfer',
      /instruction of program Token.* is not accepted/,
      () => craft({ instructions: ([a, b, c, d]) => [a, b, d, c].filter(one => one !== undefined) }),
    ],
    ['has a compute limit of four bytes', /first instruction/, () => craft(replaced(0, budget(2, 4)))],
    ['has a compute limit of nine bytes', /first instruction/, () => craft(replaced(0, budget(2, 9)))],
    ['has a compute price of five bytes', /second instruction/, () => craft(replaced(1, budget(3, 5)))],
    ['asks for a heap frame instead of a limit', /first instruction/, () => craft(replaced(0, budget(1, 5)))],
    [
      'sets a limit that no transfer needs',
      /limit is too high: 200001, at most 200000/,
      () => craft({ computeLimit: 200_001 }),
    ],
    [
      'sets a price of more than 5 lamports',
      /price is too high/,
      () => craft({ computeLimit: 1_000, computePrice: 5_000_001n }),
    ],
    [
      'costs the fee payer a lamport more than 20 000 for its priority',
      /price is too high.*fee of 20001 lamports, at most 20000/,
      () => craft({ computeLimit: 200_000, computePrice: 100_001n }),
    ],
    ['sets the highest price there is', /price is too high/, () => craft({ computePrice: 2n ** 64n - 1n })],
    [
      'has two instructions',
      /has 2 instructions; it must have 3 to 7/,
      () => craft({ instructions: usual => usual.slice(1, 3) }),
    ],
    [
      'has eight instructions',
      /has 8 instructions/,
      () => craft({ extra: [memo(), memo(), memo(), memo()] }),
    ],
    [
      'uses a lookup table',
      /lookup tables are not accepted/,
      () => craft({ lookupTables: [tableOf(receiver)] }),
    ],
    [
      'names an account twice',
      /names an account twice/,
      () =>
        craft({
          message: message => {
            const last = message.staticAccountKeys.length - 1;
            message.staticAccountKeys[last] = message.staticAccountKeys[0] ?? stranger();
          },
        }),
    ],
    [
      'is not signed by the payer',
      /your signature is missing or does not match/,
      () => craft({ signature: 'none' }),
    ],
    [
      'is signed over other bytes',
      /your signature is missing or does not match/,
      () => craft({ signature: 'wrong' }),
    ],
    [
      'is signed by a stranger',
      /your signature is missing or does not match/,
      () => craft({ signature: 'stranger' }),
    ],
    [
      'was changed after signing',
      /signature is missing|must be exactly|cannot be decoded/,
      () =>
        craft({
          bytes: bytes => {
            bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) ^ 1;
            return bytes;
          },
          version: 'legacy',
          memo: 'a memo that is changed',
        }),
    ],
    [
      'has its payer’s signature in the fee payer’s slot',
      /your signature is missing/,
      () =>
        craft({
          bytes: bytes =>
            Buffer.concat([
              bytes.subarray(0, 1),
              bytes.subarray(65, 129),
              Buffer.alloc(64),
              bytes.subarray(129),
            ]),
        }),
    ],
    [
      'is followed by a byte',
      /not in canonical encoding|cannot be decoded/,
      () => craft({ bytes: bytes => Buffer.concat([bytes, Buffer.of(0)]) }),
    ],
    [
      'is followed by a byte (legacy)',
      /not in canonical encoding|cannot be decoded/,
      () => craft({ version: 'legacy', bytes: bytes => Buffer.concat([bytes, Buffer.of(0)]) }),
    ],
    [
      'writes the number of signatures in two bytes',
      /not in canonical encoding/,
      () => craft({ bytes: longLength(0) }),
    ],
    [
      'writes the number of accounts in two bytes',
      /not in canonical encoding/,
      () => craft({ bytes: longLength(133) }),
    ],
    [
      'writes the number of accounts in two bytes (legacy)',
      /not in canonical encoding/,
      () => craft({ version: 'legacy', bytes: longLength(132) }),
    ],
    [
      'is cut in half',
      /cannot be decoded/,
      () => craft({ bytes: bytes => bytes.subarray(0, bytes.length / 2) }),
    ],
    ['is of version 1', /must be of version 0 or legacy/, () => craftVersion1(good)],
    [
      'carries a message of version 1 in an envelope of version 0',
      /version 0 or legacy|cannot be decoded/,
      () => {
        const bytes = Buffer.from(craftVersion1(good), 'base64');
        const message = bytes.subarray(0, bytes.length - 128);
        return Buffer.concat([Buffer.of(2), Buffer.alloc(128), message]).toString('base64');
      },
    ],
    ['is larger than a packet', /larger than 1232 bytes/, () => Buffer.alloc(1233, 1).toString('base64')],
    ['is empty', /not base64/, () => ''],
    ['is not base64', /not base64/, () => 'not base64!'],
    [
      'is base64url',
      /not base64/,
      () => {
        for (;;) {
          const transaction = craft();
          if (/[+/]/.test(transaction)) return transaction.replaceAll('+', '-').replaceAll('/', '_');
        }
      },
    ],
    ['has spaces in its base64', /not base64/, () => `${craft().slice(0, 8)} ${craft().slice(8)}`],
  ];
}

/** Valid payments, and how they differ from the usual one. */
export function rightPayments(payer: Keypair): [string, Recipe][] {
  return [
    ['v0', {}],
    ['legacy', { version: 'legacy' }],
    ['without a memo: three instructions', { memo: null }],
    ['legacy without a memo', { memo: null, version: 'legacy' }],
    ['with Lighthouse', { memo: null, extra: [lighthouseInstruction()] }],
    ['with memo and Lighthouse', { extra: [lighthouseInstruction()] }],
    [
      'with a memo that the payer signs',
      { memo: null, extra: [memoInstruction('signed', [payer.publicKey])] },
    ],
    ['five instructions', { extra: [memo()] }],
    ['six instructions', { extra: [memo(), lighthouseInstruction()] }],
    ['seven instructions', { extra: [lighthouseInstruction(), lighthouseInstruction(), memo()] }],
    ['the highest compute limit, at the highest price', { computeLimit: 200_000, computePrice: 100_000n }],
    ['a high price for few units', { computeLimit: 4_000, computePrice: 5_000_000n }],
    ['from a token account that is not the associated one', { source: stranger() }],
  ];
}
