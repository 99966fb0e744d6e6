import type { Json } from '../contract/json.js';
import { isObject, objectOf } from '../contract/references.js';
import { NETWORKS } from '../rails/solana/networks.js';
import type { KeptPayment, Payer, PayerOptions, Priced } from '../shop/payer.js';
import { Fates } from './fate.js';
import { chooseOffer, type Challenge } from './offer.js';
import { challengeOf, headersOf } from './shop-client.js';
import { checkFunds, createSigner } from './signer.js';

/** Pays challenges one by one, for a caller that stores the payments itself. */
export async function createPayer({ secretKey, network, rpcUrl, feePayer }: PayerOptions): Promise<Payer> {
  const signer = await createSigner(secretKey, rpcUrl);
  const fates = new Fates(rpcUrl);
  return {
    address: signer.address,
    read(answer) {
      const challenge = challengeOf({
        status: answer.status,
        body: answer.body,
        headers: { get: (name: string) => answer.header(name) ?? null },
      });
      if (!challenge) return `it answers ${answer.status} instead of a price (402 with x402's challenge)`;
      const { accepts, originals } = completed(challenge, feePayer);
      const offer = chooseOffer({ required: { ...challenge.required, accepts } }, signer.address);
      if (typeof offer === 'string') return offer;
      if (offer.network.caip2 !== network)
        return `it wants to be paid on ${offer.network.caip2}, not ${network}`;
      const [chosen] = offer.required.accepts;
      if (typeof objectOf(chosen.extra).feePayer !== 'string')
        return 'its challenge names no fee payer (extra.feePayer), and none is set';
      const { amount, payTo } = offer;
      return {
        amount,
        payTo,
        async sign() {
          const signedOnChain = await fates.chainClock(network);
          const { id, payment, transaction, blockhash } = await signer.sign(offer);
          // The payment must repeat the original offer, because the shop compares the two.
          const accepted = originals.get(chosen) ?? chosen;
          const sent = payment.accepted === undefined ? payment : { ...payment, accepted };
          const kept = {
            id,
            amount: String(amount),
            payTo,
            network,
            blockhash,
            transaction,
            signedAt: Date.now(),
          };
          return { ...kept, ...(signedOnChain ? { signedOnChain } : {}), payment: sent };
        },
      } satisfies Priced;
    },
    headers: payment => headersOf(payment),
    fate: payment => fates.of(pendingOf(payment)),
    checkFunds: amount => {
      const own = Object.values(NETWORKS).find(({ caip2 }) => caip2 === network);
      return own ? checkFunds({ network: own, amount }, signer.address, rpcUrl) : Promise.resolve();
    },
  };
}

const pendingOf = (payment: KeptPayment): Parameters<Fates['of']>[0] => ({
  ...payment,
  call: payment.id,
  shop: '',
  tool: '',
});

/**
 * Completes an x402 v2 challenge that has its amount only in v1's field, or that names no fee payer, as in some shops' documentation. The
 * transaction still pays no more than the requested amount.
 */
function completed(
  { required }: Challenge,
  feePayer: string | undefined,
): { accepts: Json[]; originals: Map<Json, Json> } {
  const originals = new Map<Json, Json>();
  const accepts = required.accepts.map(original => {
    const extra = isObject(original.extra) ? original.extra : {};
    const named = extra.feePayer === undefined && feePayer !== undefined ? { ...extra, feePayer } : extra;
    const amount = original.amount ?? original.maxAmountRequired;
    const whole = { ...original, extra: named, ...(amount === undefined ? {} : { amount }) };
    originals.set(whole, original);
    return whole;
  });
  return { accepts, originals };
}
