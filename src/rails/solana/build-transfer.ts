import { keyOf } from './address.js';
import { COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM, TOKEN_PROGRAM } from './networks.js';
import { USDC } from '../../price/amount.js';

/**
 * A transfer of USDC between two token accounts. `owner` has the key of `source`; `reference` is an address that only this transfer
 * names. Amount in atomic units.
 */
export type Transfer = {
  feePayer: string;
  owner: string;
  source: string;
  destination: string;
  mint: string;
  amount: bigint;
  memo: string;
  reference: string;
  blockhash: string;
};

/**
 * The limit in compute units, of which a transfer and a memo use about 30 000, and the price in microlamports per unit. Together they
 * cost 1 200 lamports.
 */
const UNITS = 60_000;
const PRICE = 20_000n;
const SIGNATURE_BYTES = 64;

type Account = { key: string; signer: boolean; writable: boolean };
type Call = { program: string; accounts: string[]; data: Buffer };

/**
 * Encodes a transfer like a payment (compute unit limit, compute unit price, TransferChecked), followed by a memo. The result is a legacy
 * transaction (https://solana.com/docs/core/transactions) in base64 with empty signatures.
 */
export function buildTransfer(transfer: Transfer): string {
  const accounts = accountsOf(transfer);
  const calls = callsOf(transfer);
  const indexOf = (key: string): number => accounts.findIndex(account => account.key === key);
  const signers = accounts.filter(({ signer }) => signer).length;
  const count = (signer: boolean): number =>
    accounts.filter(account => account.signer === signer && !account.writable).length;
  const message = Buffer.concat([
    Buffer.of(signers, count(true), count(false), accounts.length),
    ...accounts.map(({ key }) => keyOf(key)),
    keyOf(transfer.blockhash),
    Buffer.of(calls.length),
    ...calls.map(({ program, accounts: named, data }) =>
      Buffer.concat([Buffer.of(indexOf(program), named.length, ...named.map(indexOf), data.length), data]),
    ),
  ]);
  const unsigned = Buffer.alloc(1 + signers * SIGNATURE_BYTES);
  unsigned[0] = signers;
  return Buffer.concat([unsigned, message]).toString('base64');
}

/** Signers come first and, within each group, writable accounts. The owner may pay the fee, too. */
function accountsOf({ feePayer, owner, source, destination, mint, reference }: Transfer): Account[] {
  const own = owner === feePayer ? [] : [{ key: owner, signer: true, writable: false }];
  const read = [mint, reference, TOKEN_PROGRAM, COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM];
  return [
    { key: feePayer, signer: true, writable: true },
    ...own,
    ...[source, destination].map(key => ({ key, signer: false, writable: true })),
    ...read.map(key => ({ key, signer: false, writable: false })),
  ];
}

function callsOf({ owner, source, destination, mint, reference, amount, memo }: Transfer): Call[] {
  const limit = Buffer.alloc(5);
  limit[0] = 2;
  limit.writeUInt32LE(UNITS, 1);
  const price = Buffer.alloc(9);
  price[0] = 3;
  price.writeBigUInt64LE(PRICE, 1);
  const move = Buffer.alloc(10);
  move[0] = 12;
  move.writeBigUInt64LE(amount, 1);
  move[9] = USDC.decimals;
  return [
    { program: COMPUTE_BUDGET_PROGRAM, accounts: [], data: limit },
    { program: COMPUTE_BUDGET_PROGRAM, accounts: [], data: price },
    { program: TOKEN_PROGRAM, accounts: [source, mint, destination, owner, reference], data: move },
    { program: MEMO_PROGRAM, accounts: [], data: Buffer.from(memo) },
  ];
}
