import { getAssociatedTokenAddressSync } from '@solana/spl-token';
import { Connection, PublicKey } from '@solana/web3.js';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import type { PaymentRequired } from '@x402/core/types';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { toDecimal } from '../contract/price.js';
import { withIdentifier } from './payment-identifier.js';

/** The purchase is not possible; `message` says why and what to do. */
export class BuyFault extends Error {}

/** A signed payment: its header, its amount in atomic units of USDC, and its payer. */
export type SignedPayment = { headers: Record<string, string>; amount: string; payer: string };

export type ServerAnswer = { status: number; headers: Headers; body: Buffer };

/** Reads the price of a call and signs a payment with the official x402 client. @throws BuyFault */
export async function signPayment(
  challenge: ServerAnswer,
  options: {
    keypair: Uint8Array;
    maxPrice: bigint;
    rpcUrl: string | undefined;
    /** Told the price in USDC, before anything is signed. */
    onPrice: (price: string) => void;
  },
): Promise<SignedPayment> {
  const signer = await createKeyPairSignerFromBytes(options.keypair);
  const http = new x402HTTPClient(clientOf(signer, options));
  const required = http.getPaymentRequiredResponse(
    name => challenge.headers.get(name),
    parseJson(challenge.body),
  );
  const [offer] = required.accepts;
  if (!offer) throw new BuyFault('The server requires a payment but offers no supported way to pay.');
  const price = BigInt(offer.amount);
  options.onPrice(toDecimal(price));
  if (price > options.maxPrice) {
    throw new BuyFault(
      `The price is ${toDecimal(price)} USDC, more than your limit of ${toDecimal(options.maxPrice)} USDC: raise it with --max-price.`,
    );
  }
  await checkFunds(offer, signer.address, price, options.rpcUrl);
  const payload = await http.createPaymentPayload(required).catch((error: unknown) => {
    throw new BuyFault(
      `The payment could not be signed: ${reasonOf(error)}. If the server runs its own sandbox, set STATE_DIR to that of the server.`,
    );
  });
  const headers = http.encodePaymentSignatureHeader(withIdentifier(payload, required));
  return { headers, amount: offer.amount, payer: signer.address };
}

type Signer = Awaited<ReturnType<typeof createKeyPairSignerFromBytes>>;

function clientOf(
  signer: Signer,
  { rpcUrl, maxPrice }: { rpcUrl: string | undefined; maxPrice: bigint },
): x402Client {
  const scheme = new ExactSvmScheme(signer, rpcUrl === undefined ? {} : { rpcUrl });
  return new x402Client()
    .register('solana:*', scheme)
    .setSpendControls({ maxAmountPerPayment: `$${toDecimal(maxPrice)}` });
}

/** Checks the balance first, because the client would also sign a payment that cannot be settled. */
async function checkFunds(
  offer: PaymentRequired['accepts'][number],
  payer: string,
  price: bigint,
  rpcUrl: string | undefined,
): Promise<void> {
  if (rpcUrl === undefined) return;
  const account = getAssociatedTokenAddressSync(new PublicKey(offer.asset), new PublicKey(payer));
  const balance = await new Connection(rpcUrl).getTokenAccountBalance(account).then(
    ({ value }) => BigInt(value.amount),
    (error: unknown) => (/could not find account|invalid param/i.test(reasonOf(error)) ? 0n : undefined),
  );
  if (balance === undefined || balance >= price) return;
  throw new BuyFault(
    `Not enough USDC: ${payer} has ${toDecimal(balance)} USDC, the call costs ${toDecimal(price)} USDC. Send USDC to it (mint ${offer.asset}, ${offer.network}), or use another --keypair.`,
  );
}

/** The innermost cause of an error; fetch puts it in `cause`. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message
    ? error.cause.message
    : error.message || error.name;
}

/** The JSON value; undefined if it is none. */
export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
