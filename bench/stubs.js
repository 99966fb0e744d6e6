import process from 'node:process';
import { MINT_SIZE, MintLayout, TOKEN_PROGRAM_ID } from '@solana/spl-token';
import { PublicKey } from '@solana/web3.js';
import { startMarket } from '../dist/src/sandbox/market-server.js';
import { addressOf, FEE_PAYER, GENESIS_HASH, MINT, NETWORK } from './terms.js';
import { serveRaw } from './wire.js';

/**
 * The services that the servers use, in one process: a facilitator that accepts every payment, a chain on which every settled payment has landed
 * (each of these without delay and with a delay of 50 ms), a language model, and the sandbox's market data. Sends their URLs to the parent process.
 */

const DELAY_MS = 50;
const SLOT_MS = 400;
/** How many settlements are kept: more than the server makes in the 20 s after which it audits each one. */
const MAX_LANDED = 200_000;
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

const began = Date.now();
const slotNow = () => 1_000 + Math.floor((Date.now() - began) / SLOT_MS);
/** @type {Map<string, { transaction: string, slot: number }>} */
const landed = new Map();
let settled = 0;
/** The number of verify and settle requests. */
let asked = 0;

/** @returns {string} a unique signature */
function nextSignature() {
  let text = '';
  for (let left = (settled += 1), digit = 0; digit < 8; digit++, left = Math.floor(left / 58))
    text += BASE58[left % 58];
  return 'S'.repeat(80) + text;
}

const SUPPORTED = JSON.stringify({
  kinds: [{ x402Version: 2, scheme: 'exact', network: NETWORK, extra: { feePayer: FEE_PAYER } }],
  extensions: [],
  signers: { 'solana:*': [FEE_PAYER] },
});
const TRANSACTION = '"transaction":"';

/** @param {string} path @param {Buffer} body */
function facilitate(path, body) {
  if (path === '/supported') return SUPPORTED;
  asked += 1;
  if (path === '/verify') return '{"isValid":true}';
  const from = body.indexOf(TRANSACTION) + TRANSACTION.length;
  const transaction = body.latin1Slice(from, body.indexOf('"', from));
  const signature = nextSignature();
  landed.set(signature, { transaction, slot: slotNow() + 1 });
  if (landed.size > MAX_LANDED) landed.delete(landed.keys().next().value);
  return `{"success":true,"transaction":"${signature}","network":"${NETWORK}"}`;
}

function mintData() {
  const data = Buffer.alloc(MINT_SIZE);
  const authority = new PublicKey(addressOf('authority'));
  MintLayout.encode(
    {
      mintAuthorityOption: 1,
      mintAuthority: authority,
      supply: 123_456_789_000n,
      decimals: 6,
      isInitialized: true,
      freezeAuthorityOption: 0,
      freezeAuthority: authority,
    },
    data,
  );
  return data.toString('base64');
}

const ACCOUNT = {
  data: [mintData(), 'base64'],
  executable: false,
  lamports: 1_461_600,
  owner: TOKEN_PROGRAM_ID.toBase58(),
  rentEpoch: 0,
  space: MINT_SIZE,
};

const METHODS = {
  getGenesisHash: () => GENESIS_HASH,
  getHealth: () => 'ok',
  getBlockHeight: () => slotNow(),
  getSignaturesForAddress: () => [],
  getAccountInfo: () => ({ context: { slot: slotNow() }, value: ACCOUNT }),
  // The mint comes first. The other accounts do not exist.
  getMultipleAccounts: ([addresses]) => ({
    context: { slot: slotNow() },
    value: addresses.map((_, index) => (index === 0 ? ACCOUNT : null)),
  }),
  getLatestBlockhash: () => ({
    context: { slot: slotNow() },
    value: { blockhash: addressOf('blockhash'), lastValidBlockHeight: slotNow() + 150 },
  }),
  getTransaction: ([signature]) => {
    const found = landed.get(signature);
    return found
      ? { slot: found.slot, meta: { err: null }, transaction: [found.transaction, 'base64'], version: 0 }
      : null;
  },
};

/** @param {string} _path @param {Buffer} body */
function chain(_path, body) {
  const { id, method, params } = JSON.parse(body.toString('utf8'));
  const answer = METHODS[method]?.(params);
  return JSON.stringify(
    answer === undefined
      ? { jsonrpc: '2.0', id, error: { code: -32601, message: 'not here' } }
      : { jsonrpc: '2.0', id, result: answer },
  );
}

const SUMMARY = JSON.stringify({
  choices: [
    {
      finish_reason: 'stop',
      message: {
        role: 'assistant',
        content: JSON.stringify({ sentences: ['The bridge closes on Monday.', 'Ferries run meanwhile.'] }),
      },
    },
  ],
});

const [facilitator, slowFacilitator, rpc, slowRpc, model, market] = await Promise.all([
  serveRaw(facilitate),
  serveRaw(facilitate, DELAY_MS),
  serveRaw(chain),
  serveRaw(chain, DELAY_MS),
  serveRaw(() => SUMMARY),
  startMarket({
    host: '127.0.0.1',
    port: 0,
    mints: {
      classic: MINT,
      noAuthorities: addressOf('mint 1'),
      token2022: addressOf('mint 2'),
      untraded: addressOf('mint 3'),
      uninitialised: addressOf('mint 4'),
    },
  }).then(({ url }) => url),
]);
process.on('disconnect', () => process.exit(0));
// Answers every message with the number of facilitator requests.
process.on('message', () => process.send?.({ result: { asked } }));
process.send?.({ facilitator, slowFacilitator, rpc, slowRpc, model, market });
