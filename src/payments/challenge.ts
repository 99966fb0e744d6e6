import type { Json } from '../contract/json.js';
import type { PricedOperation } from '../contract/contract.js';
import { networkName, requirementsOf, resourceUrl, type Terms } from './requirements.js';
import { USDC_DECIMALS } from '../contract/price.js';
import { TOKEN_PROGRAM } from '../solana/networks.js';

/** A 402 answer that is ready to send: the body, and its base64 for the PAYMENT-REQUIRED header. */
export type Challenge = { body: Buffer; header: string };

/** The parts of an offer that change while the server runs: the fee payer and a recent blockhash (at most 20 s old). */
export type OfferState = { feePayer: string; recentBlockhash?: string | undefined };

/** The x402 version in which a buyer asked for the challenge. */
export type ChallengeVersion = 1 | 2;

/** Reads the version of the challenge from the query. Any value other than `1` counts as absent. */
export function challengeVersion(query: string): ChallengeVersion {
  return query && new URLSearchParams(query).get('x402Version') === '1' ? 1 : 2;
}

/** nginx and other proxies truncate longer response headers. */
export const MAX_HEADER_BYTES = 4096;

const UNPAID = 'Payment required: sign one of the accepted payments and repeat the call with it';

/**
 * Renders the challenge of an operation (x402 v2 PaymentRequired, v1 PaymentRequirementsResponse).
 * It has one option, with the fields of both versions. The network is the CAIP-2 name in the v2 challenge and the v1 name in the v1
 * challenge, because the v2 schema and the closed network list of first-generation clients each reject the other's name. The v1
 * challenge has no text in `error` unless a payment was refused.
 */
export function renderChallenge(
  operation: PricedOperation,
  terms: Terms,
  live: OfferState,
  version: ChallengeVersion = 2,
  error?: string,
): Challenge {
  const reason = error ?? (version === 2 ? UNPAID : undefined);
  const challenge = {
    x402Version: version,
    ...(reason === undefined ? {} : { error: reason }),
    ...(version === 2 ? { resource: resourceOf(operation, terms) } : {}),
    accepts: [option(operation, terms, live, version)],
    ...(version === 2 ? { extensions: extensionsOf(operation) } : {}),
  };
  const body = Buffer.from(JSON.stringify(challenge));
  return { body, header: body.toString('base64') };
}

/** Placeholders for the parts that change while a server runs: an unused address and a blockhash of no chain. */
const EXAMPLE_LIVE: OfferState = {
  feePayer: 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb',
  recentBlockhash: 'EkSnNWid2cvwEVnVx9aBqawnmiCNiDgp3gUdkDPTKN1N',
};

/** A v2 challenge for documents. Clients of a mock can pay it; a real challenge has other addresses and extensions. */
export function exampleChallenge(operation: PricedOperation, terms: Terms): { body: Json; header: string } {
  const whole = JSON.parse(renderChallenge(operation, terms, EXAMPLE_LIVE).body.toString()) as Json;
  const body = Object.fromEntries(Object.entries(whole).filter(([name]) => name !== 'extensions'));
  return { body, header: Buffer.from(JSON.stringify(body)).toString('base64') };
}

function resourceOf(operation: PricedOperation, terms: Terms): Json {
  return {
    url: resourceUrl(operation, terms),
    description: operation.summary,
    mimeType: operation.mimeType,
  };
}

function option(operation: PricedOperation, terms: Terms, live: OfferState, version: ChallengeVersion): Json {
  const { amount, extra, ...requirements } = requirementsOf(operation, terms, live.feePayer);
  return {
    ...requirements,
    network: networkName(terms, version),
    amount,
    maxAmountRequired: amount,
    resource: resourceUrl(operation, terms),
    description: operation.summary,
    mimeType: operation.mimeType,
    ...(version === 1 ? { outputSchema: outputSchemaOf(operation) } : {}),
    extra: { ...extra, ...hintsOf(live) },
  };
}

/** The facts about mint and chain that a buyer would otherwise read from an RPC server before signing. */
function hintsOf({ recentBlockhash }: OfferState): Json {
  return {
    decimals: USDC_DECIMALS,
    tokenProgram: TOKEN_PROGRAM,
    ...(recentBlockhash ? { recentBlockhash } : {}),
  };
}

/** Describes request and answer for crawlers as x402 v1 has it (v2 uses `extensions`). */
function outputSchemaOf({ requestSchema, answerExample }: PricedOperation): Json {
  const { properties, required = [] } = requestSchema as {
    properties: Record<string, Json>;
    required?: string[];
  };
  const fields = Object.entries(properties).map(([name, { type, description }]) => [
    name,
    { type, description, required: required.includes(name) },
  ]);
  return {
    input: {
      type: 'http',
      method: 'POST',
      discoverable: true,
      bodyType: 'json',
      bodyFields: Object.fromEntries(fields) as Json,
    },
    ...(answerExample ? { output: shortExample(answerExample) } : {}),
  };
}

/** The `bazaar` (discovery) and `payment-identifier` (idempotency) extensions of x402 v2, from the contract's own examples. */
function extensionsOf(operation: PricedOperation): Json {
  const json = operation.mimeType === 'application/json';
  return {
    bazaar: {
      info: {
        input: {
          type: 'http',
          method: 'POST',
          bodyType: 'json',
          body: shortExample(operation.requestExample),
        },
        output: { type: json ? 'json' : 'binary', ...(json ? {} : { format: operation.mimeType }) },
      },
      schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          input: {
            type: 'object',
            properties: {
              type: { type: 'string', const: 'http' },
              method: { type: 'string', enum: ['POST'] },
              bodyType: { type: 'string', enum: ['json'] },
              body: withoutProse(operation.requestSchema),
            },
            required: ['type', 'method', 'bodyType', 'body'],
            additionalProperties: false,
          },
          output: {
            type: 'object',
            properties: { type: { type: 'string' }, example: { type: 'object' } },
            required: ['type'],
          },
        },
        required: ['input'],
      },
    },
    'payment-identifier': {
      info: { required: false },
      schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          required: { type: 'boolean' },
          id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
        },
        required: ['required'],
      },
    },
  };
}

const MAX_EXAMPLE_TEXT = 60;

/** Cuts long texts of an example at a word, because header space is limited. */
function shortExample(example: Json): Json {
  return Object.fromEntries(
    Object.entries(example).map(([key, value]) => [
      key,
      typeof value === 'string' && value.length > MAX_EXAMPLE_TEXT
        ? value.slice(0, Math.max(value.lastIndexOf(' ', MAX_EXAMPLE_TEXT), 0) || MAX_EXAMPLE_TEXT)
        : value,
    ]),
  );
}

function withoutProse(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutProse);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => !(key === 'description' && typeof value === 'string'))
      .map(([key, value]) => [key, withoutProse(value)]),
  );
}
