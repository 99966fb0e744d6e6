import { base58 } from '@scure/base';
import { randomBytes } from 'node:crypto';
import { USDC } from '../../price/amount.js';
import { DEVNET_GENESIS, TOKEN_PROGRAM } from '../../rails/solana/networks.js';
import { isObject } from '../../contract/references.js';

/** JSON-RPC 2.0 as Solana's RPC servers speak it. */
type Call = { id?: unknown; method?: unknown; params?: unknown };

const MINT_BYTES = 82;
const DECIMALS_AT = 44;
const INITIALIZED_AT = 45;
const SLOT = 400_000_000;
/** The balance of every buyer of a mock: 1 000 000 USDC. */
const BALANCE = 1_000_000n * 10n ** BigInt(USDC.decimals);
const METHOD_NOT_FOUND = -32601;
const MAX_BATCH = 100;

/**
 * The Solana RPC of a mock: it answers the requests that x402 clients make before they sign. There is no chain behind it, and transactions
 * can't be sent to it.
 * @param mint address of the token that the challenges ask for
 */
export function answerRpc(mint: string, body: unknown): unknown {
  if (Array.isArray(body)) return body.slice(0, MAX_BATCH).map(each => answerCall(mint, each));
  return answerCall(mint, body);
}

function answerCall(mint: string, value: unknown): object {
  const { id = null, method, params } = (isObject(value) ? value : {}) as Call;
  const [first, options] = Array.isArray(params) ? (params as unknown[]) : [];
  const result = resultOf(mint, String(method), first, isObject(options) ? options : {});
  if (result !== undefined) return { jsonrpc: '2.0', id, result };
  const message = `The chain of a mock does not support ${String(method).slice(0, 60)}: nothing can be sent to it.`;
  return { jsonrpc: '2.0', id, error: { code: METHOD_NOT_FOUND, message } };
}

function resultOf(mint: string, method: string, first: unknown, options: { encoding?: unknown }): unknown {
  switch (method) {
    case 'getHealth':
      return 'ok';
    case 'getVersion':
      return { 'solana-core': '2.2.0', 'feature-set': 0 };
    case 'getGenesisHash':
      return DEVNET_GENESIS;
    case 'getSlot':
    case 'getBlockHeight':
      return SLOT;
    case 'getLatestBlockhash':
      return inContext({ blockhash: randomBlockhash(), lastValidBlockHeight: SLOT + 150 });
    case 'isBlockhashValid':
      return inContext(true);
    case 'getAccountInfo':
      return inContext(first === mint ? mintAccount(options.encoding) : null);
    case 'getTokenAccountBalance':
      return inContext({
        amount: BALANCE.toString(),
        decimals: USDC.decimals,
        uiAmount: 1_000_000,
        uiAmountString: '1000000',
      });
    case 'simulateTransaction':
      return inContext({ err: null, logs: [], accounts: null, unitsConsumed: 6_000, returnData: null });
    default:
      return undefined;
  }
}

function inContext(value: unknown): object {
  return { context: { slot: SLOT, apiVersion: '2.2.0' }, value };
}

function mintAccount(encoding: unknown): object {
  const account = {
    executable: false,
    lamports: 1_461_600,
    owner: TOKEN_PROGRAM,
    rentEpoch: 0,
    space: MINT_BYTES,
  };
  if (encoding === 'jsonParsed') {
    const info = {
      decimals: USDC.decimals,
      freezeAuthority: null,
      isInitialized: true,
      mintAuthority: null,
      supply: BALANCE.toString(),
    };
    return { ...account, data: { program: 'spl-token', space: MINT_BYTES, parsed: { type: 'mint', info } } };
  }
  const bytes = Buffer.alloc(MINT_BYTES);
  bytes.writeBigUInt64LE(BALANCE, 36);
  bytes[DECIMALS_AT] = USDC.decimals;
  bytes[INITIALIZED_AT] = 1;
  return { ...account, data: [bytes.toString('base64'), 'base64'] };
}

/** A random blockhash each time, so that two payments at the same price are different transactions. */
export function randomBlockhash(): string {
  return base58.encode(randomBytes(32));
}
