/**
 * Builds the transaction that pays an x402 challenge (scheme `exact` on Solana), for a wallet to sign: one transfer of exactly the price
 * to the receiver, with the network fee paid by the challenge's fee payer. Everything it needs is in the challenge, so no RPC server is
 * asked.
 */

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const ASSOCIATED_TOKEN_PROGRAM = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';
const COMPUTE_BUDGET_PROGRAM = 'ComputeBudget111111111111111111111111111111';
const MEMO_PROGRAM = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';
/** The transfer and the memo take about 15 000 units. The rest is for the assertions that some wallets add. */
const COMPUTE_UNITS = 60_000;
const MICROLAMPORTS_PER_UNIT = 1n;
const SET_COMPUTE_UNIT_LIMIT = 2;
const SET_COMPUTE_UNIT_PRICE = 3;
const TRANSFER_CHECKED = 12;
const VERSION_0 = 0x80;
const SIGNATURE_BYTES = 64;

/** The 32 bytes of an address in base58. */
export function addressBytes(text) {
  let value = 0n;
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter);
    if (digit < 0) throw new Error('this is not an address: ' + text);
    value = value * 58n + BigInt(digit);
  }
  if (value >> 256n) throw new Error('this is not an address: ' + text);
  return numberBytes(value, 32).reverse();
}

/** Little-endian. */
function numberBytes(value, length) {
  return Uint8Array.from({ length }, (_, index) => Number((BigInt(value) >> BigInt(8 * index)) & 255n));
}

function joined(...parts) {
  return Uint8Array.from(parts.flatMap(part => [...part]));
}

const P = 2n ** 255n - 19n;
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

function power(base, exponent) {
  let result = 1n;
  for (let square = base % P, left = exponent; left > 0n; left >>= 1n, square = (square * square) % P)
    if (left & 1n) result = (result * square) % P;
  return result;
}

/** Whether 32 bytes are a public key: a point of Ed25519. Addresses owned by programs are not. */
function isOnCurve(bytes) {
  const number = [...bytes].reverse().reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  // The highest bit is the sign of x.
  const y = number & ((1n << 255n) - 1n);
  if (y >= P) return false;
  const u = (y * y - 1n + P) % P;
  const v = (D * y * y + 1n) % P;
  // x² = u / v has a solution if u · v is a square.
  return u === 0n || power(u * v, (P - 1n) / 2n) === 1n;
}

/** The associated token account of an owner: the first candidate address that is not a public key. */
async function tokenAccount(owner, mint, tokenProgram) {
  const program = addressBytes(ASSOCIATED_TOKEN_PROGRAM);
  const marker = new TextEncoder().encode('ProgramDerivedAddress');
  for (let bump = 255; bump >= 0; bump--) {
    const seeds = joined(owner, tokenProgram, mint, [bump], program, marker);
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', seeds));
    if (!isOnCurve(hash)) return hash;
  }
  throw new Error('this address has no token account');
}

/** A length as encoded in transactions, 7 bits per byte. */
function compact(length) {
  return length < 128 ? [length] : [(length & 127) | 128, length >> 7];
}

const instruction = (program, accounts, data) =>
  joined([program], compact(accounts.length), accounts, compact(data.length), data);

/**
 * The transaction for one payment option (of `accepts`), with room for the signatures of fee payer and payer.
 * @param offer of x402 v2 @param payer 32 bytes @param memo makes the transaction differ from an earlier one for the same call
 */
export async function unsignedTransaction(offer, payer, memo) {
  const { asset, payTo, amount, extra } = offer;
  const { feePayer, recentBlockhash, decimals = 6, tokenProgram = TOKEN_PROGRAM } = extra;
  const [mint, program, receiver] = [asset, tokenProgram, payTo].map(addressBytes);
  const source = await tokenAccount(payer, mint, program);
  const destination = await tokenAccount(receiver, mint, program);
  const others = [mint, program, addressBytes(COMPUTE_BUDGET_PROGRAM), addressBytes(MEMO_PROGRAM)];
  // The signers come first, then the writable accounts. By index: 1 payer, 2 source, 3 destination, 4 mint, 5, 6, 7 programs.
  const accounts = [addressBytes(feePayer), payer, source, destination, ...others];
  const [readonlySigners, readonlyOthers] = [1, others.length];
  const limit = joined([SET_COMPUTE_UNIT_LIMIT], numberBytes(COMPUTE_UNITS, 4));
  const price = joined([SET_COMPUTE_UNIT_PRICE], numberBytes(MICROLAMPORTS_PER_UNIT, 8));
  const transfer = joined([TRANSFER_CHECKED], numberBytes(amount, 8), [decimals]);
  const instructions = [
    instruction(6, [], limit),
    instruction(6, [], price),
    instruction(5, [2, 4, 3, 1], transfer),
    instruction(7, [], new TextEncoder().encode(memo)),
  ];
  const signatures = 2;
  return joined(
    compact(signatures),
    new Uint8Array(signatures * SIGNATURE_BYTES),
    [VERSION_0, signatures, readonlySigners, readonlyOthers],
    compact(accounts.length),
    ...accounts,
    addressBytes(recentBlockhash),
    compact(instructions.length),
    ...instructions,
    // No lookup tables.
    [0],
  );
}
