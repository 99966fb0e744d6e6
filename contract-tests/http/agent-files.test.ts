import { expect } from 'chai';
import { request } from 'node:http';
import { parse } from 'yaml';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { parseContract } from '../../src/contract/parse-contract.js';
import { agentFiles } from '../../src/http/agent-files.js';
import { ICON_SVG, iconPng } from '../../src/http/icon.js';
import { serviceOf } from '../../src/methods/x402/service.js';
import { ANY_SHOP } from '../support/any-shop.js';
import { SOLD } from '../support/sold.js';
import { call, openWorld, post, signFor, TEXT, type World } from '../support/world.js';
import { sellingOf } from '../support/selling.js';

type Raw = { status: number; headers: Record<string, string | undefined>; body: Buffer };

/** Fetches without the decompression that `fetch` does. */
function get(url: string, headers: Record<string, string> = {}): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers }, answer => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers as Raw['headers'],
          body: Buffer.concat(chunks),
        }),
      );
    });
    asked.on('error', reject).end();
  });
}

describe('What agents, crawlers and browsers find if they know only the address', () => {
  let world: World;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });
  after(() => world.close());

  it('/schemathesis.toml lists 402 among the expected answers to any call, and /openapi.json links to it', async () => {
    const { status, body } = await call(`${world.url}/schemathesis.toml`);
    expect(status).to.equal(200);
    for (const check of ['positive_data_acceptance', 'negative_data_rejection'])
      expect(body.toString()).to.match(
        new RegExp(`\\[checks\\.${check}\\]\\n(#.*\\n)*expected-statuses = \\[.*\\b402\\b`),
      );
    const { info } = (await call(`${world.url}/openapi.json`)).json() as { info: Record<string, unknown> };
    expect(info['x-schemathesis']).to.equal(`${world.url}/schemathesis.toml`);
  });

  it('/llms.txt follows llmstxt.org, and links to everything that is sold', async () => {
    const { status, headers, body } = await call(`${world.url}/llms.txt`);
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/plain; charset=utf-8']);
    const text = body.toString();
    const [title, , summary] = text.split('\n');
    expect(title).to.match(/^# \S/);
    expect(summary).to.match(/^> \S/);
    const [head = '', ...sections] = text.split(/^## /m);
    expect(head.slice(2)).not.to.match(/^#/m);
    for (const section of sections) {
      const lines = section.trim().split('\n').slice(1).filter(Boolean);
      for (const each of lines) expect(each).to.match(/^- \[[^\]]+\]\(https?:\/\/[^)\s]+\)(: .+)?$/);
    }
    expect(text).to.contain(`](${world.url}/docs)`);
    for (const { examplePath, price, method, request: asked } of SOLD.paid) {
      const [line = ''] = text.split('\n').filter(each => each.includes(`(${world.url}${examplePath})`));
      expect(line).to.contain(`: ${price.amount} USDC. \`${method} `);
      expect(line).to.contain(JSON.stringify(asked?.example));
    }
  });

  it('each link of /llms.txt works, and is marked if it costs money', async () => {
    const { body } = await call(`${world.url}/llms.txt`);
    const links = [...body.toString().matchAll(/\]\((http[^)]+)\)/g)].map(([, url = '']) => url);
    expect(links).to.have.length.above(SOLD.paid.length + 4);
    for (const url of links) {
      const paid = SOLD.paid.some(({ examplePath }) => world.url + examplePath === url);
      const answer = paid || url.endsWith('/mcp') ? await post(url, {}) : await call(url);
      if (paid) expect(answer.status, url).to.equal(402);
      else expect(answer.status, url).to.be.oneOf([200, 400, 406]);
    }
  });

  it('/skill.md says in less than 4 KB what is sold, how to pay and how to resend', async () => {
    const { status, headers, body } = await call(`${world.url}/skill.md`);
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/markdown; charset=utf-8']);
    expect(body.length).to.be.below(4_096);
    const text = body.toString();
    const [, front = '', rest = ''] = /^---\n([^]*?)\n---\n([^]*)$/.exec(text) ?? [];
    const { name, description } = parse(front) as { name: string; description: string };
    expect(name).to.match(/^[a-z0-9-]{1,64}$/);
    expect(description).to.have.length.within(1, 1_024);
    for (const { path, price, id } of SOLD.paid) {
      expect(rest).to.match(new RegExp(`^- .*: ${price.amount} USDC.* at ${world.url}${path}$`, 'm'));
      expect(description).to.contain(id);
    }
    expect(rest)
      .to.contain('`PAYMENT-SIGNATURE`')
      .and.to.contain('send the same payment')
      .and.to.contain('/mcp');
    expect(text).not.to.match(/undefined|\[object/);
  });

  it('/llms-full.txt has every field with its limits, an example of each answer, and a challenge', async () => {
    const text = (await call(`${world.url}/llms-full.txt`)).body.toString();
    for (const { id, request: asked, answers } of SOLD.paid) {
      expect(text).to.contain(`## ${id}: `);
      const fields = (asked?.plain as { properties: Record<string, { maxLength?: number }> }).properties;
      for (const [name, { maxLength }] of Object.entries(fields)) {
        const [line = ''] = text.split('\n').filter(each => each.startsWith(`- \`${name}\` (`));
        expect(line, name).not.to.equal('');
        if (maxLength !== undefined)
          expect(text).to.match(new RegExp(`^- \`${name}\` .*at most ${maxLength} ch`, 'm'));
      }
      const [{ example }] = answers;
      if (example !== undefined) expect(text).to.contain(JSON.stringify(example, null, 2));
    }
    expect(text).to.contain('"x402Version": 2').and.to.contain('payment-identifier');
    expect(text).not.to.match(/undefined|\[object/);
  });

  it('/robots.txt lets crawlers read prices, and names what they must not read', async () => {
    const text = (await call(`${world.url}/robots.txt`)).body.toString();
    expect(text).to.match(/^User-agent: \*\nAllow: \/$/m);
    expect(text).to.contain('Disallow: /panel/\n').and.to.contain('Disallow: /answers/\n');
    expect(text).to.contain(`${world.url}/llms.txt`);
  });

  it('/.well-known/x402.json is the discovery document', async () => {
    const [file, operation] = await Promise.all(
      ['/.well-known/x402.json', '/.well-known/x402'].map(path => call(world.url + path)),
    );
    expect(file?.json()).to.deep.equal(operation?.json());
    expect(file?.headers.get('content-type')).to.contain('application/json');
  });

  it('search engines index no paid answer', async () => {
    const url = `${world.url}/v1/summarize`;
    const sent = { ...(await signFor(world, '/v1/summarize')), 'content-type': 'application/json' };
    const sold = await post(url, { text: TEXT }, sent);
    expect(sold.status).to.equal(200);
    const answers = [await post(url, {}), await post(url, {}, { 'X-PAYMENT': 'x' }), sold];
    answers.push(await call(sold.headers.get('location') ?? ''));
    for (const { headers } of answers) expect(headers.get('x-robots-tag')).to.equal('noindex');
    expect((await call(`${world.url}/`)).headers.has('x-robots-tag')).to.equal(false);
  });

  it('the challenge names the service, its tags and an existing icon', async () => {
    const { resource } = (await post(`${world.url}/v1/summarize`, {})).json() as {
      resource: { serviceName: string; tags: string[]; iconUrl: string };
    };
    expect(resource).to.deep.include({ serviceName: 'Coinslot', tags: ['Text'] });
    const icon = await call(resource.iconUrl);
    expect([icon.status, icon.headers.get('content-type')]).to.deep.equal([200, 'image/png']);
  });

  it('a document over 1 KB is compressed for clients that accept it, with an ETag for each coding', async () => {
    for (const path of ['/openapi.json', '/llms-full.txt', '/.well-known/x402']) {
      const url = world.url + path;
      const plain = await get(url);
      expect(plain.headers['content-encoding']).to.equal(undefined);
      const br = await get(url, { 'accept-encoding': 'gzip, deflate, br' });
      const gzip = await get(url, { 'accept-encoding': 'gzip;q=0.5, br;q=0' });
      expect([br, gzip].map(({ headers }) => headers['content-encoding'])).to.deep.equal(['br', 'gzip']);
      expect(brotliDecompressSync(br.body).equals(plain.body)).to.equal(true);
      expect(gunzipSync(gzip.body).equals(plain.body)).to.equal(true);
      expect(br.body.length).to.be.below(plain.body.length / 1.5);
      const all = [plain, br, gzip];
      for (const { headers, body } of all) {
        expect(headers.vary).to.contain('Accept-Encoding');
        expect(headers['content-length']).to.equal(String(body.length));
      }
      expect(new Set(all.map(({ headers }) => headers.etag)).size).to.equal(3);
      const again = await get(url, {
        'accept-encoding': 'br',
        'if-none-match': String(br.headers.etag),
      });
      expect([again.status, again.body.length, again.headers.vary]).to.deep.equal([304, 0, br.headers.vary]);
    }
    for (const refused of ['identity', 'br;q=0, gzip;q=0.0', 'deflate'])
      expect(
        (await get(`${world.url}/openapi.json`, { 'accept-encoding': refused })).headers,
      ).not.to.have.property('content-encoding');
    const short = await get(`${world.url}/`, { 'accept-encoding': 'br' });
    if (short.body.length <= 1024) expect(short.headers).not.to.have.property('content-encoding');
    expect((await get(`${world.url}/icon.png`, { 'accept-encoding': 'br' })).headers).not.to.have.property(
      'content-encoding',
    );
  });

  it('pages from other origins may send If-None-Match for a file, and methods that a file does not support get a 405', async () => {
    const preflight = await call(`${world.url}/llms.txt`, { method: 'OPTIONS' });
    expect(preflight.status).to.equal(204);
    expect(preflight.headers.get('access-control-allow-headers')).to.contain('if-none-match');
    const first = await call(`${world.url}/llms.txt`);
    expect(first.headers.get('access-control-expose-headers')).to.contain('ETag');
    const posted = await post(`${world.url}/llms.txt`, {});
    expect([posted.status, posted.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD, OPTIONS']);
  });
});

describe('The files of another shop', () => {
  const publicUrl = 'https://shop.example';
  const terms = { network: 'solana:x', v1Network: 'solana', asset: 'a', payTo: 'p', publicUrl };

  it('come from its contract, unless the contract declares the path itself', async () => {
    const contract = parseContract(ANY_SHOP);
    const served = await agentFiles(contract, sellingOf(terms), '').get('/llms.txt')?.encoded('plain');
    const text = String(served?.body);
    for (const { examplePath } of contract.paid) expect(text).to.contain(`(${publicUrl}${examplePath})`);
    expect(text).not.to.match(/summarize|undefined/);
    const skill = await agentFiles(contract, sellingOf(terms), '').get('/skill.md')?.encoded('plain');
    for (const { summary } of contract.paid.slice(0, 12)) expect(String(skill?.body)).to.contain(summary);
    const [operation] = contract.free;
    const own = { ...contract, free: [{ ...operation!, path: '/robots.txt' }] };
    expect([...agentFiles(own, sellingOf(terms), '').keys()]).not.to.include('/robots.txt');
  });

  it('have the name and icon of its info, as far as x402 allows them', () => {
    const named = (info: object) =>
      serviceOf({ document: { info }, paid: [], given: [], free: [] }, publicUrl);
    expect(named({ title: 'Petstore' })).to.deep.equal({
      name: 'Petstore',
      iconUrl: `${publicUrl}/icon.png`,
    });
    expect(named({ title: `Café — ${'long '.repeat(20)}` }).name)
      .to.have.length.at.most(32)
      .and.match(/^Cafe {1,2}long/);
    expect(named({ title: '価格' }).name).to.equal('shop.example');
    const logo = (url: string) => named({ title: 'x', 'x-logo': { url } }).iconUrl;
    expect(logo('https://cdn.example/a.png')).to.equal('https://cdn.example/a.png');
    expect(logo('logo.png')).to.equal(`${publicUrl}/logo.png`);
  });
});

describe('The icon', () => {
  it('is a PNG of a coin with a slot and transparent corners, and an SVG in the same colours', () => {
    const png = iconPng(32);
    expect(png.subarray(1, 4).toString()).to.equal('PNG');
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).to.deep.equal([32, 32]);
    const at = png.indexOf('IDAT');
    const pixels = inflateSync(png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4)));
    const pixel = (x: number, y: number): number[] => [
      ...pixels.subarray(y * 129 + 1 + x * 4).subarray(0, 4),
    ];
    expect(pixel(0, 0)[3]).to.equal(0);
    for (const [x, y, colour] of [
      [16, 16, '#3d2b00'],
      [8, 16, '#e8b53a'],
      [16, 2, '#a87416'],
    ] as const) {
      const [red = 0, green = 0, blue = 0, alpha] = pixel(x, y);
      expect(`#${Buffer.from([red, green, blue]).toString('hex')}`, `${x},${y}`).to.equal(colour);
      expect(alpha).to.equal(255);
      expect(ICON_SVG).to.contain(colour);
    }
  });
});
