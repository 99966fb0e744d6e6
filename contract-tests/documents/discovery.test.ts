import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import addFormatsModule from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { stringify } from 'yaml';
import { parseContract } from '../../src/contract/parse-contract.js';
import { discoveryOf, indexOf, servedContract } from '../../src/documents/discovery.js';
import type { Terms } from '../../src/methods/x402/requirements.js';
import { RELEASED, SOLD } from '../support/sold.js';
import { sellingOf } from '../support/selling.js';

/** A contract whose prices and operations do not change. */
const contract = RELEASED;
const SITE = 'https://site.example/about';
const TERMS: Terms = {
  network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  v1Network: 'solana',
  asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  payTo: '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4',
  publicUrl: 'https://pay.example',
};

const ajv = new Ajv2020({ strict: false });
(addFormatsModule as unknown as (ajv: Ajv2020) => void)(ajv);
ajv.addSchema(contract.document, 'contract');

function expectKept(schema: string, value: unknown): void {
  const validate = ajv.compile({ $ref: `contract#/components/schemas/${schema}` });
  expect(validate(value), ajv.errorsText(validate.errors)).to.equal(true);
}

describe('The discovery document', () => {
  const all = discoveryOf(contract.paid, sellingOf(TERMS));

  it('lists the paid operations under our public address', () => {
    expectKept('Discovery', all);
    expect(all.version).to.equal(1);
    expect(all.resources).to.deep.equal([
      'https://pay.example/v1/summarize',
      'https://pay.example/v1/sol-token-brief',
      'https://pay.example/v1/sol-mint-info',
      'https://pay.example/brand-feedback',
      'https://pay.example/v1/tts',
    ]);
  });

  it('describes the call shapes, the prices and the payment scheme, and says that a call without payment returns a 402 descriptor', () => {
    const instructions = String(all.instructions);
    const shapes: [string, string, string][] = [
      ['POST /v1/summarize', '{"text": string}', '0.01 USDC'],
      ['POST /v1/sol-token-brief', '{"mint": string}', '0.01 USDC'],
      ['POST /v1/sol-mint-info', '{"mint": string}', '0.01 USDC'],
      ['POST /brand-feedback', '{"brand": string, "question": string, "n"?: integer}', '0.50 USDC'],
      ['POST /v1/tts', '{"text": string, "voice_id"?: string}', '0.025 USDC'],
    ];
    for (const [call, shape, price] of shapes) {
      const line = instructions.split('\n').find(text => text.startsWith(`${call} `));
      expect(line, call).to.contain(shape).and.to.contain(`costs ${price}`);
    }
    expect(instructions).to.contain('A call without payment returns a 402 descriptor');
    expect(instructions).to.match(/x402 scheme exact in USDC on Solana/);
    expect(instructions).to.contain('only x402 v1 add ?x402Version=1 to the URL');
    for (const header of ['PAYMENT-SIGNATURE', 'X-PAYMENT', 'PAYMENT-REQUIRED'])
      expect(instructions).to.contain(header);
  });

  it("for one upstream, lists and describes only that upstream's operations", () => {
    const audio = discoveryOf(
      contract.paid.filter(operation => operation.tags.includes('Audio')),
      sellingOf(TERMS),
    );
    expectKept('Discovery', audio);
    expect(audio.resources).to.deep.equal(['https://pay.example/v1/tts']);
    expect(audio.instructions).to.contain('/v1/tts').and.not.to.contain('/v1/summarize');
  });
});

describe('The service index', () => {
  it('has the fields of the specification, prices as in the contract and paths of this server', () => {
    const index = indexOf(SOLD, SITE);
    expectKept('ServiceIndex', index);
    expect(index).to.deep.equal({
      service: 'coinslot',
      endpoints: Object.fromEntries(
        SOLD.paid.map(({ method, path, price }) => [`${method} ${path}`, `${price.amount} USDC`]),
      ),
      discovery: ['/.well-known/x402', '/openapi.json'],
      upstreamDiscovery: ['/seller/.well-known/x402', '/brand/.well-known/x402', '/tts/.well-known/x402'],
      mcp: '/mcp',
      health: ['/health', '/brand/health', '/tts/health'],
      site: SITE,
    });
  });

  it('names no path that the contract does not have', () => {
    const index = indexOf(SOLD, SITE) as Record<string, string[]>;
    const paths = SOLD.free.map(operation => operation.path);
    for (const path of ['discovery', 'upstreamDiscovery', 'health'].flatMap(field => index[field]!)) {
      expect(paths).to.include(path);
    }
  });
});

describe('The served description', () => {
  const before = JSON.stringify(contract.document);
  const served = servedContract(contract, sellingOf(TERMS), SITE) as Json & {
    info: Json;
    paths: Record<string, Record<string, Json>>;
  };

  it('has our address, contact and guidance', () => {
    expectKept('OpenApiDocument', served);
    expect(served.servers).to.deep.equal([{ url: 'https://pay.example' }]);
    expect(served.info.contact).to.deep.equal({ name: 'Coinslot', url: SITE });
    expect(served['x-service-info']).to.deep.equal({
      categories: [...new Set(contract.paid.flatMap(({ tags }) => tags))],
      docs: { homepage: SITE, llms: `${TERMS.publicUrl}/llms.txt` },
    });
    expect(served.info['x-guidance']).to.equal(discoveryOf(contract.paid, sellingOf(TERMS)).instructions);
  });

  it('says how each paid operation, and no other, is paid', () => {
    const informed: string[] = [];
    for (const [path, item] of Object.entries(served.paths)) {
      for (const operation of Object.values(item)) if ('x-payment-info' in operation) informed.push(path);
    }
    expect(informed).to.deep.equal(contract.paid.map(operation => operation.path));
    for (const { path, price } of contract.paid) {
      expect(served.paths[path]!.post!['x-payment-info']).to.deep.equal({
        price: { mode: 'fixed', currency: 'USD', amount: price.amount },
        protocols: [{ x402: {} }],
      });
    }
  });

  it('states the cost of a call in the description of each paid operation, which every renderer shows', () => {
    for (const { path, price, flow } of contract.paid) {
      const { description } = served.paths[path]!.post as { description: string };
      const plain = (contract.document.paths as typeof served.paths)[path]!.post!.description as string;
      expect(description.startsWith(`${plain.trim()} `), path).to.equal(true);
      expect(description).to.contain(`Price: ${price.amount} USDC a call`);
      expect(description).to.match(
        flow === 'upfront' ? /paid before the work/ : /charged only for an answer/,
      );
    }
  });

  it('has an example of the 402 of each paid operation at its price, the same in body and header', () => {
    for (const { id, path, price } of contract.paid) {
      const { headers, content } = (served.paths[path]!.post!.responses as Record<string, Json>)['402'] as {
        headers: Record<string, Json>;
        content: Record<string, { example: Json & { accepts: Json[] } }>;
      };
      const { example } = content['application/json']!;
      const header = Buffer.from(headers['PAYMENT-REQUIRED']!.example as string, 'base64').toString();
      expect(JSON.parse(header), id).to.deep.equal(example);
      expectKept('PaymentChallenge', example);
      expect(example.accepts[0]).to.include({ amount: price.atomic.toString(), payTo: TERMS.payTo });
    }
  });

  it('has, as examples, the documents that the server publishes, and says how large a body may be', () => {
    const document = servedContract(SOLD, sellingOf(TERMS), SITE) as typeof served;
    const exampleAt = (path: string): unknown =>
      (document.paths[path]!.get!.responses as Record<string, { content: Record<string, Json> }>)['200']!
        .content['application/json']!.example;
    expect(exampleAt('/')).to.deep.equal(indexOf(SOLD, SITE));
    expect(exampleAt('/.well-known/x402')).to.deep.equal(discoveryOf(SOLD.paid, sellingOf(TERMS)));
    expect((exampleAt('/tts/.well-known/x402') as Json).resources).to.deep.equal([
      'https://pay.example/v1/tts',
    ]);
    const { maxBytes } = SOLD.paid[0]!.request!;
    expect((document.paths['/v1/summarize']!.post!.requestBody as Json).description).to.contain(
      `${maxBytes} bytes`,
    );
  });

  it('is itself a contract: it loads, sells the same operations and resolves its references', () => {
    const again = parseContract(stringify(served), 'openapi.json');
    const offers = ({ paid, free }: typeof contract): unknown => [
      paid.map(({ id, path, price }) => [id, path, price]),
      free,
    ];
    expect(offers(again)).to.deep.equal(offers(contract));
    const references = JSON.stringify(served).match(/"\$ref":"#[^"]+"/g) ?? [];
    expect(references).to.have.length.above(20);
    for (const reference of new Set(references)) {
      const keys = reference.slice('"$ref":"#/'.length, -1).split('/');
      const target = keys.reduce<unknown>((node, key) => (node as Json | undefined)?.[key], served);
      expect(target, reference).to.be.an('object');
    }
  });

  it('refers to every response and header in its components, because linters report unused ones', () => {
    const text = JSON.stringify(served);
    const { responses, headers } = served['components'] as { responses: object; headers: object };
    const all = Object.entries({ responses, headers }).flatMap(([section, named]) =>
      Object.keys(named).map(name => `#/components/${section}/${name}`),
    );
    expect(all.filter(reference => !text.includes(`"${reference}"`))).to.deep.equal([]);
  });

  it('does not change the contract it was made from', () => {
    expect(JSON.stringify(contract.document)).to.equal(before);
    expect(before).not.to.contain('x-payment-info');
  });
});
