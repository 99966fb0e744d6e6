import { expect } from 'chai';
import { DIRECTORIES, listShop, type Listing } from '../../../src/cli/list/list-shop.js';
import { Findings } from '../../../src/cli/conformance/findings.js';
import { checkAddress } from '../../../src/cli/conformance/listing-checks.js';
import { fakeShop, put, type Shop, type StandIn } from './stand-ins.js';

/** The faults to fix, except the one that every shop in these tests has: directories can't reach its address. */
function toMend({ findings }: Listing): string[] {
  return findings
    .filter(({ fault, advice }) => fault !== undefined && !advice)
    .map(({ promise, fault }) => `${promise}: ${fault}`)
    .filter(each => !each.startsWith('directories list this address'));
}

function advice({ findings }: Listing): string[] {
  return findings
    .filter(each => each.fault !== undefined && each.advice)
    .map(({ promise, fault }) => `${promise}: ${fault}`);
}

type Harm = [name: string, says: string, change: (shop: Shop) => void];

describe('coinslot list, the rules of directories', () => {
  let shop: StandIn | undefined;
  afterEach(() => shop?.close());

  async function look(change?: (shop: Shop) => void): Promise<Listing> {
    shop = await fakeShop(change);
    return listShop({ url: shop.url, directories: DIRECTORIES, offline: true });
  }

  it("finds nothing to fix in a shop that follows them, except that its address can't be reached", async () => {
    const listing = await look();
    expect(toMend(listing)).to.deep.equal([]);
    expect(advice(listing)).to.deep.equal([]);
    const [address] = listing.findings;
    expect(address?.fault).to.contain('is not https').and.to.contain('set PUBLIC_URL');
    expect(listing.failed).to.equal(true);
    expect(listing.notes.join()).to.contain('no directory was contacted');
  });

  const operation = 'paths /weather get';
  const info = `${operation} x-payment-info`;
  const bazaar = 'extensions bazaar';
  const harms: Harm[] = [
    ['no description', 'serve your OpenAPI document at this path', each => put(each, 'document', {})],
    ['nothing with a price', 'write x-price', each => put(each.document, 'paths', {})],
    ['no x-payment-info', 'GET /weather: it is missing', each => put(each.document, info)],
    [
      'a price as a text',
      'its price is 0.02: write price: { mode: fixed',
      each => put(each.document, `${info} price`, '0.02'),
    ],
    [
      'a price without a currency',
      'its price has no currency',
      each => put(each.document, `${info} price currency`),
    ],
    [
      'protocols by their names',
      'its protocols are ["x402"]',
      each => put(each.document, `${info} protocols`, ['x402']),
    ],
    [
      'a dynamic price without its bounds',
      'needs min and max',
      each => put(each.document, `${info} price`, { mode: 'dynamic', currency: 'USD' }),
    ],
    ['no 402 among the responses', 'add 402', each => put(each.document, `${operation} responses 402`)],
    [
      'another price in the 402',
      'amount is 30000, but the price of 0.02 USD is 20000',
      each => put(each.challenge, 'accepts 0 amount', '30000'),
    ],
    [
      'a 402 for another address',
      'resource is http://localhost:3000/paid',
      each => put(each.challenge, 'resource url', 'http://localhost:3000/paid'),
    ],
    ['no extension bazaar', 'facilitators list nothing', each => put(each.challenge, bazaar)],
    [
      'an example that does not match its own schema',
      'its example does not match its own schema',
      each => put(each.challenge, `${bazaar} info input queryParams city`, 7),
    ],
    [
      'an example of another method',
      'its method is POST',
      each => put(each.challenge, `${bazaar} info input method`, 'POST'),
    ],
    [
      'a path template with dot segments',
      'which x402 does not allow',
      each => put(each.challenge, `${bazaar} routeTemplate`, '/%2e%2e/x'),
    ],
    [
      'a long name',
      'resource.serviceName: String must contain at most 32',
      each => put(each.challenge, 'resource serviceName', 'x'.repeat(33)),
    ],
    [
      'many tags',
      'resource.tags: Array must contain at most 5',
      each => put(each.challenge, 'resource tags', [...'abcdef']),
    ],
    [
      'an icon that is not an http URL',
      'an http(s) URL',
      each => put(each.challenge, 'resource iconUrl', 'data:image/png,x'),
    ],
    [
      'an answer without a schema',
      '@agentcash/discovery: SCHEMA_OUTPUT_MISSING',
      each => put(each.challenge, `${bazaar} schema properties output`),
    ],
    [
      'an entry for the MCP registry without a version',
      "must have required property 'version'",
      each => put(each.entry, 'version'),
    ],
  ];
  for (const [name, says, change] of harms)
    it(`says how to fix ${name}`, async () => {
      const listing = await look(change);
      expect(toMend(listing).join('\n')).to.contain(says);
    });

  const hints: Harm[] = [
    ['no contact', 'add it to openapi.yaml', each => put(each.document, 'info contact')],
    [
      'headers that nginx drops',
      'nginx passes on only 4096',
      each => (each.headers['X-Long'] = 'x'.repeat(3000)),
    ],
    [
      'a price that Coinbase does not accept',
      'refuses less than 1000',
      each => {
        put(each.challenge, 'accepts 0 amount', '500');
        put(each.document, `${info} price amount`, '0.0005');
      },
    ],
  ];
  for (const [name, says, change] of hints)
    it(`advises on ${name}`, async () => {
      const listing = await look(change);
      expect(toMend(listing)).to.deep.equal([]);
      expect(advice(listing).join('\n')).to.contain(says);
    });

  it('reports that nothing answers at an address', async () => {
    const listing = await listShop({ url: 'http://127.0.0.1:1', directories: DIRECTORIES, offline: true });
    expect(toMend(listing).join()).to.contain('fetch failed');
    expect(listing.failed).to.equal(true);
  });
});

describe('coinslot list, the address of a shop', () => {
  for (const [url, says] of [
    ['http://shop.example.com', 'is not https'],
    ['https://10.0.0.7', 'is a private address'],
    ['https://shop.internal', 'is not a public host name'],
    ['https://calm-otter.trycloudflare.com', 'is a tunnel'],
    ['https://abc.ngrok-free.app', 'is a tunnel'],
    ['https://shop.example.com', undefined],
  ] as const)
    it(`${url} ${says ?? 'is one that directories list'}`, async () => {
      const findings = new Findings();
      await checkAddress(url, findings, 'must');
      expect(findings.all[0]?.fault ?? 'none').to.contain(says ?? 'none');
    });
});
