import type { PricedOperation } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import type { Carrier, Method, MethodDocuments, Reading, Receipt, Receipted } from '../method.js';
import { foreignTo, mismatchOf } from './accepted.js';
import { exampleChallenge, renderChallenge, type ChallengeVersion } from './challenge.js';
import { networkName, type Terms } from './requirements.js';
import { signedReceipt } from './signed-receipt.js';
import { toolChallenge } from './tool-challenge.js';
import { decodePayment, PAYMENT_HEADERS, type Decoded } from './wire.js';

/** The metadata keys of the receipt in an MCP result: x402's, and that of a client package that some hosts use. */
const RECEIPT_KEYS = ['x402/payment-response', 'x402.payment-response'] as const;

/** x402 v2 and v1, scheme `exact` on Solana, under the given terms. */
export function x402Methods(terms: Terms): [Method, Method] {
  const decoded = new WeakMap<Carrier, Decoded>();
  const decode = (carrier: Carrier): Decoded => {
    let known = decoded.get(carrier);
    if (!known) decoded.set(carrier, (known = decodePayment(carrier)));
    return known;
  };
  return [methodOf(2, terms, decode), methodOf(1, terms, decode)];
}

function methodOf(version: ChallengeVersion, terms: Terms, decode: (carrier: Carrier) => Decoded): Method {
  const method: Method = {
    name: `x402-v${version}`,
    protocol: 'x402',
    requestHeaders: PAYMENT_HEADERS,
    answerHeaders: version === 2 ? ['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE'] : ['X-PAYMENT-RESPONSE'],
    fresh: false,
    isAskedBy: query => version === 1 && new URLSearchParams(query).get('x402Version') === '1',
    read(carrier, operation) {
      const found = decode(carrier);
      if (found.kind === 'none') return undefined;
      if ((found.kind === 'fault' ? found : found.payment).version !== version) return undefined;
      return found.kind === 'fault'
        ? { kind: 'refused', method, error: found.error }
        : read(found.payment, operation);
    },
    challenge: (operation, live, error) => renderChallenge(operation, terms, live, version, error),
    example: operation => exampleChallenge(operation, terms, version),
    toolChallenge,
    receiptHeaders(receipt, goesWith) {
      const name = version === 2 ? 'PAYMENT-RESPONSE' : 'X-PAYMENT-RESPONSE';
      return { [name]: Buffer.from(JSON.stringify(receiptOf(receipt, goesWith))).toString('base64') };
    },
    receiptMeta(receipt, goesWith) {
      const told = receiptOf(receipt, goesWith);
      return Object.fromEntries(RECEIPT_KEYS.map(key => [key, told]));
    },
    documents: () => documentsOf(version, terms),
  };
  return method;

  function read(payment: (Decoded & { kind: 'payment' })['payment'], operation: PricedOperation): Reading {
    const error = foreignTo(terms, payment);
    if (error !== undefined) return { kind: 'refused', method, error };
    const { transaction, identifier = null } = payment;
    const mismatch = mismatchOf(terms, payment, operation);
    const credential = { method, evidence: transaction, identifier };
    return {
      kind: 'credential',
      credential: mismatch === undefined ? credential : { ...credential, mismatch },
    };
  }

  /** x402's SettlementResponse. */
  function receiptOf({ amount, ...receipt }: Receipt, { signed }: Receipted): Json {
    const network = networkName(terms, version);
    const extensions = signed === undefined ? {} : { extensions: signedReceipt(signed) };
    return { ...receipt, network, ...(amount === undefined ? {} : { amount }), ...extensions };
  }
}

function documentsOf(version: ChallengeVersion, { network, asset }: Terms): MethodDocuments {
  if (version === 1) {
    const only = 'Clients that know only x402 v1 add';
    return {
      instructions: `${only} ?x402Version=1 to the URL.`,
      steps: [`${only} \`?x402Version=1\` to the URL.`],
    };
  }
  return {
    protocol: { x402: {} },
    instructions:
      'A call without payment returns a 402 descriptor: the challenge, in the ' +
      'JSON body and base64-encoded in the PAYMENT-REQUIRED header, with price, asset, network and payTo. Pay with the x402 scheme ' +
      'exact in USDC on Solana: sign the payment with an x402 client and repeat the same call with it in the PAYMENT-SIGNATURE ' +
      '(v2) or X-PAYMENT (v1) header.',
    steps: [
      '1. Call the operation as listed below, without payment. The answer is 402 with a challenge (JSON in the body, the same in base64 ' +
        'in the header `PAYMENT-REQUIRED`): price, token, network, receiver.',
      `2. Sign one of its \`accepts\` with an x402 client: scheme \`exact\`, USDC (mint \`${asset}\`) on \`${network}\`. The server's ` +
        'facilitator pays the network fee, so the wallet needs USDC only.',
      '3. Repeat the same call with the payment in the header `PAYMENT-SIGNATURE` (x402 v2) or `X-PAYMENT` (x402 v1). The answer is ' +
        '200, with a receipt in `PAYMENT-RESPONSE`.',
    ],
    tool:
      'x402 (scheme exact): a paid tool called without a payment returns PaymentRequired as an error result, in structuredContent and as JSON ' +
      'in the text. Sign one of its "accepts" and call the tool again with the same arguments and the PaymentPayload in ' +
      '_meta["x402/payment"], or in the header PAYMENT-SIGNATURE; the receipt is in _meta["x402/payment-response"].',
    phrase: 'x402 on Solana',
    terms: { protocol: 'x402', scheme: 'exact', network, asset },
  };
}
