import { createKeyPairSignerFromBytes } from '@solana/kit';
import { x402Client } from '@x402/core/client';
import type { PaymentRequired } from '@x402/core/types';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { ExactSvmSchemeV1 } from '@x402/svm/exact/v1/client';
import type { Json } from '../../contract/json.js';
import { objectOf } from '../../contract/references.js';
import { toDecimal } from '../../contract/price.js';
import { TransactionChecker } from '../../rails/solana/transaction.js';
import { toAddress } from '../../rails/solana/address.js';
import { NETWORKS } from '../../rails/solana/networks.js';
import { withIdentifier } from '../../wallet/payment-identifier.js';
import type { Offer } from './tool-result.js';

/** A signed payment: x402's PaymentPayload and what of it is needed to find it on chain. */
export type Signed = { id: string; payment: Json; transaction: string; blockhash: string };

export type Signer = {
  /** Base58. */
  address: string;
  /** Signs a payment of exactly this offer. @throws Error if it can't be signed */
  sign(offer: Offer): Promise<Signed>;
};

/**
 * Signs with the official x402 client.
 * @param rpcUrl asked for a blockhash, if the challenge has none; by default the public server of the network
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
  const checker = new TransactionChecker();
  return {
    address: keyPair.address,
    async sign({ required, amount, network, payTo }) {
      const challenge = required as unknown as PaymentRequired;
      const payment = withIdentifier(await clientFor(amount).createPaymentPayload(challenge), challenge);
      const { transaction } = objectOf(payment.payload);
      const expected = { asset: network.usdcMint, payTo, amount };
      const checked = await checker.check(String(transaction), expected);
      if (!checked.ok) throw new Error(`the signed transaction does not pay the offer: ${checked.error}`);
      const { id, blockhash, transaction: own } = checked.checked;
      const hash = toAddress(Buffer.from(blockhash, 'latin1'));
      return { id, payment: payment as unknown as Json, transaction: own, blockhash: hash };
    },
  };
}
