import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Contract, PricedOperation } from '../contract/contract.js';
import { atPrice } from '../contract/quoted.js';
import { toDecimal } from '../price/amount.js';
import { objectOf } from '../contract/references.js';
import { BodiesFull, BodyFault, type BodyReader } from '../http/body.js';
import { sourceOf } from '../http/request-source.js';
import type { Log } from '../net/log.js';
import { pause, withDeadline } from '../net/deadline.js';
import type { Offers } from '../offers/offers.js';
import { isSignature } from '../rails/solana/address.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import type { LandedTransaction } from '../rails/solana/rpc-results.js';
import { importFromSandbox } from '../endpoints/sandbox-package.js';
import type * as Offer from '../wallet/offer.js';
import type * as Signer from '../wallet/signer.js';
import { foreignPage } from './own-page.js';

export type WalletParts = {
  contract: Contract;
  offers: Pick<Offers, 'challenge' | 'methods'>;
  bodies: BodyReader;
  publicUrl: string;
  /** The RPC server of the sandbox's chain. */
  rpcUrl: string;
  asset: string;
  chain: Pick<SolanaChain, 'transaction'>;
  /** The key pair of the sandbox's buyer: 64 bytes. */
  keypair: Uint8Array;
  closing: AbortSignal;
  log: Log;
};

/** The wallet of the buyer whose key is in the state folder; undefined if there is none, for example when the sandbox runs elsewhere. */
export async function openSandboxWallet(
  stateDir: string,
  parts: Omit<WalletParts, 'keypair'>,
): Promise<SandboxWallet | undefined> {
  const text = await readFile(join(stateDir, 'buyer.json'), 'utf8').catch(() => '[]');
  const numbers = JSON.parse(text) as number[];
  return numbers.length === 64
    ? new SandboxWallet({ ...parts, keypair: Uint8Array.from(numbers) })
    : undefined;
}

const PATH = '/sandbox/wallet/';
const MAX_BYTES = 4 * 1024;
const MAX_AT_ONCE = 4;
const CHAIN_MS = 10_000;
const LOOK_AGAIN_MS = 200;
const ATOMIC = /^[1-9]\d{0,18}$/;

type Answer = { status: number; value: object; headers?: Record<string, string> };

/**
 * The wallet that the pages pay with, only in the sandbox: it signs payments for this server's own offers with the key of the sandbox's
 * buyer, and reads transfers from the chain. Only pages of this server may use it.
 */
export class SandboxWallet {
  readonly #parts: WalletParts;
  #requests = 0;
  #signing = 0;

  constructor(parts: WalletParts) {
    this.#parts = parts;
  }

  /** Whether a request is for this wallet. */
  serves({ url = '' }: IncomingMessage): boolean {
    return url.startsWith(PATH);
  }

  /** Answers a request. Never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, value, headers } = await this.#answer(request);
    const body = JSON.stringify(value);
    response.writeHead(status, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': 'no-store',
      ...headers,
    });
    response.end(body);
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    try {
      const serve = { payments: this.#pay, transfers: this.#transfer }[request.url?.slice(PATH.length) ?? ''];
      if (!serve)
        return fault(
          404,
          'The sandbox wallet serves /sandbox/wallet/payments and /sandbox/wallet/transfers.',
        );
      if (request.method !== 'POST')
        return fault(405, `${request.method} is not allowed here, only POST.`, { Allow: 'POST' });
      const foreign = foreignPage(request.headers, this.#parts.publicUrl);
      if (foreign !== undefined) return fault(403, foreign);
      return await serve(objectOf(await this.#body(request)));
    } catch (error) {
      return this.#failure(error);
    }
  }

  async #body(request: IncomingMessage): Promise<object> {
    this.#requests += 1;
    const source = sourceOf(request.socket.remoteAddress);
    const owner = { payment: `wallet ${this.#requests}`, payer: `wallet ${source}`, source };
    return this.#parts.bodies.readJsonObject(request, MAX_BYTES, owner);
  }

  #failure(error: unknown): Answer {
    if (error instanceof BodyFault) return fault(400, `${error.message}. Nothing was signed.`);
    if (error instanceof BodiesFull) return fault(503, BUSY, { 'Retry-After': '1', Connection: 'close' });
    this.#parts.log.error({ error }, 'the sandbox wallet failed');
    return fault(
      500,
      'The sandbox wallet failed. Nothing was charged: a payment moves no money until it is sent.',
    );
  }

  /** `{ operation, amount }` → the header of a payment for it, with the amount from the 402 of the call, in atomic units. */
  readonly #pay = async ({ operation: id, amount }: Record<string, unknown>): Promise<Answer> => {
    const { contract, offers, rpcUrl, keypair } = this.#parts;
    const sold = contract.paid.find(each => each.id === id);
    if (!sold)
      return fault(400, 'operation must be the operationId of a paid operation. Nothing was signed.');
    const operation = atNamedPrice(sold, amount);
    if (!operation)
      return fault(
        400,
        'amount must be the amount in the 402 of the call, in atomic units. Nothing was signed.',
      );
    if (this.#signing >= MAX_AT_ONCE) return fault(503, BUSY, { 'Retry-After': '1' });
    this.#signing += 1;
    try {
      // Loaded with the first payment, because most servers never sign one.
      const { createSigner, SigningFault } = await fromWallet<typeof Signer>('signer');
      const { chooseOffer } = await fromWallet<typeof Offer>('offer');
      const signer = await createSigner(keypair, rpcUrl);
      const { body } = offers.challenge(operation, offers.methods.first);
      const required = JSON.parse(body.toString()) as Offer.Challenge['required'];
      const offer = chooseOffer({ required }, signer.address);
      if (typeof offer === 'string')
        return fault(503, `The sandbox wallet can't pay: ${offer}.`, { 'Retry-After': '5' });
      const signed = await signer.sign(offer).catch((error: unknown) => {
        if (error instanceof SigningFault) return error;
        throw error;
      });
      if (signed instanceof SigningFault) return fault(503, `${signed.message}.`, { 'Retry-After': '5' });
      const header = Buffer.from(JSON.stringify(signed.payment)).toString('base64');
      return { status: 200, value: { header, payer: signer.address, amount: toDecimal(offer.amount) } };
    } finally {
      this.#signing -= 1;
    }
  };

  /** `{ signature }` → the amounts moved by its transaction, read from the chain. */
  readonly #transfer = async ({ signature }: Record<string, unknown>): Promise<Answer> => {
    const { asset, closing } = this.#parts;
    if (typeof signature !== 'string' || !isSignature(signature))
      return fault(400, "signature must be a transaction's signature in base58.");
    const landed = await withDeadline(CHAIN_MS, closing, signal => this.#landed(signature, signal)).catch(
      () => null,
    );
    if (!landed) return fault(404, 'The chain has no such transaction.');
    const moved = [...changesOf(landed, asset)];
    const from = moved.find(([, change]) => change < 0n);
    const to = moved.find(([, change]) => change > 0n);
    if (landed.failed || !from || !to) return fault(404, 'This transaction moved no USDC.');
    const value = { signature, slot: landed.slot, from: from[0], to: to[0], amount: toDecimal(to[1]) };
    return { status: 200, value };
  };

  /** A receipt may arrive a moment before the RPC server shows its transaction. */
  async #landed(signature: string, signal: AbortSignal): Promise<LandedTransaction> {
    for (;;) {
      const landed = await this.#parts.chain.transaction(signature, 'confirmed', signal);
      if (landed) return landed;
      await pause(LOOK_AGAIN_MS, signal);
    }
  }
}

function fromWallet<T>(module: 'signer' | 'offer'): Promise<T> {
  return importFromSandbox<T>(`wallet/${module}.js`, 'The wallet of this page');
}

/** The operation at the price that a request names; undefined if it has no such price. */
function atNamedPrice(operation: PricedOperation, amount: unknown): PricedOperation | undefined {
  if (typeof amount !== 'string' || !ATOMIC.test(amount)) return undefined;
  const { least, most } = operation.pricing;
  const atomic = BigInt(amount);
  return atomic < least.atomic || atomic > most.atomic ? undefined : atPrice(operation, atomic);
}

/** The change of each owner's balance of a mint, which a transaction reports as balances before and after. */
function changesOf({ tokens }: LandedTransaction, asset: string): Map<string, bigint> {
  const changes = new Map<string, bigint>();
  for (const { mint, owner, change } of tokens ?? [])
    if (mint === asset) changes.set(owner, (changes.get(owner) ?? 0n) + change);
  return changes;
}

const BUSY = 'The sandbox wallet is busy. Nothing was signed: try again in a second.';

function fault(status: number, error: string, headers: Record<string, string> = {}): Answer {
  return { status, value: { error }, headers };
}
