import { createKeyPairSignerFromBytes } from '@solana/kit';
import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { Connection, PublicKey } from '@solana/web3.js';
import { x402Client } from '@x402/core/client';
import type { PaymentPayload, PaymentRequired } from '@x402/core/types';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { ExactSvmSchemeV1 } from '@x402/svm/exact/v1/client';
import { randomUUID } from 'node:crypto';
import type { Json } from '../contract/json.js';
import { objectOf } from '../contract/references.js';
import { toDecimal } from '../price/amount.js';
import { messageOf } from '../ledger/fault.js';
import { TransactionChecker } from '../rails/solana/transaction.js';
import { toAddress } from '../rails/solana/address.js';
import { NETWORKS } from '../rails/solana/networks.js';
import type { Offer } from './offer.js';

/** A signed payment: x402's PaymentPayload, and the data for finding it on chain. */
export type Signed = { id: string; payment: Json; transaction: string; blockhash: string };

export type Signer = {
  /** Base58. */
  address: string;
  /** Signs a payment of exactly this offer. @throws SigningFault */
  sign(offer: Offer): Promise<Signed>;
};

/** There is no payment; the message says why, in a sentence. */
export class SigningFault extends Error {}

/** The x402 extension with which a buyer marks payments for the same purchase. */
const IDENTIFIER = 'payment-identifier';

/**
 * Signs with the official x402 client.
 * @param rpcUrl the server that reports the payer's balance and, if the challenge has no blockhash, a blockhash; by default the public
 *   server for the network
 */
export async function createSigner(secretKey: Uint8Array, rpcUrl: string | undefined): Promise<Signer> {
  const keyPair = await createKeyPairSignerFromBytes(secretKey);
  const rpc = rpcUrl === undefined ? {} : { rpcUrl };
  const [scheme, schemeV1] = [new ExactSvmScheme(keyPair, rpc), new ExactSvmSchemeV1(keyPair, rpc)];
  const clientFor = (amount: bigint): x402Client => {
    const client = new x402Client().register('solana:*', scheme);
    for (const { v1 } of Object.values(NETWORKS)) client.registerV1(v1, schemeV1);
    return client.setSpendControls({ maxAmountPerPayment: `$${toDecimal(amount)}` });
  };
  return {
    address: keyPair.address,
    async sign(offer) {
      await checkFunds(offer, keyPair.address, rpcUrl);
      const challenge = offer.required as unknown as PaymentRequired;
      const payload = await clientFor(offer.amount)
        .createPaymentPayload(challenge)
        .catch((error: unknown) => {
          throw new SigningFault(whyNotSigned(error, rpcUrl));
        });
      return readSigned(withIdentifier(payload, challenge), offer);
    },
  };
}

/** The client reads data about the token from an RPC server; if that fails, its error only says that a fetch failed. */
function whyNotSigned(error: unknown, rpcUrl: string | undefined): string {
  const message = messageOf(error).slice(0, 300);
  if (!/fetch failed|HTTP error|ECONNREFUSED|ENOTFOUND/i.test(message))
    return `The payment could not be signed: ${message}`;
  const server =
    rpcUrl === undefined ? 'The public Solana RPC server' : `The Solana RPC server ${new URL(rpcUrl).origin}`;
  return `${server} does not answer (${message}), and no payment can be signed without one. Set another server with --rpc or SOLANA_RPC_URL`;
}

/** The data to store for a signed payment. @throws SigningFault if the payment does not match the offer */
export async function readSigned(
  payment: Json,
  { network, payTo, amount }: Pick<Offer, 'network' | 'payTo' | 'amount'>,
): Promise<Signed> {
  const { transaction } = objectOf(payment.payload);
  const expected = { asset: network.usdcMint, payTo, amount };
  const checked = await new TransactionChecker().check(String(transaction), expected);
  if (!checked.ok)
    throw new SigningFault(
      `The payment is not sent, because the signed transaction does not pay the offer: ${checked.error}`,
    );
  const { id, blockhash, evidence: own } = checked.checked;
  return { id, payment, transaction: own, blockhash: toAddress(Buffer.from(blockhash, 'latin1')) };
}

/** Gives the purchase an id, if the server supports it, so that the purchase stays one sale even if connections fail. */
function withIdentifier(payload: PaymentPayload, { extensions }: PaymentRequired): PaymentPayload {
  const offered = extensions?.[IDENTIFIER] as { info?: object } | undefined;
  if (!offered) return payload;
  const identifier = { ...offered, info: { ...offered.info, id: `buy-${randomUUID()}` } };
  return { ...payload, extensions: { ...payload.extensions, [IDENTIFIER]: identifier } };
}

/** Checks the balance first, because the client would also sign a payment that cannot be settled. */
export async function checkFunds(
  { network, amount }: Pick<Offer, 'network' | 'amount'>,
  payer: string,
  rpcUrl: string | undefined,
): Promise<void> {
  if (rpcUrl === undefined) return;
  const account = getAssociatedTokenAddressSync(new PublicKey(network.usdcMint), new PublicKey(payer));
  const balance = await new Connection(rpcUrl).getTokenAccountBalance(account).then(
    ({ value }) => BigInt(value.amount),
    (error: unknown) => (/could not find account|invalid param/i.test(messageOf(error)) ? 0n : undefined),
  );
  if (balance === undefined || balance >= amount) return;
  throw new SigningFault(
    `Not enough USDC: ${payer} has ${toDecimal(balance)} USDC, but the call costs ${toDecimal(amount)} USDC. Send USDC to it (mint ${network.usdcMint}, ${network.caip2}), or use another --keypair`,
  );
}
