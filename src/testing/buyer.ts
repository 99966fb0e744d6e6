import { readFileSync } from 'node:fs';
import { isSoldStatus } from '../contract/sold-status.js';
import { toDecimal } from '../price/amount.js';
import { chooseOffer } from '../wallet/offer.js';
import {
  challengeOf,
  errorOf,
  findOperation,
  headersOf,
  parseJson,
  receiptOf,
  requestOf,
  send,
  type ServerAnswer,
} from '../wallet/shop-client.js';
import { createSigner } from '../wallet/signer.js';

/** The shop's answer to a call. */
export type Answer = {
  status: number;
  headers: Headers;
  body: Buffer;
  /** The body, if it is JSON. */
  json: unknown;
  /** The message of an answer that is not sold. */
  error: string | undefined;
  /** The receipt of a payment whose settlement was attempted. */
  receipt: { success: boolean; transaction: string; errorReason?: string } | undefined;
  /** The USDC that left the buyer's wallet between the call and the answer, as a decimal string; '0.00' for none. */
  charged: string;
};

/** A call with its payment. `send` may be called several times: it sends the same payment, which is charged once. */
export type SignedCall = { price: string; send: () => Promise<Answer> };

export type Wallet = { keypairFile: string; rpcUrl: string; usdcMint: string; address: string };

const RPC_MS = 10_000;

/**
 * Asks for the price of a call and signs the payment with the official x402 client.
 * @param input members of the body, the query and the path; by default those of the contract's examples @throws Error if the shop requires
 * no payment
 */
export async function signCall(
  url: string,
  wallet: Wallet,
  operationId: string,
  input?: object,
): Promise<SignedCall> {
  const listing = await findOperation(url, operationId);
  const json = JSON.stringify(input ?? listing.example ?? {});
  const unpaid = requestOf(listing, json);
  const answer = await send(unpaid.url, unpaid.init);
  const challenge = challengeOf(answer);
  if (!challenge) throw new Error(`${operationId} asks for no payment: ${answer.status} ${errorOf(answer)}`);
  const keypair = JSON.parse(readFileSync(wallet.keypairFile, 'utf8')) as number[];
  const signer = await createSigner(Uint8Array.from(keypair), wallet.rpcUrl);
  const offer = chooseOffer(challenge, signer.address);
  if (typeof offer === 'string') throw new Error(`${operationId} can't be paid: ${offer}`);
  const price = toDecimal(offer.amount);
  const paid = requestOf(listing, json, headersOf(await signer.sign(offer)));
  return {
    price,
    send: async () => {
      const before = await balanceOf(wallet);
      const answer = await send(paid.url, paid.init);
      return { ...describe(answer), charged: toDecimal(before - (await balanceOf(wallet))) };
    },
  };
}

function describe(answer: ServerAnswer): Omit<Answer, 'charged'> {
  const { status } = answer;
  return {
    ...answer,
    json: parseJson(answer.body),
    error: isSoldStatus(status) ? undefined : errorOf(answer),
    receipt: receiptOf(answer),
  };
}

/** The USDC balance of a wallet on chain, in atomic units. */
export async function balanceOf({ rpcUrl, address, usdcMint }: Wallet): Promise<bigint> {
  const params = [address, { mint: usdcMint }, { encoding: 'jsonParsed', commitment: 'confirmed' }];
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getTokenAccountsByOwner', params }),
    signal: AbortSignal.timeout(RPC_MS),
  });
  const { result } = (await response.json()) as { result?: { value: TokenAccount[] } };
  if (!result)
    throw new Error(`The sandbox's RPC server at ${rpcUrl} does not report the balance of ${address}.`);
  return result.value.reduce(
    (sum, { account }) => sum + BigInt(account.data.parsed.info.tokenAmount.amount),
    0n,
  );
}

type TokenAccount = { account: { data: { parsed: { info: { tokenAmount: { amount: string } } } } } };
