import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import { loadContract } from '../../src/contract/parse-contract.js';
import { MAX_HEADER_BYTES } from '../../src/methods/header-bytes.js';
import { MAX_TIMEOUT_SECONDS } from '../../src/methods/x402/requirements.js';
import { breaksRelease } from '../tools/breaking.js';

const contract = loadContract(new URL('../../../openapi.yaml', import.meta.url));

const MINT_LIMITS = {
  required: ['mint'],
  additionalProperties: false,
  'mint.type': 'string',
  'mint.minLength': 32,
  'mint.maxLength': 44,
  'mint.pattern': '^[1-9A-HJ-NP-Za-km-z]{32,44}$',
};

/** The limits of requests. A change here changes what clients may send. */
const FROZEN: Record<string, { limits: Record<string, unknown> }> = {
  'POST /v1/summarize': {
    limits: { required: ['text'], 'text.type': 'string', 'text.minLength': 1, 'text.maxLength': 100_000 },
  },
  'POST /v1/sol-token-brief': {
    limits: MINT_LIMITS,
  },
  'POST /v1/sol-mint-info': {
    limits: MINT_LIMITS,
  },
  'POST /brand-feedback': {
    limits: {
      required: ['brand', 'question'],
      'brand.type': 'string',
      'brand.minLength': 1,
      'brand.maxLength': 200,
      'question.type': 'string',
      'question.minLength': 1,
      'question.maxLength': 2000,
      'n.type': 'integer',
      'n.minimum': 1,
      'n.maximum': 50,
      'n.default': 5,
    },
  },
  'POST /v1/tts': {
    limits: {
      required: ['text'],
      'text.type': 'string',
      'text.minLength': 1,
      'text.maxLength': 2500,
      'voice_id.type': 'string',
      'voice_id.maxLength': 100,
    },
  },
};

/** Required headers of answers, by operation (`*`: every paid one) and status. */
const FROZEN_HEADERS: Record<string, Record<string, string[]>> = {
  '*': { 503: ['Retry-After'] },
  'POST /v1/tts': { 200: ['X-TTS-Voice-Id', 'X-TTS-Format'] },
};

const DESCRIBING = ['description', 'properties', 'type', 'example'];

function limitsOf(schema: Json): Record<string, unknown> {
  const own = Object.entries(schema).filter(([key]) => !DESCRIBING.includes(key));
  const fields = Object.entries(schema['properties'] as Record<string, Json>).flatMap(([name, field]) =>
    Object.entries(field)
      .filter(([key]) => key !== 'description')
      .map(([key, value]) => [`${name}.${key}`, value] as const),
  );
  return Object.fromEntries([...own, ...fields]);
}

function follow(value: unknown): Json {
  const node = value as Json;
  if (typeof node['$ref'] !== 'string') return node;
  return node['$ref']
    .slice(2)
    .split('/')
    .reduce<unknown>((parent, part) => (parent as Json)[part], contract.document) as Json;
}

function requiredHeaders(path: string): Record<string, string[]> {
  const paths = contract.document['paths'] as Record<string, Record<string, Json>>;
  const responses = paths[path]?.['post']?.['responses'] as Record<string, Json>;
  const all = Object.entries(responses).map(([status, response]) => {
    const headers = Object.entries((follow(response)['headers'] ?? {}) as Json);
    return [
      status,
      headers.filter(([, header]) => follow(header)['required']).map(([name]) => name),
    ] as const;
  });
  return Object.fromEntries(all.filter(([, names]) => names.length > 0));
}

describe('What clients rely on does not change:', () => {
  for (const operation of contract.paid) {
    const name = `POST ${operation.path}`;
    const frozen = FROZEN[name];
    // Version 1.0 promised nothing about operations that were added later.
    if (!frozen) continue;

    it(`the limits of a request to ${name}`, () => {
      expect(limitsOf(operation.request!.schema)).to.deep.equal(frozen.limits);
    });

    it(`the required headers of answers to ${name}`, () => {
      expect(requiredHeaders(operation.path)).to.deep.equal({
        ...FROZEN_HEADERS['*'],
        ...FROZEN_HEADERS[name],
      });
    });
  }

  it('the lifetimes of a payment and a challenge', () => {
    expect({ MAX_TIMEOUT_SECONDS, MAX_HEADER_BYTES }).to.deep.equal({
      MAX_TIMEOUT_SECONDS: 60,
      MAX_HEADER_BYTES: 4096,
    });
  });

  it('the promises of 1.0.0, including its prices, except for accepted changes', () => {
    const broken = breaksRelease(contract.document);
    const entries = broken.map(change => `- change: '${change.replaceAll("'", "''")}'\n  why: …`).join('\n');
    expect(
      broken,
      'Old clients can no longer do this. If it is meant, accept it: add to contract-tests/released/accepted-changes.yaml (or take ' +
        `out what it accepts in vain)\n${entries}\n`,
    ).to.deep.equal([]);
  });
});
