import { AsyncLocalStorage } from 'node:async_hooks';
import type { x402Facilitator as Facilitator } from '@x402/core/facilitator';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { feeFault, type FeeFault } from '../rails/solana/fee-limits.js';
import { readTransaction } from '../rails/solana/message.js';
import { NETWORKS } from '../rails/solana/networks.js';
import { serveHttp, type HttpAnswer, type HttpRequest, type HttpServer } from './http-server.js';
import { ID_HEADER } from './rpc-http.js';

export type FacilitatorOptions = {
  host: string;
  port: number;
  rpcUrl: string;
  /** Key of the fee payer: 64 bytes, seed and public key. */
  feePayer: Uint8Array;
  /** The chain's id, sent with every answer. */
  id: string;
  /** Receives what the x402 packages print, such as the reason why a settlement failed. */
  log: (line: string) => void;
};

type PaymentCall = { paymentPayload: PaymentPayload; paymentRequirements: PaymentRequirements };
type Json = { [name: string]: unknown };

const MAX_BODY = 256 * 1024;
/** A settlement may wait 30 s for its confirmation; beyond this many concurrent calls, the caller must try again later. */
const MAX_CALLS = 512;

/**
 * Serves an x402 facilitator (x402 specification v2, section 7): GET /supported, POST /verify, POST /settle, GET /health.
 * Uses the official implementation, which accesses the chain only through `rpcUrl`. Invalid bodies get 400.
 */
export async function serveFacilitator(options: FacilitatorOptions): Promise<HttpServer> {
  const facilitator = await createFacilitator(options);
  let calls = 0;
  return serveHttp({
    host: options.host,
    port: options.port,
    portName: 'SANDBOX_FACILITATOR_PORT',
    maxBody: MAX_BODY,
    headers: { [ID_HEADER]: options.id },
    handle: async request => {
      if (calls >= MAX_CALLS) {
        return {
          status: 503,
          body: { error: 'Too many payments at once: try again.' },
          headers: { 'retry-after': '1' },
        };
      }
      calls++;
      try {
        return await printingTo(options.log, () => answer(facilitator, request));
      } finally {
        calls--;
      }
    },
  });
}

async function createFacilitator({ rpcUrl, feePayer }: FacilitatorOptions): Promise<Facilitator> {
  const [
    { createKeyPairSignerFromBytes },
    { x402Facilitator },
    svm,
    { ExactSvmScheme },
    { ExactSvmSchemeV1 },
  ] = await Promise.all([
    import('@solana/kit'),
    import('@x402/core/facilitator'),
    import('@x402/svm'),
    import('@x402/svm/exact/facilitator'),
    import('@x402/svm/exact/v1/facilitator'),
  ]);
  const keyPair = await createKeyPairSignerFromBytes(feePayer);
  const signer = svm.toFacilitatorSvmSigner(keyPair, { defaultRpcUrl: rpcUrl });
  const cache = new svm.SettlementCache();
  const { caip2, v1 } = NETWORKS.sandbox;
  return new x402Facilitator()
    .register(caip2, new ExactSvmScheme(signer, cache))
    .registerV1(v1 as PaymentRequirements['network'], new ExactSvmSchemeV1(signer, cache));
}

async function answer(facilitator: Facilitator, { method, path, body }: HttpRequest): Promise<HttpAnswer> {
  const route = `${method} ${path}`;
  if (route === 'GET /health') return { status: 200, body: { status: 'ok' } };
  if (route === 'GET /supported') return { status: 200, body: facilitator.getSupported() };
  if (route !== 'POST /verify' && route !== 'POST /settle') {
    return {
      status: 404,
      body: { error: 'This facilitator answers GET /supported, POST /verify, POST /settle, GET /health.' },
    };
  }
  const call = readCall(body);
  if (typeof call === 'string') return { status: 400, body: { error: call } };
  const { paymentPayload, paymentRequirements } = call;
  const fault = unsupported(facilitator, call);
  const fees = fault ? undefined : feesRefused(paymentPayload);
  if (path === '/verify') {
    if (fault) return { status: 400, body: { isValid: false, invalidReason: fault, error: fault } };
    if (fees)
      return {
        status: 200,
        body: { isValid: false, invalidReason: fees.reason, invalidMessage: fees.message },
      };
    return { status: 200, body: await facilitator.verify(paymentPayload, paymentRequirements) };
  }
  const { network } = paymentRequirements;
  if (fees)
    return {
      status: 200,
      body: {
        success: false,
        errorReason: fees.reason,
        errorMessage: fees.message,
        transaction: '',
        network,
      },
    };
  if (fault)
    return {
      status: 400,
      body: { success: false, errorReason: fault, transaction: '', network, error: fault },
    };
  return { status: 200, body: await facilitator.settle(paymentPayload, paymentRequirements) };
}

/** Checks the fee here, because the scheme's options limit only the price per compute unit, and those of x402 v1 limit nothing. */
function feesRefused({ payload }: PaymentPayload): FeeFault | undefined {
  try {
    return feeFault(readTransaction(Buffer.from(String(payload['transaction']), 'base64')));
  } catch (error) {
    return {
      reason: 'invalid_exact_svm_payload_transaction_could_not_be_decoded',
      message: (error as Error).message,
    };
  }
}

function unsupported(
  facilitator: Facilitator,
  { paymentPayload, paymentRequirements }: PaymentCall,
): string | null {
  const { scheme, network } = paymentRequirements;
  const { x402Version } = paymentPayload;
  const known = facilitator
    .getSupported()
    .kinds.filter(kind => kind.x402Version === x402Version && kind.scheme === scheme);
  if (known.length === 0) return 'unsupported_scheme';
  return known.some(kind => kind.network === network) ? null : 'invalid_network';
}

/** Reads a body of /verify or /settle, version 1 or 2; returns an error message if it is invalid. */
function readCall(body: string): PaymentCall | string {
  let call: Json | null;
  try {
    call = object(JSON.parse(body));
  } catch {
    return 'The body is not JSON.';
  }
  const payload = object(call?.['paymentPayload']);
  const requirements = object(call?.['paymentRequirements']);
  if (!payload || !requirements)
    return 'The body must contain the objects paymentPayload and paymentRequirements.';
  const version = payload['x402Version'];
  if (version !== 1 && version !== 2) return 'paymentPayload.x402Version must be 1 or 2.';
  const offer = version === 2 ? object(payload['accepted']) : payload;
  if (!hasTexts(offer, ['scheme', 'network'])) {
    return `paymentPayload${version === 2 ? '.accepted' : ''} must contain scheme and network.`;
  }
  if (!hasTexts(object(payload['payload']), ['transaction']))
    return 'paymentPayload.payload.transaction must be a string.';
  const amount = version === 2 ? 'amount' : 'maxAmountRequired';
  const needed = ['scheme', 'network', 'asset', 'payTo', amount];
  if (!hasTexts(requirements, needed))
    return `paymentRequirements must contain the strings ${needed.join(', ')}.`;
  if (!/^[0-9]{1,20}$/.test(String(requirements[amount])))
    return `paymentRequirements.${amount} must be atomic units.`;
  return {
    paymentPayload: payload as unknown as PaymentPayload,
    paymentRequirements: requirements as unknown as PaymentRequirements,
  };
}

function object(value: unknown): Json | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
}

function hasTexts(value: Json | null, names: string[]): boolean {
  return value !== null && names.every(name => typeof value[name] === 'string' && value[name] !== '');
}

const printer = new AsyncLocalStorage<(line: string) => void>();
let patched = false;

/** Runs `work` and redirects its `console.error` output to `log`. The output of other code is printed as usual. */
function printingTo<T>(log: (line: string) => void, work: () => Promise<T>): Promise<T> {
  if (!patched) {
    patched = true;
    const output: { error: (...parts: unknown[]) => void } = globalThis.console;
    const print = output.error.bind(output);
    output.error = (...parts) => {
      const to = printer.getStore();
      if (to) to(parts.map(part => (part instanceof Error ? part.message : String(part))).join(' '));
      else print(...parts);
    };
  }
  return printer.run(log, work);
}
