import { expect } from 'chai';
import { foreignHost } from '../../src/mcp/allowed-hosts.js';

const OWN = { publicUrl: 'https://shop.example', siteUrl: 'https://www.shop.example', trustedProxies: 0 };

describe('who may call over MCP (DNS rebinding)', () => {
  const refused = (host: string | undefined, origin?: string): boolean =>
    foreignHost(
      { ...(host === undefined ? {} : { host }), ...(origin === undefined ? {} : { origin }) },
      OWN,
    ) !== undefined;

  it("accepts a Host that is the server's name, an IP address or localhost, with any port", () => {
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

  it('refuses any other Host, and a request without one', () => {
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

  it("accepts a request whose Host is a trusted proxy's own name, if the proxy passes on the original name", () => {
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
    // A page can forge X-Forwarded-Host, but not its own Origin.
    expect(passed('shop.example', { origin: 'http://evil.example' })).to.equal(false);
  });

  it('the answer to a refused host name says which settings to change', () => {
    expect(foreignHost({ host: 'coinslot_upstream' }, OWN)).to.equal(
      'The Host header names coinslot_upstream, which is not this server: use https://shop.example/mcp. ' +
        'If you called that host, the operator of this server has to set PUBLIC_URL, or its proxy has to pass on the Host of its callers ' +
        '(nginx: proxy_set_header Host $host), or X-Forwarded-Host with TRUST_PROXY set to the number of proxies.',
    );
  });

  it('accepts pages of the server, its site and this machine', () => {
    for (const origin of [
      'https://shop.example',
      'https://www.shop.example',
      'http://localhost:6274',
      'http://127.0.0.1:3000',
    ])
      expect(refused('shop.example', origin), origin).to.equal(false);
  });

  it('refuses all other pages, including those at an IP address and those without an origin', () => {
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
