import {
  SystemInstruction,
  SystemProgram,
  TransactionInstruction,
  VersionedTransaction,
} from '@solana/web3.js';
import { fromBase58, toBase58 } from './base58.js';
import type { Chain, Landed } from './chain.js';
import { RpcFault } from './rpc-fault.js';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../rails/solana/networks.js';
import { parseTokenData, uiAmount } from './tokens.js';
import type { Account } from './vm.js';

export type AccountEncoding = 'base58' | 'base64' | 'base64+zstd' | 'jsonParsed' | 'binary';
export type DataSlice = { offset: number; length: number };

const MAX_BASE58_BYTES = 128;

/**
 * An account as RPC nodes write it. As in a node, data that jsonParsed can't decode is sent as base64. Data requested as `base64+zstd` is
 * also sent as base64, because clients decode by the label next to the data.
 */
export function encodeAccount(
  chain: Chain,
  account: Account | null,
  encoding: AccountEncoding,
  slice?: DataSlice,
): object | null {
  if (!account) return null;
  const { lamports, owner, executable } = account;
  const space = account.data.length;
  return {
    data: encodeData(chain, account, encoding, slice),
    executable,
    lamports: Number(lamports),
    owner,
    rentEpoch: 0,
    space,
  };
}

function encodeData(chain: Chain, account: Account, encoding: AccountEncoding, slice?: DataSlice): unknown {
  if (encoding === 'jsonParsed' && [TOKEN_PROGRAM, TOKEN_2022_PROGRAM].includes(account.owner)) {
    const parsed = parseTokenData(account, mint => chain.decimalsOf(mint));
    if (parsed) return parsed;
  }
  const data = slice ? account.data.subarray(slice.offset, slice.offset + slice.length) : account.data;
  if (encoding === 'base58' || encoding === 'binary') {
    if (data.length > MAX_BASE58_BYTES) {
      throw new RpcFault(
        -32600,
        'Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.',
      );
    }
    return encoding === 'binary' ? toBase58(data) : [toBase58(data), 'base58'];
  }
  return [Buffer.from(data).toString('base64'), 'base64'];
}

/** The `transaction` member of getTransaction's answer. */
export function encodeTransaction(landed: Landed, encoding: string): unknown {
  const wire = Buffer.from(landed.wire, 'base64');
  if (encoding === 'base64') return [landed.wire, 'base64'];
  if (encoding === 'base58') return [toBase58(wire), 'base58'];
  if (encoding === 'binary') return toBase58(wire);
  const { message, signatures } = VersionedTransaction.deserialize(wire);
  const parsed = encoding === 'jsonParsed';
  const lookups =
    message.version === 'legacy' ? {} : { addressTableLookups: message.addressTableLookups.map(toLookup) };
  return {
    signatures: signatures.map(toBase58),
    message: {
      ...(parsed
        ? { accountKeys: landed.keys.map((pubkey, index) => parsedKey(message, pubkey, index)) }
        : {
            accountKeys: message.staticAccountKeys.map(key => key.toBase58()),
            header: message.header,
          }),
      recentBlockhash: message.recentBlockhash,
      instructions: message.compiledInstructions.map(one => {
        const accounts = [...one.accountKeyIndexes];
        const compiled = {
          programIdIndex: one.programIdIndex,
          accounts,
          data: toBase58(one.data),
          stackHeight: 1,
        };
        return parsed ? parseInstruction(landed, compiled) : compiled;
      }),
      ...lookups,
    },
  };
}

/** The `meta` member of getTransaction's answer. */
export function encodeMeta(landed: Landed, encoding: string): object {
  const inner = landed.inner.map(({ index, instructions }) => ({
    index,
    instructions:
      encoding === 'jsonParsed' ? instructions.map(one => parseInstruction(landed, one)) : instructions,
  }));
  return {
    err: landed.err,
    status: landed.err ? { Err: landed.err } : { Ok: null },
    fee: landed.fee,
    preBalances: landed.preBalances,
    postBalances: landed.postBalances,
    innerInstructions: inner,
    logMessages: landed.logs,
    preTokenBalances: landed.preTokens,
    postTokenBalances: landed.postTokens,
    rewards: [],
    loadedAddresses: landed.loaded ?? { writable: [], readonly: [] },
    computeUnitsConsumed: landed.units,
  };
}

type Message = VersionedTransaction['message'];
type Compiled = { programIdIndex: number; accounts: number[]; data: string; stackHeight: number };

function toLookup(lookup: Message['addressTableLookups'][number]): object {
  const { accountKey, writableIndexes, readonlyIndexes } = lookup;
  return { accountKey: accountKey.toBase58(), writableIndexes, readonlyIndexes };
}

function parsedKey(message: Message, pubkey: string, index: number): object {
  const source = index < message.staticAccountKeys.length ? 'transaction' : 'lookupTable';
  return {
    pubkey,
    signer: message.isAccountSigner(index),
    writable: message.isAccountWritable(index),
    source,
  };
}

function parseInstruction(landed: Landed, { programIdIndex, accounts, data, stackHeight }: Compiled): object {
  const programId = landed.keys[programIdIndex] ?? '';
  const keys = accounts.map(index => landed.keys[index] ?? '');
  const bytes = Buffer.from(fromBase58(data) ?? []);
  const known = parseKnown(programId, keys, bytes, landed);
  return known ? { ...known, programId, stackHeight } : { programId, accounts: keys, data, stackHeight };
}

function parseKnown(programId: string, keys: string[], data: Buffer, landed: Landed): object | null {
  if (programId.startsWith('Memo')) return { program: 'spl-memo', parsed: data.toString('utf8') };
  if (programId === SystemProgram.programId.toBase58()) return parseSystem(keys, data);
  if (programId === TOKEN_PROGRAM) return parseToken('spl-token', keys, data, landed);
  if (programId === TOKEN_2022_PROGRAM) return parseToken('spl-token-2022', keys, data, landed);
  return null;
}

function parseSystem(keys: string[], data: Buffer): object | null {
  const instruction = new TransactionInstruction({ programId: SystemProgram.programId, keys: [], data });
  try {
    if (SystemInstruction.decodeInstructionType(instruction) !== 'Transfer') return null;
  } catch {
    return null;
  }
  const info = { source: keys[0], destination: keys[1], lamports: Number(data.readBigUInt64LE(4)) };
  return { program: 'system', parsed: { type: 'transfer', info } };
}

function parseToken(program: string, keys: string[], data: Buffer, landed: Landed): object | null {
  if (data[0] === 3 && data.length === 9) {
    const [source, destination, authority] = keys;
    const amount = data.readBigUInt64LE(1).toString();
    return { program, parsed: { type: 'transfer', info: { source, destination, authority, amount } } };
  }
  if (data[0] !== 12 || data.length !== 10) return null;
  const [source, mint, destination, authority] = keys;
  const tokenAmount = uiAmount(data.readBigUInt64LE(1), data[9] ?? 0);
  const signers = keys.slice(4).filter(key => landed.keys.includes(key));
  const by = signers.length > 0 ? { multisigAuthority: authority, signers } : { authority };
  return {
    program,
    parsed: { type: 'transferChecked', info: { source, mint, destination, ...by, tokenAmount } },
  };
}
