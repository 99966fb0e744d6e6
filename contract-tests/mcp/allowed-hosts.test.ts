import { expect } from 'chai';
import { foreignHost } from '../../src/mcp/allowed-hosts.js';

const OWN = { publicUrl: 'https://shop.example', siteUrl: 'https://www.shop.example', trustedProxies: 0 };

describe('who may call over MCP (DNS rebinding)', () => {
  const refused = (host: string | undefined, origin?: string): boolean =>
    foreignHost(
      { ...(host === undefined ? {} : { host }), ...(origin === undefined ? {} : { origin }) },
      OWN,
    ) !== undefined;

  it('a request under the name of the server, an address or localhost, with any port', () => {
    for (const host of [
      'shop.example',
      'shop.example:8402',
      '10.0.0.7:8402',
      '[::1]:8402',
      'localhost',
      'a.localhost:1',
    ])
      expect(refused(host), host).to.equal(false);
  });

  it('no request under another name, or under none', () => {
    for (const host of [
      'evil.example',
      'shop.example.evil.example',
      'localhost.evil.example',
      '10.0.0.7.evil.example',
      '',
      undefined,
    ])
      expect(refused(host), host).to.equal(true);
  });

  it('a request that a trusted proxy forwards under its own name, if it passes on the original name', () => {
    const passed = (forwarded: string, more: object, trustedProxies = 1): boolean =>
      foreignHost(
        { host: 'coinslot_upstream', 'x-forwarded-host': forwarded, ...more },
        { ...OWN, trustedProxies },
      ) === undefined;
    expect(passed('shop.example', {})).to.equal(true);
    expect(passed('evil.example, shop.example:443', {})).to.equal(true);
    expect(passed('evil.example', {})).to.equal(false);
    expect(passed('shop.example, evil.example', {})).to.equal(false);
    expect(passed('shop.example', {}, 0)).to.equal(false);
    // A page can write the header, but not its own origin.
    expect(passed('shop.example', { origin: 'http://evil.example' })).to.equal(false);
  });

  it('the answer to a refused name says what to set', () => {
    expect(foreignHost({ host: 'coinslot_upstream' }, OWN)).to.equal(
      'The Host header names coinslot_upstream, which is not this server: use https://shop.example/mcp. ' +
        'If you called that host, the operator of this server has to set PUBLIC_URL, or its proxy has to pass on the Host of its callers ' +
        '(nginx: proxy_set_header Host $host), or X-Forwarded-Host with TRUST_PROXY set to the number of proxies.',
    );
  });

  it('pages of the server, of its site and of this machine', () => {
    for (const origin of [
      'https://shop.example',
      'https://www.shop.example',
      'http://localhost:6274',
      'http://127.0.0.1:3000',
    ])
      expect(refused('shop.example', origin), origin).to.equal(false);
  });

  it('no pages of others, including those at an IP address and those without an origin', () => {
    for (const origin of [
      'https://evil.example',
      'https://shop.example.evil.example',
      'http://10.0.0.7',
      'null',
      '',
    ])
      expect(refused('shop.example', origin), origin).to.equal(true);
  });
});
