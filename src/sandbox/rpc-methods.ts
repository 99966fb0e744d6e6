import {
  address,
  commitmentOf,
  count,
  encodingOf,
  list,
  settings,
  signatureOrNone,
  text,
  type Params,
  type Settings,
} from './rpc-parameters.js';
import {
  PublicKey,
  SystemProgram,
  TransactionMessage,
  VersionedMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { fromBase58 } from './base58.js';
import { feeOf, STATUS_SLOTS, type Chain, type Commitment } from './chain.js';
import { DEVNET_GENESIS, TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../rails/solana/networks.js';
import { signWith, walletOf } from './genesis.js';
import type { Entry } from './history.js';
import {
  encodeAccount,
  encodeMeta,
  encodeTransaction,
  type AccountEncoding,
  type DataSlice,
} from './rpc-encoding.js';
import { RpcFault } from './rpc-fault.js';
import { largestAccounts, readMint, readTokenAccount, uiAmount } from './tokens.js';
import type { Account, Simulation, TransactionError } from './vm.js';
import { isSignature, decodeTransaction, WireFault, type WireTransaction } from './wire-transaction.js';
type Method = (chain: Chain, params: Params) => unknown;

const VERSION = { 'solana-core': '2.2.0', 'feature-set': 0 };
const SLOTS_PER_EPOCH = 432_000;
const MAX_ACCOUNTS = 100;
const MAX_STATUSES = 256;
const MAX_SIGNATURES = 1000;
const MAX_LISTED_ACCOUNTS = 1000;
const MAX_AIRDROP = 1_000_000_000_000;

/** The JSON-RPC methods of a Solana node that the sandbox answers, by name. */
export const METHODS: { [name: string]: Method } = {
  getHealth: () => 'ok',
  getVersion: () => VERSION,
  getGenesisHash: () => DEVNET_GENESIS,
  getSlot: (chain, params) => chain.slot(view(chain, params, 0)),
  getBlockHeight: (chain, params) => chain.slot(view(chain, params, 0)),
  getEpochInfo: (chain, params) => epochInfo(chain.slot(view(chain, params, 0))),
  getMinimumBalanceForRentExemption: (chain, params) =>
    Number(chain.rentExemption(count(params, 0, 10 << 20))),
  getRecentPrioritizationFees: chain => [{ slot: chain.slot('confirmed'), prioritizationFee: 0 }],
  getAccountInfo,
  getMultipleAccounts,
  getProgramAccounts,
  getBalance: (chain, params) =>
    inContext(chain, params, 1, Number(chain.account(address(params, 0))?.lamports ?? 0n)),
  getTokenAccountBalance,
  getTokenAccountsByOwner,
  getTokenLargestAccounts,
  getTokenSupply,
  getLatestBlockhash: (chain, params) =>
    inContext(chain, params, 0, chain.latestBlockhash(view(chain, params, 0))),
  isBlockhashValid: (chain, params) => inContext(chain, params, 1, chain.blockhashLives(text(params, 0))),
  getFeeForMessage,
  simulateTransaction,
  sendTransaction,
  requestAirdrop,
  getSignatureStatuses,
  getSignaturesForAddress,
  getTransaction,
};

function getAccountInfo(chain: Chain, params: Params): object {
  const { encoding, slice } = encodingOf(settings(params, 1));
  return inContext(
    chain,
    params,
    1,
    encodeAccount(chain, chain.account(address(params, 0), view(chain, params, 1)), encoding, slice),
  );
}

function getMultipleAccounts(chain: Chain, params: Params): object {
  const { encoding, slice } = encodingOf(settings(params, 1));
  const accounts = list(params, 0, MAX_ACCOUNTS).map((_, index, all) =>
    encodeAccount(chain, chain.account(address(all, index)), encoding, slice),
  );
  return inContext(chain, params, 1, accounts);
}

function getProgramAccounts(chain: Chain, params: Params): unknown {
  const config = settings(params, 1);
  const { encoding, slice } = encodingOf(config);
  const filters = Array.isArray(config['filters']) ? (config['filters'] as Settings[]) : [];
  const found = chain
    .programAccounts(address(params, 0))
    .filter(([, account]) => filters.every(filter => passes(account, filter)));
  const listed = keyed(chain, found, encoding, slice);
  return config['withContext'] === true ? inContext(chain, params, 1, listed) : listed;
}

function getTokenAccountBalance(chain: Chain, params: Params): object {
  const held = readTokenAccount(chain.account(address(params, 0)));
  if (!held)
    throw new RpcFault(-32602, 'Invalid param: could not find account, or it is not a token account');
  return inContext(chain, params, 1, uiAmount(held.amount, chain.decimalsOf(held.mint) ?? 0));
}

function getTokenAccountsByOwner(chain: Chain, params: Params): object {
  const owner = address(params, 0);
  const filter = settings(params, 1);
  const { encoding, slice } = encodingOf(settings(params, 2));
  const mint = typeof filter['mint'] === 'string' ? address([filter['mint']], 0) : null;
  if (mint && !readMint(chain.account(mint)))
    throw new RpcFault(-32602, 'Invalid param: could not find mint');
  const programs = mint ? [TOKEN_PROGRAM, TOKEN_2022_PROGRAM] : [address([filter['programId']], 0)];
  const found = programs
    .flatMap(program => chain.programAccounts(program))
    .filter(([, account]) => {
      const held = readTokenAccount(account);
      return held?.owner === owner && (mint === null || held.mint === mint);
    });
  return inContext(chain, params, 2, keyed(chain, found, encoding, slice));
}

function getTokenLargestAccounts(chain: Chain, params: Params): object {
  const of = address(params, 0);
  const mint = readMint(chain.account(of));
  if (!mint) throw new RpcFault(-32602, 'Invalid param: not a Token mint');
  const all = [TOKEN_PROGRAM, TOKEN_2022_PROGRAM].flatMap(program => chain.programAccounts(program));
  return inContext(chain, params, 1, largestAccounts(all, of, mint.decimals));
}

function getTokenSupply(chain: Chain, params: Params): object {
  const mint = readMint(chain.account(address(params, 0)));
  if (!mint) throw new RpcFault(-32602, 'Invalid param: not a Token mint');
  return inContext(chain, params, 1, uiAmount(mint.supply, mint.decimals));
}

function getFeeForMessage(chain: Chain, params: Params): object {
  try {
    const message = VersionedMessage.deserialize(Buffer.from(text(params, 0), 'base64'));
    const fee = chain.blockhashLives(message.recentBlockhash) ? feeOf({ message }) : null;
    return inContext(chain, params, 1, fee);
  } catch (error) {
    if (error instanceof RpcFault) throw error;
    throw new RpcFault(-32602, 'failed to deserialize message');
  }
}

function simulateTransaction(chain: Chain, params: Params): object {
  const config = settings(params, 1);
  const transaction = transactionOf(params, config);
  const sigVerify = config['sigVerify'] === true;
  const replaceBlockhash = config['replaceRecentBlockhash'] === true;
  if (sigVerify && replaceBlockhash) {
    throw new RpcFault(-32602, 'sigVerify may not be used with replaceRecentBlockhash');
  }
  const simulation = chain.simulate(transaction, { sigVerify, replaceBlockhash });
  if (simulation.err === 'SignatureFailure')
    throw new RpcFault(-32003, 'Transaction signature verification failure');
  const value = {
    ...simulationValue(simulation),
    accounts: simulatedAccounts(chain, simulation, config['accounts']),
    innerInstructions: config['innerInstructions'] === true ? simulation.inner : null,
    ...(replaceBlockhash && { replacementBlockhash: chain.latestBlockhash('processed') }),
  };
  return inContext(chain, params, 1, value);
}

/**
 * Like a node, returns the signature of any transaction that passes preflight. With `skipPreflight` a transaction that can't land
 * (dead blockhash, no money for the fee) is dropped silently, and one that landed before is not landed again; only a wrong
 * signature is reported, -32003.
 */
async function sendTransaction(chain: Chain, params: Params): Promise<string> {
  const config = settings(params, 1);
  const transaction = transactionOf(params, config);
  if (config['skipPreflight'] !== true) preflight(chain, transaction);
  const { signature, err } = await chain.submit(transaction);
  if (err === 'SignatureFailure') throw new RpcFault(-32003, 'Transaction signature verification failure');
  return signature;
}

function preflight(chain: Chain, transaction: WireTransaction): void {
  const simulation = chain.simulate(transaction, { sigVerify: true, replaceBlockhash: false });
  if (simulation.err === 'SignatureFailure')
    throw new RpcFault(-32003, 'Transaction signature verification failure');
  if (!simulation.err) return;
  const message = `Transaction simulation failed: ${describe(simulation.err)}`;
  throw new RpcFault(-32002, message, { ...simulationValue(simulation), accounts: null });
}

async function requestAirdrop(chain: Chain, params: Params): Promise<string> {
  const to = new PublicKey(address(params, 0));
  const lamports = count(params, 1, MAX_AIRDROP);
  const faucet = walletOf(chain.genesis.keys.authority);
  const from = new PublicKey(faucet.address);
  const message = new TransactionMessage({
    payerKey: from,
    recentBlockhash: chain.latestBlockhash('processed').blockhash,
    instructions: [SystemProgram.transfer({ fromPubkey: from, toPubkey: to, lamports })],
  }).compileToV0Message();
  const signed = new VersionedTransaction(message, [signWith(faucet, message.serialize())]);
  const { signature, err } = await chain.submit(decodeTransaction(signed.serialize()));
  if (err) throw new RpcFault(-32603, `Airdrop failed: ${describe(err)}`);
  return signature;
}

function getSignatureStatuses(chain: Chain, params: Params): object {
  const signatures = list(params, 0, MAX_STATUSES);
  const oldest =
    settings(params, 1)['searchTransactionHistory'] === true ? 0 : chain.slot('processed') - STATUS_SLOTS;
  const statuses = signatures.map(signature => {
    if (!isSignature(signature)) throw new RpcFault(-32602, 'Invalid param: Invalid');
    const entry = chain.find(signature);
    return entry && entry.slot >= oldest ? status(chain, entry) : null;
  });
  return { context: context(chain, 'processed'), value: statuses };
}

function getSignaturesForAddress(chain: Chain, params: Params): object[] {
  const config = settings(params, 1);
  const commitment = view(chain, params, 1);
  const limit = config['limit'] === undefined ? MAX_SIGNATURES : count([config['limit']], 0, MAX_SIGNATURES);
  if (limit < 1) throw new RpcFault(-32602, 'Invalid limit; max 1000');
  const page = { before: signatureOrNone(config['before']), until: signatureOrNone(config['until']), limit };
  return chain.ofAddress(address(params, 0), page, commitment).map(entry => ({
    signature: entry.signature,
    slot: entry.slot,
    err: entry.err,
    memo: entry.memo,
    blockTime: entry.blockTime,
    confirmationStatus: chain.isVisible(entry, 'finalized') ? 'finalized' : 'confirmed',
  }));
}

function getTransaction(chain: Chain, params: Params): object | null {
  const signature = signatureOrNone(text(params, 0)) ?? '';
  const config = typeof params[1] === 'string' ? { encoding: params[1] } : settings(params, 1);
  const encoding = config['encoding'] ?? 'json';
  if (
    typeof encoding !== 'string' ||
    !['json', 'jsonParsed', 'base64', 'base58', 'binary'].includes(encoding)
  ) {
    throw new RpcFault(-32602, 'Invalid params: encoding must be json, jsonParsed, base64 or base58');
  }
  const entry = chain.find(signature);
  if (!entry || !chain.isVisible(entry, commitmentOf(config))) return null;
  const landed = chain.details(entry);
  const version = landed.loaded ? 0 : 'legacy';
  const readable = config['maxSupportedTransactionVersion'];
  if (version === 0 && typeof readable !== 'number') {
    const advice =
      'Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": 0';
    throw new RpcFault(
      -32015,
      `Transaction version (0) is not supported by the requesting client. ${advice}`,
    );
  }
  return {
    slot: landed.slot,
    blockTime: landed.blockTime,
    transaction: encodeTransaction(landed, encoding),
    meta: encodeMeta(landed, encoding),
    ...(typeof readable === 'number' && { version }),
  };
}

function status(chain: Chain, entry: Entry): object {
  const final = chain.isVisible(entry, 'finalized');
  return {
    slot: entry.slot,
    confirmations: final ? null : Math.max(0, chain.slot('processed') - entry.slot),
    err: entry.err,
    status: entry.err ? { Err: entry.err } : { Ok: null },
    confirmationStatus: final ? 'finalized' : 'confirmed',
  };
}

function simulationValue(simulation: Simulation): object {
  const { err, logs, units, returnData } = simulation;
  return { err, logs, unitsConsumed: units, returnData, loadedAccountsDataSize: 0 };
}

function simulatedAccounts(chain: Chain, simulation: Simulation, wanted: unknown): unknown {
  if (typeof wanted !== 'object' || wanted === null) return null;
  const { addresses, encoding } = wanted as { addresses?: unknown; encoding?: unknown };
  const asked = list([addresses], 0, MAX_ACCOUNTS);
  return asked.map((_, index) => {
    const key = address(asked, index);
    const account = simulation.err ? null : (simulation.accounts.get(key) ?? chain.account(key));
    return encodeAccount(chain, account, encodingOf({ encoding: encoding ?? 'base64' }).encoding);
  });
}

function keyed(
  chain: Chain,
  found: [address: string, account: Account][],
  encoding: AccountEncoding,
  slice?: DataSlice,
): object[] {
  if (found.length > MAX_LISTED_ACCOUNTS) {
    throw new RpcFault(-32010, `More than ${MAX_LISTED_ACCOUNTS} accounts: narrow the filter.`);
  }
  return found.map(([pubkey, account]) => ({
    pubkey,
    account: encodeAccount(chain, account, encoding, slice),
  }));
}

function passes(account: Account, filter: Settings): boolean {
  if (typeof filter['dataSize'] === 'number') return account.data.length === filter['dataSize'];
  const memcmp = filter['memcmp'] as { offset?: unknown; bytes?: unknown; encoding?: unknown } | undefined;
  if (typeof memcmp?.offset !== 'number' || typeof memcmp.bytes !== 'string') {
    throw new RpcFault(-32602, 'Invalid param: a filter is dataSize or memcmp');
  }
  const wanted =
    memcmp.encoding === 'base64' ? Buffer.from(memcmp.bytes, 'base64') : fromBase58(memcmp.bytes);
  if (!wanted) throw new RpcFault(-32602, 'Invalid param: memcmp.bytes is not base58');
  return Buffer.from(account.data.subarray(memcmp.offset, memcmp.offset + wanted.length)).equals(wanted);
}

function epochInfo(slot: number): object {
  return {
    absoluteSlot: slot,
    blockHeight: slot,
    epoch: Math.floor(slot / SLOTS_PER_EPOCH),
    slotIndex: slot % SLOTS_PER_EPOCH,
    slotsInEpoch: SLOTS_PER_EPOCH,
    transactionCount: null,
  };
}

function transactionOf(params: Params, config: Settings): WireTransaction {
  const encoded = text(params, 0);
  const encoding = config['encoding'] ?? 'base58';
  const bytes = encoding === 'base64' ? Buffer.from(encoded, 'base64') : fromBase58(encoded);
  if (!bytes || (encoding !== 'base64' && encoding !== 'base58')) {
    throw new RpcFault(-32602, 'invalid base58 or base64 encoding');
  }
  try {
    return decodeTransaction(bytes);
  } catch (error) {
    if (error instanceof WireFault) throw new RpcFault(-32602, error.message);
    throw error;
  }
}

const SENTENCES: { [name: string]: string } = {
  AccountNotFound: 'Attempt to debit an account but found no record of a prior credit.',
  AlreadyProcessed: 'This transaction has already been processed',
  BlockhashNotFound: 'Blockhash not found',
  InsufficientFundsForFee: 'Insufficient funds for fee',
  SignatureFailure: 'Transaction did not pass signature verification',
  SanitizeFailure: 'Transaction failed to sanitize accounts offsets correctly',
};

/** The message with which a node reports an error. */
function describe(err: TransactionError): string {
  if (typeof err === 'string') return SENTENCES[err] ?? err;
  const failed = err['InstructionError'];
  if (!Array.isArray(failed)) return JSON.stringify(err);
  const [index, cause] = failed as [number, string | { Custom: number }];
  const reason = typeof cause === 'string' ? cause : `custom program error: 0x${cause.Custom.toString(16)}`;
  return `Error processing Instruction ${index}: ${reason}`;
}

function inContext(chain: Chain, params: Params, at: number, value: unknown): object {
  return { context: context(chain, view(chain, params, at)), value };
}

function context(chain: Chain, commitment: Commitment): object {
  return { slot: chain.slot(commitment), apiVersion: VERSION['solana-core'] };
}

/** The requested commitment. The chain must have reached `minContextSlot` at this commitment. */
function view(chain: Chain, params: Params, at: number): Commitment {
  const config = settings(params, at);
  const commitment = commitmentOf(config);
  const least = config['minContextSlot'];
  const contextSlot = chain.slot(commitment);
  if (typeof least === 'number' && least > contextSlot) {
    throw new RpcFault(-32016, 'Minimum context slot has not been reached', { contextSlot });
  }
  return commitment;
}
