import { expect } from 'chai';
import { parseContract } from '../../src/contract/parse-contract.js';
import { serverJson } from '../../src/documents/mcp-server-json.js';
import { ANY_SHOP } from '../support/any-shop.js';
import { SOLD } from '../support/sold.js';
import { sellingOf } from '../support/selling.js';

const termsAt = (publicUrl: string) => ({
  network: 'solana:x',
  v1Network: 'solana',
  asset: 'mint',
  payTo: 'p',
  publicUrl,
});

/** The limits of the schema that the MCP registry publishes (2025-12-11), as far as they concern an entry with a remote. */
function expectValid(entry: Record<string, unknown>): void {
  expect(entry).to.have.all.keys(
    ...['$schema', 'name', 'title', 'description', 'version', 'websiteUrl', 'remotes', '_meta'],
  );
  expect(entry['name']).to.match(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
  expect(entry['name']).to.have.length.within(3, 200);
  for (const text of ['title', 'description']) expect(entry[text]).to.have.length.within(1, 100);
  expect(entry['version']).to.match(/^\d+\.\d+\.\d+/);
  for (const url of [entry['$schema'], entry['websiteUrl']])
    expect(new URL(String(url)).protocol).to.equal('https:');
}

describe('The entry for the MCP registry, server.json', () => {
  it('is made from the contract and PUBLIC_URL', () => {
    const entry = serverJson(SOLD, sellingOf(termsAt('https://shop.example.com')));
    expectValid(entry);
    expect(entry).to.deep.include({
      name: 'com.example.shop/coinslot',
      title: 'Coinslot',
      version: (SOLD.document.info as { version: string }).version,
      remotes: [{ type: 'streamable-http', url: 'https://shop.example.com/mcp' }],
    });
    const [provided] = Object.values(entry['_meta'] as Record<string, { prices: object }>);
    expect(provided?.prices).to.deep.equal(
      Object.fromEntries(SOLD.paid.map(({ id, price }) => [id, `${price.amount} USDC`])),
    );
  });

  it('stays within the limits for other shops and hosts', () => {
    const shop = parseContract(ANY_SHOP);
    const long = {
      ...shop,
      document: { info: { title: `${'Ümläut '.repeat(40)}`, version: '2.1.0', summary: 'word '.repeat(40) } },
    };
    expectValid(serverJson(shop, sellingOf(termsAt('https://example.com'))));
    const entry = serverJson(long, sellingOf(termsAt('https://example.com/shop')));
    expectValid(entry);
    expect(entry['description']).to.match(/word…$/);
    const nameAt = (url: string): unknown => serverJson(SOLD, sellingOf(termsAt(url)))['name'];
    expect(nameAt('http://127.0.0.1:8402')).to.equal('127.0.0.1/coinslot');
    expect(nameAt('http://localhost:8402')).to.equal('localhost/coinslot');
    expect(nameAt('http://[::1]:8402')).to.equal('1/coinslot');
  });
});
