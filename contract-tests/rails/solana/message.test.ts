import { createHash, randomBytes } from 'node:crypto';
import {
  AddressLookupTableAccount,
  Keypair,
  PublicKey,
  VersionedTransaction,
  type VersionedMessage,
} from '@solana/web3.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { keyOf, readAddress, toAddress } from '../../../src/rails/solana/address.js';
import { MessageFault, readTransaction, type SolanaTransaction } from '../../../src/rails/solana/message.js';
import { receiverAccount, TransactionChecker } from '../../../src/rails/solana/transaction.js';
import {
  craftPayment,
  DEVNET_USDC,
  lighthouseInstruction,
  memoInstruction,
  type Recipe,
} from '../../support/craft.js';

const MAX_BYTES = 1232;
const base58 = (key: string): string => new PublicKey(Buffer.from(key, 'latin1')).toBase58();
const list = (bytes: Iterable<number>): number[] => [...bytes];

/** What web3.js decodes from the bytes, if it encodes that to the same bytes again. */
function oracle(bytes: Buffer): VersionedTransaction | undefined {
  try {
    const transaction = VersionedTransaction.deserialize(bytes);
    if (transaction.version !== 0 && transaction.version !== 'legacy') return undefined;
    return bytes.equals(transaction.serialize()) ? transaction : undefined;
  } catch {
    return undefined;
  }
}

function ours(bytes: Buffer): SolanaTransaction | undefined {
  try {
    return readTransaction(bytes);
  } catch (error) {
    expect(error, 'what hostile bytes may throw').to.be.instanceOf(MessageFault);
    return undefined;
  }
}

function fieldsOf(transaction: SolanaTransaction): unknown {
  const { version, signatures, readonlySigners, readonlyOthers } = transaction;
  return {
    version,
    header: [signatures, readonlySigners, readonlyOthers],
    keys: transaction.keys.map(base58),
    blockhash: base58(transaction.blockhash),
    instructions: transaction.instructions.map(one => [one.program, list(one.accounts), list(one.data)]),
    lookups: transaction.lookups.map(one => [base58(one.table), list(one.writable), list(one.readonly)]),
    message: transaction.message.toString('hex'),
  };
}

function fieldsOfOracle({ version, message }: VersionedTransaction): unknown {
  const { numRequiredSignatures, numReadonlySignedAccounts, numReadonlyUnsignedAccounts } = message.header;
  return {
    version,
    header: [numRequiredSignatures, numReadonlySignedAccounts, numReadonlyUnsignedAccounts],
    keys: message.staticAccountKeys.map(key => key.toBase58()),
    blockhash: message.recentBlockhash,
    instructions: message.compiledInstructions.map(one => [
      one.programIdIndex,
      list(one.accountKeyIndexes),
      list(one.data),
    ]),
    lookups: message.addressTableLookups.map(one => [
      one.accountKey.toBase58(),
      list(one.writableIndexes),
      list(one.readonlyIndexes),
    ]),
    message: Buffer.from(message.serialize()).toString('hex'),
  };
}

/** Checks that both parsers read the same from the bytes, or both reject them. @returns whether they accept them */
function agree(bytes: Buffer): boolean {
  const theirs = oracle(bytes);
  const read = ours(bytes);
  if (Boolean(theirs) !== Boolean(read)) {
    expect.fail(`${read ? 'read by us alone' : 'refused by us alone'}: ${bytes.toString('base64')}`);
  }
  if (theirs && read) expect(fieldsOf(read)).to.deep.equal(fieldsOfOracle(theirs));
  return theirs !== undefined;
}

function table(): AddressLookupTableAccount {
  const addresses = [Keypair.generate().publicKey, keyOf(DEVNET_USDC)].map(key => new PublicKey(key));
  const state = {
    deactivationSlot: 2n ** 64n - 1n,
    lastExtendedSlot: 1,
    lastExtendedSlotStartIndex: 0,
    addresses,
  };
  return new AddressLookupTableAccount({ key: Keypair.generate().publicKey, state });
}

const SHAPES: [string, () => Recipe][] = [
  ['v0', () => ({})],
  ['legacy', () => ({ version: 'legacy' })],
  ['v0 with a lookup table', () => ({ lookupTables: [table()] })],
  ['v0 with data whose length takes two bytes', () => ({ memo: 'm'.repeat(130) })],
  ['legacy with data whose length takes two bytes', () => ({ version: 'legacy', memo: 'm'.repeat(130) })],
  [
    'v0 of seven instructions',
    () => ({ extra: [lighthouseInstruction(), memoInstruction('a'), memoInstruction('')] }),
  ],
  ['three signers', () => ({ cosigners: [Keypair.generate()] })],
];

type Mutation = { at: number; value: number; kind: string };
const MUTATION: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(MAX_BYTES),
  value: fc.integer({ min: 0, max: 255 }),
  kind: fc.constantFrom('bit', 'set', 'cut', 'insert', 'truncate', 'extend', 'lengthen', 'repeat'),
});

function mutate(bytes: Buffer, { at: place, value, kind }: Mutation): Buffer {
  // Most bytes are signatures and keys, which do not affect the layout, so every other mutation changes the bytes around them.
  const at = place % 2 === 0 ? place % bytes.length : Math.min(129 + (place % 8), bytes.length - 1);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at + 1)];
  const byte = bytes[at] ?? 0;
  if (kind === 'bit') return Buffer.concat([before, Buffer.of(byte ^ (1 << (value % 8))), after]);
  if (kind === 'set') return Buffer.concat([before, Buffer.of(value), after]);
  if (kind === 'cut') return Buffer.concat([before, after]);
  if (kind === 'insert') return Buffer.concat([before, Buffer.of(value, byte), after]);
  if (kind === 'truncate') return Buffer.from(before);
  if (kind === 'extend') return Buffer.concat([bytes, randomBytes(1 + (value % 40))]);
  if (kind === 'lengthen') return Buffer.concat([before, Buffer.of(byte | 0x80, value % 4), after]);
  return Buffer.concat([bytes, bytes]);
}

describe('message: a transaction is read exactly as web3.js reads it, and only in its canonical encoding', () => {
  for (const [name, recipe] of SHAPES) {
    it(`${name}: the fields are the same`, () => {
      for (let round = 0; round < 20; round++) expect(agree(craftPayment(recipe()).bytes)).to.equal(true);
    });

    it(`${name}: cut, flipped, stretched and continued anywhere`, () => {
      const { bytes } = craftPayment(recipe());
      for (let at = 0; at < bytes.length; at++) {
        agree(Buffer.from(bytes.subarray(0, at)));
        for (const kind of ['cut', 'lengthen']) agree(mutate(bytes, { at: at * 2, value: 0, kind }));
        for (const value of [0x7f, 0x80, 0x81, 0xff])
          agree(mutate(bytes, { at: at * 2, value, kind: 'set' }));
      }
    });
  }

  it('thousands of random mutations, several at a time', () => {
    const seeds = SHAPES.map(([, recipe]) => craftPayment(recipe()).bytes);
    let accepted = 0;
    let refused = 0;
    const input = fc.tuple(fc.constantFrom(...seeds), fc.array(MUTATION, { minLength: 1, maxLength: 4 }));
    fc.assert(
      fc.property(input, ([seed, mutations]) => {
        const mutant = mutations.reduce(
          (bytes, one) => (bytes.length > 0 ? mutate(bytes, one) : bytes),
          seed,
        );
        if (mutant.length > MAX_BYTES) return;
        if (agree(mutant)) accepted += 1;
        else refused += 1;
      }),
      { numRuns: 6_000 },
    );
    expect(accepted, 'else nothing was compared').to.be.greaterThan(200);
    expect(refused, 'else nothing was refused').to.be.greaterThan(200);
  });

  it('messages assembled at random, with indexes out of range and empty lists', () => {
    const bytes = (length: fc.Arbitrary<number>) =>
      length.chain(n => fc.uint8Array({ minLength: n, maxLength: n }));
    const short = fc.oneof(fc.nat(3), fc.constantFrom(0, 1, 127, 128, 129, 200));
    const counted = bytes(short).map(data => Buffer.concat([compact(data.length), data]));
    const items = (item: fc.Arbitrary<Buffer>) =>
      fc.array(item, { maxLength: 4 }).map(all => Buffer.concat([compact(all.length), ...all]));
    const key = bytes(fc.constant(32)).map(data => Buffer.from(data));
    const one = fc.nat(255).map(byte => Buffer.of(byte));
    const instruction = fc.tuple(one, counted, counted).map(parts => Buffer.concat(parts));
    const lookup = fc.tuple(key, counted, counted).map(parts => Buffer.concat(parts));
    const input = fc.record({
      signers: fc.nat(3),
      slots: fc.option(fc.nat(3), { freq: 4 }),
      legacy: fc.boolean(),
      body: fc.tuple(one, one, items(key), key, items(instruction)).map(parts => Buffer.concat(parts)),
      lookups: items(lookup),
    });
    let accepted = 0;
    fc.assert(
      fc.property(input, ({ signers, slots, legacy, body, lookups }) => {
        const count = slots ?? signers;
        const head = [Buffer.of(count), randomBytes(64 * count), Buffer.from(legacy ? [] : [0x80])];
        const whole = Buffer.concat([...head, Buffer.of(signers), body, ...(legacy ? [] : [lookups])]);
        // Larger transactions are refused before they are read, and web3.js can't hold them.
        if (whole.length <= MAX_BYTES && agree(whole)) accepted += 1;
      }),
      { numRuns: 2_000 },
    );
    expect(accepted).to.be.greaterThan(500);
  });

  it('random bytes', () => {
    const head = fc.constantFrom(
      [],
      [0],
      [1],
      [2],
      [0x80],
      [0x81, 0],
      [0x82, 0],
      [0x80, 0x80, 4],
      [255, 255, 255, 7],
    );
    const input = fc.tuple(head, fc.uint8Array({ maxLength: 400 }));
    fc.assert(
      fc.property(input, ([first, rest]) => void agree(Buffer.from([...first, ...rest]))),
      { numRuns: 2_000 },
    );
  });
});

/** A compact-u16 of up to two bytes. */
function compact(length: number): Buffer {
  return length < 0x80 ? Buffer.of(length) : Buffer.of((length & 0x7f) | 0x80, length >> 7);
}

describe('message: what the checker reads from it', () => {
  const payer = Keypair.generate();
  const payTo = Keypair.generate().publicKey.toBase58();
  const expected = { asset: DEVNET_USDC, payTo, amount: 10_000n };
  const checker = new TransactionChecker();
  const check = (recipe: Recipe) =>
    checker.check(craftPayment({ payer, payTo, ...recipe }).transaction, expected);

  it('identifies a payment by the sha256 of the bytes that web3.js would have signed', async () => {
    for (const version of [0, 'legacy'] as const) {
      for (let round = 0; round < 50; round++) {
        const { transaction, bytes } = craftPayment({ payer, payTo, version });
        const message = VersionedTransaction.deserialize(bytes).message.serialize();
        const result = await checker.check(transaction, expected);
        expect(result.ok && result.checked.id).to.equal(createHash('sha256').update(message).digest('hex'));
      }
    }
  });

  it('accepts no second encoding of a message', async () => {
    for (const version of [0, 'legacy'] as const) {
      const { bytes } = craftPayment({ payer, payTo, version });
      for (let at = 0; at < bytes.length; at++) {
        const longer = mutate(bytes, { at: at * 2, value: 0, kind: 'lengthen' });
        // The fee payer's signature may be any 64 bytes, but not more.
        expect((await checker.check(longer.toString('base64'), expected)).ok, `byte ${at}`).to.equal(false);
      }
      for (const tail of [[0], [0x80], [0, 0], [0x80, 0]]) {
        const longer = Buffer.concat([bytes, Buffer.from(tail)]);
        expect((await checker.check(longer.toString('base64'), expected)).ok).to.equal(false);
      }
    }
  });

  it('accepts a legacy transaction up to the same size', async () => {
    for (const version of [0, 'legacy'] as const)
      expect(await check({ version, memo: 'm'.repeat(600) })).to.have.property('ok', true);
  });

  const INSANE: [string, (message: VersionedMessage) => void][] = [
    ['an account that does not exist', message => bend(message, 3, one => one.accountKeyIndexes.push(40))],
    [
      'the first account that does not exist',
      message => bend(message, 3, one => one.accountKeyIndexes.push(message.staticAccountKeys.length)),
    ],
    ['more read-only accounts than there are', message => (message.header.numReadonlyUnsignedAccounts = 200)],
    ['no signer that may write', message => (message.header.numReadonlySignedAccounts = 2)],
  ];
  for (const [name, spoil] of INSANE) {
    it(`refuses ${name}, although correctly signed`, async () => {
      const result = await check({ message: spoil });
      expect(result)
        .to.have.property('error')
        .match(/refers to accounts that it does not list/);
    });
  }

  it('refuses a program that does not exist, or is the fee payer', async () => {
    for (const program of [0, 40]) {
      const result = await check({
        message: message => bend(message, 3, one => (one.programIdIndex = program)),
      });
      expect(result)
        .to.have.property('error')
        .match(/is not accepted; only Memo and Lighthouse/);
    }
    const asMemo = await check({ feePayer: 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr' });
    expect(asMemo)
      .to.have.property('error')
      .match(/fee payer must not appear in any instruction/);
  });
});

type Compiled = { programIdIndex: number; accountKeyIndexes: number[] };

function bend(message: VersionedMessage, index: number, change: (instruction: Compiled) => unknown): void {
  const instruction = message.compiledInstructions[index];
  if (!instruction) throw new Error('the message has fewer instructions');
  change(instruction);
}

describe('address: base58 and derived addresses as in web3.js', () => {
  it('writes and reads any 32 bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.nat(32), (bytes, zeros) => {
        const key = Buffer.from(bytes).fill(0, 0, zeros);
        const address = toAddress(key);
        expect(address).to.equal(new PublicKey(key).toBase58());
        expect(readAddress(address)?.equals(key)).to.equal(true);
      }),
      { numRuns: 500 },
    );
  });

  it('accepts a string if and only if web3.js does', () => {
    const address = Keypair.generate().publicKey.toBase58();
    const texts = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc
        .array(fc.constantFrom(...'123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0OIl'), {
          minLength: 30,
          maxLength: 46,
        })
        .map(all => all.join('')),
      fc.constantFrom(
        '',
        '1'.repeat(32),
        '1'.repeat(33),
        '1'.repeat(44),
        'z'.repeat(44),
        ` ${address}`,
        `${address} `,
        `1${address}`,
        address.slice(1),
        address.toLowerCase(),
      ),
    );
    fc.assert(
      fc.property(texts, text => {
        expect(readAddress(text)?.toString('hex')).to.equal(web3Key(text));
      }),
      { numRuns: 1_000 },
    );
  });

  it('derives the receiver’s token account for many receivers', () => {
    const token = new PublicKey('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
    const program = new PublicKey('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL');
    for (let round = 0; round < 300; round++) {
      const [asset, payTo] = [new PublicKey(randomBytes(32)), new PublicKey(randomBytes(32))];
      const seeds = [payTo.toBuffer(), token.toBuffer(), asset.toBuffer()];
      const [account] = PublicKey.findProgramAddressSync(seeds, program);
      const ours = receiverAccount({ asset: asset.toBase58(), payTo: payTo.toBase58() });
      expect(ours).to.equal(account.toBase58());
    }
  });
});

function web3Key(text: string): string | undefined {
  try {
    return new PublicKey(text).toBuffer().toString('hex');
  } catch {
    return undefined;
  }
}
