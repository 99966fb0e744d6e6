import { base58 } from '@scure/base';
import type { Keypair } from '@solana/web3.js';
import { craftPayment, type Recipe } from './craft.js';
import { sha256 } from './test-chain.js';

/** A challenge that was read from its header. */
export type ReadChallenge = {
  /** The parameters of the header, undecoded. */
  wire: Record<string, string>;
  request: {
    amount: string;
    currency: string;
    recipient: string;
    externalId: string;
    methodDetails: Record<string, unknown> & { feePayerKey?: string; recentBlockhash?: string };
  };
};

export const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export function readChallenge(header: string | null): ReadChallenge {
  if (!header?.startsWith('Payment ')) throw new Error(`no Payment challenge in: ${header}`);
  const wire = Object.fromEntries(
    [...header.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  );
  const request = JSON.parse(
    Buffer.from(String(wire['request']), 'base64url').toString(),
  ) as ReadChallenge['request'];
  return { wire: wire as Record<string, string>, request };
}

export type MppPayment = {
  /** The value of the `Authorization` header. */
  authorization: string;
  /** The credential for MCP's `_meta`, in which the challenge's request is JSON. */
  meta: Record<string, unknown>;
  transaction: string;
  /** The id of the payment in the ledger. */
  id: string;
};

/** A payment as MPP clients build it: compute price before limit, the transfer, and `externalId` as its memo. */
export function mppPayment({ wire, request }: ReadChallenge, payer: Keypair, bend: Recipe = {}): MppPayment {
  const { feePayerKey = payer.publicKey.toBase58(), recentBlockhash } = request.methodDetails;
  const { transaction, messageBytes } = craftPayment({
    payer,
    feePayer: feePayerKey,
    asset: request.currency,
    payTo: request.recipient,
    amount: BigInt(request.amount),
    memo: request.externalId,
    computeLimit: 200_000,
    instructions: ([limit, price, ...others]) => [price!, limit!, ...others],
    ...(recentBlockhash === undefined ? {} : { blockhash: recentBlockhash }),
    ...bend,
  });
  return { ...credentialOf({ wire, request }, transaction), transaction, id: sha256(messageBytes) };
}

/** The request header that carries a payment. @param header a value for PAYMENT-SIGNATURE or for Authorization */
export function carrierOf(header: string): Record<string, string> {
  return isMpp(header) ? { authorization: header } : { 'payment-signature': header };
}

export function isMpp(header: string): boolean {
  return header.startsWith('Payment ');
}

/** A credential of type `signature`, for a transaction that the buyer has already sent. */
export function madeCredential(
  challenge: ReadChallenge,
  { transaction }: Pick<MppPayment, 'transaction'>,
): Pick<MppPayment, 'authorization' | 'meta'> {
  const signature = signatureOf(transaction);
  return carried(challenge, { type: 'signature', signature });
}

/** A credential of type `transaction`. */
export function credentialOf(
  challenge: ReadChallenge,
  transaction: string,
): Pick<MppPayment, 'authorization' | 'meta'> {
  return carried(challenge, { type: 'transaction', transaction });
}

export function signatureOf(transaction: string): string {
  return base58.encode(Buffer.from(transaction, 'base64').subarray(1, 65));
}

function carried(
  { wire, request }: ReadChallenge,
  payload: Record<string, string>,
): Pick<MppPayment, 'authorization' | 'meta'> {
  return {
    authorization: `Payment ${base64url({ challenge: wire, payload })}`,
    meta: { 'org.paymentauth/credential': { challenge: { ...wire, request }, payload } },
  };
}
