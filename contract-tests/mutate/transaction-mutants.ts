import type { Mutant } from './mutants.js';

type Change = Pick<Mutant, 'name' | 'find' | 'replace' | 'grep'> & { file?: string };

/** `src/rails/solana/transaction.ts`: the checks of a payment's transaction. */
const CHANGES: readonly Change[] = [
  {
    name: 'a payment may be below the price',
    find: 'if (amount !== expected.amount)',
    replace: 'if (amount > expected.amount)',
    grep: 'pays one unit too little',
  },
  {
    name: 'a payment may be above the price',
    find: 'if (amount !== expected.amount)',
    replace: 'if (amount < expected.amount)',
    grep: 'pays one unit too much',
  },
  {
    name: 'any mint is accepted',
    find: 'if (mint !== ours.mint)',
    replace: 'if (false)',
    grep: 'pays in another mint',
  },
  {
    name: 'any receiver is accepted',
    find: 'if (destination !== ours.destination)',
    replace: 'if (false)',
    grep: 'pays somebody else',
  },
  {
    name: 'the fee payer may be a program’s account',
    file: 'src/rails/solana/fee-limits.js',
    find: 'program === 0 || accounts.includes(0)',
    replace: 'program === 0',
    grep: 'has the fee payer sign a memo',
  },
  {
    name: 'any instruction may follow',
    find: 'keys[program] !== MEMO && keys[program] !== LIGHTHOUSE',
    replace: 'false',
    grep: 'transfers a second time',
  },
  {
    name: 'the fee payer’s signature stays in what is passed on',
    find: 'bytes.fill(0, 1, 1 + SIGNATURE_BYTES);',
    replace: ';',
    grep: 'does not depend on the fee payer’s signature',
  },
  {
    name: 'the payer need not sign',
    find: 'if (!(await verifyInThread(null, message, publicKeyOf(signer), signature)))',
    replace: 'if (false)',
    grep: 'is not signed by the payer',
  },
  {
    name: 'the second signer need not own the money',
    find: 'if (authority !== keys[signatures - 1])',
    replace: 'if (false)',
    grep: 'is signed by somebody else than the owner of the money',
  },
  {
    name: 'other spellings of the same base64 are read',
    find: "bytes.length === 0 || bytes.toString('base64') !== base64",
    replace: 'bytes.length === 0',
    grep: 'has spaces in its base64',
  },
];

const FILE = 'src/rails/solana/transaction.js';

export const transactionMutants: readonly Mutant[] = [
  ...CHANGES.map(change => ({ file: FILE, ...change, test: 'rails/solana/transaction*' })),
  {
    name: 'the owner of a smart wallet is not told why it cannot pay',
    file: FILE,
    find: 'if (ofSmartWallet !== undefined)',
    replace: 'if (false)',
    test: 'rails/solana/smart-wallets',
    grep: 'is refused with the reason and what its owner can do',
  },
];
