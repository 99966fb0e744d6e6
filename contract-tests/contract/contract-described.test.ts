import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import { loadContract } from '../../src/contract/parse-contract.js';
import { follow, isObject, objectOf } from '../../src/contract/references.js';
import { MAX_HEADER_BYTES } from '../../src/methods/header-bytes.js';
import { renderChallenge } from '../../src/methods/x402/challenge.js';
import { serviceOf } from '../../src/methods/x402/service.js';
import { openWorld, post, signFor, type World } from '../support/world.js';

const contract = loadContract(new URL('../../../openapi.yaml', import.meta.url));
const { document, paid } = contract;
const components = objectOf(document.components) as Record<string, Record<string, Json>>;

/** Yields the place of every schema, from this one down, that has neither a description nor a reference. */
function* undescribed(schema: Json, place: string): Generator<string> {
  if (schema.$ref !== undefined) return;
  if (typeof schema.description !== 'string' || schema.description.trim() === '') yield place;
  for (const [name, field] of Object.entries(objectOf(schema.properties)))
    yield* undescribed(objectOf(field), `${place}.${name}`);
  for (const key of ['items', 'additionalProperties'])
    if (isObject(schema[key])) yield* undescribed(schema[key], `${place}.${key}`);
}

describe('The contract explains itself', () => {
  it('describes every schema and every field', () => {
    const found = Object.entries(components.schemas!).flatMap(([name, schema]) => [
      ...undescribed(schema, name),
    ]);
    for (const { id, request } of paid) {
      for (const [name, field] of Object.entries(objectOf(request?.schema.properties)))
        found.push(...undescribed(objectOf(field), `${id}.${name}`));
    }
    expect(found).to.deep.equal([]);
  });

  it('describes every parameter, header, response and tag', () => {
    for (const kind of ['parameters', 'headers', 'responses'])
      for (const [name, part] of Object.entries(components[kind]!))
        expect(part.description, `${kind} ${name}`).to.be.a('string').and.not.equal('');
    for (const { name, description } of document.tags as Json[])
      expect(description, String(name)).to.be.a('string');
  });

  it('says what a price and its flow mean, how long answers are kept, and what a payment-identifier is', () => {
    const { description } = objectOf(document.info);
    for (const text of [
      '`x-price`',
      '`flow: authorization`',
      '`flow: upfront`',
      'payment-identifier',
      '10 minutes',
      '24 hours',
      '7 days',
    ])
      expect(description).to.contain(text);
    expect(objectOf(document.externalDocs).url).to.contain('x402');
  });

  it('says that a call with a 503 and a receipt is paid, and that its answer is in progress', () => {
    const { description } = components.responses!.Unavailable!;
    expect(description).to.match(/reports success, the call is paid and its answer is in\s+progress/);
  });

  it('declares the header with the request id in every answer of a paid operation', () => {
    for (const { id, path, method } of paid) {
      const described = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
      for (const [status, response] of Object.entries(objectOf(described.responses)))
        expect(objectOf(follow(document, response).headers), `${id} ${status}`).to.have.property(
          'X-Request-Id',
        );
    }
  });

  it('has a schema that limits the length of every string that a caller sends', () => {
    for (const { id, request } of paid)
      for (const [name, field] of Object.entries(objectOf(request?.schema.properties)))
        if (objectOf(field).type === 'string')
          expect(objectOf(field).maxLength, `${id}.${name}`).to.be.a('number');
  });

  it('has one complete challenge as an example: the one that this server sends for its first operation', () => {
    const { example } = objectOf(
      objectOf(components.responses!.PaymentRequired!.content)['application/json'],
    );
    const [operation] = paid;
    const { accepts, resource } = example as { accepts: Json[]; resource: { url: string } };
    const { network, asset, payTo, extra } = accepts[0] as { extra: Json } & Record<string, string>;
    const publicUrl = new URL(resource.url).origin;
    const terms = {
      ...{ network: network!, v1Network: 'solana', asset: asset!, payTo: payTo!, publicUrl },
      service: serviceOf(contract, publicUrl),
    };
    const live = { feePayer: String(extra.feePayer), recentBlockhash: String(extra.recentBlockhash) };
    const { body, headers } = renderChallenge(operation!, terms, live);
    expect(example).to.deep.equal(JSON.parse(body.toString()));
    expect(headers['PAYMENT-REQUIRED']).to.have.length.at.most(MAX_HEADER_BYTES);
  });
});

describe('The 400 messages in the contract', () => {
  /** For each example, the request that gets its message. */
  const CALLS: Record<string, [path: string, body: unknown]> = {
    missing: ['/v1/summarize', {}],
    tooLong: ['/v1/tts', { text: 'a'.repeat(2713) }],
    wrongType: ['/v1/summarize', { text: 5 }],
    unknownField: ['/v1/sol-mint-info', { mint: 'z'.repeat(32), network: 'devnet' }],
    notAMint: ['/v1/sol-mint-info', { mint: 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb' }],
    unspeakable: ['/v1/tts', { text: 'Hello, Привет and 世界.' }],
    unknownVoice: ['/v1/tts', { text: 'One coin.', voice_id: 'nobody' }],
    notJson: ['/v1/summarize', '{"text":"One.'],
  };
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });
  after(() => world.close());

  it("are the server's, word for word", async () => {
    const { examples } = objectOf(
      objectOf(components.responses!.InvalidRequest!.content)['application/json'],
    );
    expect(examples).to.have.all.keys(Object.keys(CALLS));
    for (const [name, [path, body]] of Object.entries(CALLS)) {
      const answer = await post(world.url + path, body, await signFor(world, path));
      expect(answer.status, name).to.equal(400);
      expect(answer.json(), name).to.deep.equal(objectOf(objectOf(examples)[name]).value);
    }
  });
});
