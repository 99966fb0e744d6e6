import type { Payment, Repayment } from '../ledger/store.js';
import { toDecimal } from '../price/amount.js';
import { signatureOf } from '../facilitators/send-until-landed.js';
import { toAddress } from '../rails/solana/address.js';
import { buildTransfer } from '../rails/solana/build-transfer.js';
import { feeOf } from '../rails/solana/fee-limits.js';
import { inSol } from '../facilitators/fee-payer-guard.js';
import type { KeyPair } from '../rails/solana/key-pair.js';
import { readTransaction } from '../rails/solana/message.js';
import { MEMO_PROGRAM, TOKEN_PROGRAM } from '../rails/solana/networks.js';
import { referenceOf } from '../rails/solana/pay-link.js';
import type { Account } from '../rails/solana/rpc-results.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { keptEvidence } from '../rails/solana/kept-evidence.js';
import { nameOf, receiverAccount, sourceAccountOf } from '../rails/solana/transaction.js';
import { OperatorFault } from './operator-fault.js';

/** The wallet that sends refunds. `floor`: the lamports that the fee payer must keep. */
export type RefundWallet = { keyPair: KeyPair; feePayer: KeyPair; floor: bigint };

/** The signed transaction, as the ledger stores it. */
export type SignedRefund = { evidence: string; signature: string; position: number };

/** The lamports that an account without data must keep. They are the floor of the sending wallet if it pays the fee itself. */
export const LEAST_KEPT = 890_880n;

type Chain = Pick<SolanaChain, 'account' | 'balance' | 'latestBlockhash' | 'simulate'>;

/** https://github.com/solana-program/token, state.rs, Account. */
const TOKEN_ACCOUNT_BYTES = 165;
const AMOUNT_AT = 64;
const STATE_AT = 108;
const INITIALIZED = 1;

export const memoOf = ({ id }: Repayment): string => `refund:${id}`;

/**
 * Signs the transfer of a refund to the token account from which its payment came. Sends nothing.
 * @throws OperatorFault that says why it can't be paid this way; UpstreamFailure if the chain can't be read
 */
export async function signRefund(
  chain: Chain,
  mint: string,
  { payment, repayment }: { payment: Payment; repayment: Repayment },
  wallet: RefundWallet,
  signal: AbortSignal,
): Promise<SignedRefund> {
  const { keyPair, feePayer } = wallet;
  const destination = await payersAccount(chain, mint, payment, signal);
  const owner = keyPair.address;
  const source = receiverAccount({ asset: mint, payTo: owner });
  if (source === destination)
    throw new OperatorFault(
      `The wallet ${owner} cannot send this refund: it is the payer of payment ${payment.id}.`,
    );
  await checkFunds(chain, { source, owner, amount: repayment.amount }, signal);
  const { blockhash, lastValidBlockHeight } = await chain.latestBlockhash('confirmed', signal);
  const { amount } = repayment;
  const memo = memoOf(repayment);
  const unsigned = buildTransfer({
    ...{ feePayer: feePayer.address, owner, source, destination, mint, amount, blockhash },
    ...{ memo, reference: referenceOf(memo) },
  });
  const evidence = feePayer.sign(keyPair.sign(unsigned));
  await checkFee(chain, evidence, wallet, signal);
  const { error } = await chain.simulate(evidence, signal);
  if (error !== null) throw new OperatorFault(`The chain would refuse the refund (${error.slice(0, 300)}).`);
  return { evidence, signature: signatureOf(evidence) ?? '', position: lastValidBlockHeight };
}

/** The token account that the money came from, if it can still receive money for the payer. @throws OperatorFault */
async function payersAccount(
  chain: Chain,
  mint: string,
  payment: Payment,
  signal: AbortSignal,
): Promise<string> {
  const { payer } = payment;
  const address = cameFrom(payment);
  if (address === undefined) throw otherWay(`It is unknown which account of ${payer} the payment came from`);
  const account = await chain.account(address, signal, TOKEN_ACCOUNT_BYTES);
  if (!account) throw otherWay(`The account ${address}, from which ${payer} paid, is closed`);
  const { data, owner: program } = account;
  const whole = program === TOKEN_PROGRAM && data.length === TOKEN_ACCOUNT_BYTES;
  if (!whole || toAddress(data.subarray(0, 32)) !== mint || toAddress(data.subarray(32, 64)) !== payer)
    throw otherWay(
      `The account ${address}, from which ${payer} paid, is no longer that payer's USDC account`,
    );
  if (data[STATE_AT] !== INITIALIZED) throw otherWay(`The account ${address} of ${payer} is frozen`);
  return address;
}

function otherWay(why: string): OperatorFault {
  return new OperatorFault(
    `${why}. Ask the buyer to open it again, or refund without --keypair: a wallet that pays the refund link opens an account for the buyer.`,
  );
}

export function cameFrom({ evidence }: Pick<Payment, 'evidence'>): string | undefined {
  try {
    return keptEvidence(evidence)?.source ?? sourceAccountOf(evidence);
  } catch {
    return undefined;
  }
}

/** The USDC balance of a wallet, in atomic units. */
export async function usdcOf(
  chain: Pick<Chain, 'account'>,
  source: string,
  signal: AbortSignal,
): Promise<bigint> {
  const account = await chain.account(source, signal, TOKEN_ACCOUNT_BYTES);
  return holds(account) ? account.data.readBigUInt64LE(AMOUNT_AT) : 0n;
}

function holds(account: Account | null): account is Account {
  return account?.owner === TOKEN_PROGRAM && account.data.length === TOKEN_ACCOUNT_BYTES;
}

async function checkFunds(
  chain: Chain,
  { source, owner, amount }: { source: string; owner: string; amount: bigint },
  signal: AbortSignal,
): Promise<void> {
  const held = await usdcOf(chain, source, signal);
  if (held < amount)
    throw new OperatorFault(
      `The wallet ${owner} has ${toDecimal(held)} USDC, but the refund needs ${toDecimal(amount)}: send USDC to it.`,
    );
}

async function checkFee(
  chain: Chain,
  evidence: string,
  { feePayer, floor }: RefundWallet,
  signal: AbortSignal,
): Promise<void> {
  const fee = feeOf(readTransaction(Buffer.from(evidence, 'base64')));
  const lamports = await chain.balance(feePayer.address, signal);
  if (lamports < floor + fee)
    throw new OperatorFault(
      `${feePayer.address}, which pays the fee, has ${inSol(lamports)} SOL but must keep ${inSol(floor)}: send SOL to it.`,
    );
}

/** Parses a signed refund. @throws Error if it is not one */
export function readRefund(evidence: string) {
  const { instructions, keys, message, blockhash } = readTransaction(Buffer.from(evidence, 'base64'));
  const [, , transfer, memo] = instructions;
  if (!transfer || !memo || nameOf(keys[memo.program]) !== MEMO_PROGRAM)
    throw new Error('what was signed is not a refund');
  const [, mint, destination, owner] = [...transfer.accounts].map(index => nameOf(keys[index]));
  return {
    mint,
    destination,
    /** The owner of the money. */
    owner,
    amount: transfer.data.readBigUInt64LE(1),
    memo: memo.data.toString('utf8'),
    message,
    blockhash: nameOf(blockhash),
  };
}

/** Whether the signed transaction in the ledger pays this refund and nothing else. */
export function pays(evidence: string, payment: Payment, repayment: Repayment, mint: string): boolean {
  const signed = readRefund(evidence);
  return (
    repayment.payment === payment.id &&
    signed.mint === mint &&
    signed.amount === repayment.amount &&
    signed.memo === memoOf(repayment) &&
    signed.destination !== undefined &&
    signed.destination === cameFrom(payment)
  );
}
