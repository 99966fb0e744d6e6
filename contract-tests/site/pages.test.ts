import { expect } from 'chai';
import { request, type IncomingMessage } from 'node:http';
import type { Contract, PricedOperation } from '../../src/contract/contract.js';
import { HOSTS } from '../../src/cli/mcp/hosts.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { toAtomic } from '../../src/price/amount.js';
import { escapeHtml } from '../../src/pages/escape.js';
import { examplePath, snippetsFor } from '../../src/site/snippets.js';
import { BROWSER, CONTRACTS, serveSite, TERMS } from '../support/site.js';

type Answer = { status: number; headers: IncomingMessage['headers']; body: Buffer };

/** Fetches without the headers and the decompression of `fetch`. */
function ask(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, response => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject).end();
  });
}

const pageOf = async (contract: Contract, path = '/', more = {}): Promise<string> => {
  const site = await serveSite(contract, more);
  try {
    return (await ask(site.url + path, { accept: BROWSER })).body.toString();
  } finally {
    site.close();
  }
};

describe('The page at /', () => {
  let site: Awaited<ReturnType<typeof serveSite>>;
  before(async () => {
    site = await serveSite(CONTRACTS['this repository']!);
  });
  after(() => site.close());

  const JSON_TYPE = 'application/json; charset=utf-8';
  const HTML = 'text/html; charset=utf-8';
  const asked: [who: string, accept: string | undefined, type: string][] = [
    ['Firefox, Chrome and Safari', BROWSER, HTML],
    ['a crawler that reads pages', 'text/html', HTML],
    ['an old browser', 'text/html, */*', HTML],
    ['curl, fetch and Python', '*/*', JSON_TYPE],
    ['a program without Accept', undefined, JSON_TYPE],
    ['x402 crawlers', 'application/json', JSON_TYPE],
    ['axios', 'application/json, text/plain, */*', JSON_TYPE],
    ['MCP clients', 'application/json, text/event-stream', JSON_TYPE],
    ['one that accepts both and prefers JSON', 'text/html;q=0.5, application/json', JSON_TYPE],
    ['one that accepts both equally', 'application/json, text/html', JSON_TYPE],
    ['one that refuses HTML', 'text/html;q=0, */*', JSON_TYPE],
    ['one that takes any text', 'text/*', JSON_TYPE],
    ['one with an invalid header', ';;q=,text', JSON_TYPE],
  ];
  for (const [who, accept, type] of asked)
    it(`is ${type.split(';')[0]} for ${who}`, async () => {
      for (const path of ['/', '/?utm=1']) {
        const answer = await ask(site.url + path, accept === undefined ? {} : { accept });
        expect([answer.status, answer.headers['content-type']]).to.deep.equal([200, type]);
        expect(answer.headers.vary).to.match(/^Accept\b/);
      }
    });

  it('has a line for each host that coinslot mcp install writes to', async () => {
    const page = (await ask(site.url, { accept: BROWSER })).body.toString();
    const lines = [...page.matchAll(/coinslot mcp install --host (\S+) --url (\S+) --keypair/g)];
    expect(lines.map(([, host]) => host)).to.deep.equal(Object.keys(HOSTS));
    for (const [, , url] of lines) expect(url).to.equal(TERMS.publicUrl);
  });

  it('has code that may pay the price of its call, even if it is above the one dollar that x402 clients pay', () => {
    const [operation] = CONTRACTS['any shop']!.paid;
    const codeAt = (amount: string): string[] => {
      const price = { ...operation!.price, amount, atomic: toAtomic(amount) };
      const code = snippetsFor({ ...operation!, price }, TERMS);
      return code.filter(({ id }) => ['typescript', 'python', 'mcp'].includes(id)).map(each => each.code);
    };
    const lines = codeAt('2.50').map(code => /^.*2\.50.*$/m.exec(code)?.[0]);
    const script = "wallet.setSpendControls({ maxAmountPerPayment: '$2.50' });";
    const python = 'wallet.set_spend_controls({"max_amount_per_payment": "$2.50"})';
    expect(lines).to.deep.equal([script, python, script]);
    for (const code of codeAt('1.00')) expect(code).not.to.match(/spend_?controls/i);
  });

  it('supports HEAD, If-None-Match and gzip, with a separate ETag for each form', async () => {
    const plain = await ask(site.url, { accept: BROWSER });
    const zipped = await ask(site.url, { accept: BROWSER, 'accept-encoding': 'gzip' });
    const json = await ask(site.url);
    expect(zipped.headers['content-encoding']).to.equal('gzip');
    expect(zipped.body.length).to.be.below(plain.body.length / 2);
    expect(new Set([plain, zipped, json].map(({ headers }) => headers.etag)).size).to.equal(3);
    const head = await ask(site.url, { accept: BROWSER }, 'HEAD');
    expect([head.status, head.body.length]).to.deep.equal([200, 0]);
    expect(head.headers['content-length']).to.equal(String(plain.body.length));
    const same = await ask(site.url, { accept: BROWSER, 'if-none-match': plain.headers.etag ?? '' });
    expect([same.status, same.body.length]).to.deep.equal([304, 0]);
    expect(same.headers.vary).to.match(/^Accept\b/);
    const other = await ask(site.url, { accept: BROWSER, 'if-none-match': json.headers.etag ?? '' });
    expect(other.status).to.equal(200);
  });

  it('may load only from this server, and runs no inline script', async () => {
    const { headers, body } = await ask(site.url, { accept: BROWSER });
    const policy = String(headers['content-security-policy']);
    expect(policy)
      .to.match(/^default-src 'none';/)
      .and.not.to.contain('unsafe');
    const html = body.toString();
    expect(html).not.to.match(/<script(?![^>]* src="\/)|<style| on[a-z]+="| style="|javascript:/);
    // Links may lead elsewhere.
    for (const [, url = ''] of html.matchAll(/(?: src|<link[^>]* href)="([^"]*)"/g))
      expect(url).to.match(/^\//);
    for (const [, path = ''] of html.matchAll(/<(?:script|link)[^>]* (?:src|href)="(\/site[^"]*)"/g))
      expect((await ask(site.url + path)).status, path).to.equal(200);
  });

  for (const [name, contract] of Object.entries(CONTRACTS))
    it(`shows what the contract of ${name} sells: each operation once, with its price and a link to its page, and the first one to try`, async () => {
      const html = await pageOf(contract);
      expect(contract.paid.length).to.be.above(1);
      const rows = [...html.matchAll(/<li><a href="[^"]*"><span>.*?<\/li>/gs)].map(([row]) => row);
      expect(rows.length).to.equal(contract.paid.length);
      for (const { method, path, summary, price } of contract.paid) {
        const own = rows.filter(row => row.includes(escapeHtml(`${method} ${path}`) + '<'));
        expect(own.length, path).to.equal(1);
        expect(own[0]).to.contain(escapeHtml(summary)).and.to.contain(price.shown);
      }
      const [first] = contract.paid;
      expect(html).to.contain(`data-operation="${first!.id}"`);
      expect(html).to.contain(
        first!.flow === 'upfront' ? 'paid before the work' : 'charged only for an answer',
      );
      const { example } = first!.answers[0];
      if (typeof example === 'object') expect(html).to.contain(escapeHtml(JSON.stringify(example, null, 2)));
      const { title } = contract.document.info as { title: string };
      expect(html).to.contain(`<title>${title}</title>`);
      const others = Object.values(CONTRACTS).filter(each => each !== contract);
      for (const { paid } of others)
        for (const { path } of paid) expect(html, path).not.to.contain(`href="${path}"`);
    });

  it('takes name, descriptions, logo and colour from the info of the contract', async () => {
    const info = (logo: string): Contract =>
      parseContract(`
openapi: 3.1.0
info:
  title: Tide tables
  version: 2.1.0
  summary: When the \`tide\` comes in.
  description: "High and low water.\\n\\nFor **every** harbour."
  x-logo: ${logo}
paths: {}
`);
    const inside = await pageOf(
      info(`{ url: 'data:image/svg+xml,<svg/>', altText: A wave, backgroundColor: '#0af' }`),
    );
    expect(inside).to.contain('<h1>When the <code>tide</code> comes in.</h1>');
    expect(inside).to.contain('<div class="lead"><p>High and low water.</p></div>');
    expect(inside).not.to.contain('harbour');
    expect(inside).to.contain('<meta property="og:title" content="Tide tables: When the `tide` comes in.">');
    expect(inside).to.contain('<link rel="icon" href="data:image/svg+xml,&lt;svg/&gt;">');
    expect(inside).to.contain('<img src="data:image/svg+xml,&lt;svg/&gt;" alt="A wave" height="32">');
    expect(inside).to.contain('Nothing is sold at the moment.');
    const own = `{ url: '${TERMS.publicUrl}/logo.png' }`;
    expect(await pageOf(info(own))).to.contain('<img src="/logo.png" alt=""');
    const foreign = await pageOf(info(`{ url: 'https://cdn.example/logo.png', backgroundColor: 'url(x)' }`));
    expect(foreign).not.to.contain('cdn.example').and.not.to.contain('<img');
    const light = await pageOf(info(`{ backgroundColor: '#FFDD00' }`), '/site/style.css');
    expect(light).to.contain('--accent: #FFDD00; --on-accent: #000000;');
    const dark = await pageOf(info(`{ backgroundColor: '#123' }`), '/site/style.css');
    expect(dark).to.contain('--accent: #112233; --on-accent: #ffffff;');
    expect(await pageOf(info(`{ backgroundColor: 'red;}' }`), '/site/style.css')).to.contain(
      '--accent: #7a4a00;',
    );
  });

  it('shows the strings of a contract as plain text, never as HTML', async () => {
    const hostile = `"><script>hit()</script>'<img src=x onerror=hit()>`;
    const [first, ...others] = CONTRACTS['any shop']!.paid;
    const answers: PricedOperation['answers'] = [
      { status: 200, mimeType: hostile, kind: 'json', example: { [hostile]: hostile } },
    ];
    const changed = { ...first!, summary: hostile, path: `/${hostile}`, tags: [hostile], answers };
    const document = {
      ...CONTRACTS['any shop']!.document,
      info: { title: hostile, summary: hostile, description: hostile },
    };
    for (const path of ['/', '/docs']) {
      const html = await pageOf({ ...CONTRACTS['any shop']!, document, paid: [changed, ...others] }, path);
      expect(html).to.contain('&lt;script&gt;');
      expect(html).not.to.contain('<script>').and.not.to.contain('<img');
    }
  });

  it('leaves / and every other declared path to the contract', async () => {
    const taken = parseContract(`
openapi: 3.1.0
info: { title: Taken, version: 1.0.0 }
paths:
  /: { get: { operationId: ownStart, responses: { '200': { description: Own. } } } }
  /docs: { get: { operationId: ownDocs, responses: { '200': { description: Own. } } } }
`);
    expect(await pageOf(taken, '/docs')).to.equal('{"error":"none"}');
    expect(await pageOf(taken)).not.to.contain('<html');
  });
});

type Described = {
  description: string;
  'x-badges': { name: string }[];
  'x-codeSamples': { label: string }[];
};

describe('The reference at /docs', () => {
  for (const [name, contract] of Object.entries(CONTRACTS))
    it(`has the price of each operation of ${name}, and what each answer means for the money`, async () => {
      const document = JSON.parse(await pageOf(contract, '/docs/contract.json')) as {
        info: { description: string };
        paths: Record<string, Record<string, Described>>;
      };
      for (const status of ['402', '502', '503'])
        expect(document.info.description).to.contain(`| ${status} |`);
      for (const operation of contract.paid) {
        const { id, path, method, price, flow } = operation;
        const described = document.paths[path]?.[method.toLowerCase()];
        expect(described?.['x-badges'][0]?.name).to.equal(price.shown);
        expect(described?.description).to.contain(
          flow === 'upfront' ? 'paid before the work' : 'charged only for an answer',
        );
        expect(described?.description).to.contain(`(${examplePath(operation)})`);
        expect(described?.description).to.contain('**You get**');
        const samples = described?.['x-codeSamples'].map(({ label }) => label);
        expect(samples, id).to.deep.equal(['curl', 'TypeScript', 'Python', 'MCP', 'Agent prompt']);
      }
    });

  it('needs no other host: its bundle comes from this server, compressed or not, and inline scripts are refused', async () => {
    const site = await serveSite(CONTRACTS['any shop']!);
    try {
      const page = await ask(`${site.url}/docs`);
      const policy = String(page.headers['content-security-policy']);
      expect(policy).to.match(/^default-src 'none'; script-src 'self';/);
      expect(policy).to.contain("style-src 'self' 'unsafe-inline'");
      expect(page.body.toString()).not.to.match(/<script(?![^>]* src="\/)|https?:/);
      const plain = await ask(`${site.url}/docs/redoc.js`);
      const zipped = await ask(`${site.url}/docs/redoc.js`, { 'accept-encoding': 'gzip, br' });
      expect(plain.body.toString('utf8', 0, 200)).to.contain('Redocly');
      expect(plain.body.includes('cdn.redoc.ly')).to.equal(false);
      expect(zipped.headers['content-encoding']).to.equal('gzip');
      expect(zipped.body.length).to.be.below(plain.body.length / 3);
      const etag = plain.headers.etag ?? '';
      expect((await ask(`${site.url}/docs/redoc.js`, { 'if-none-match': etag })).status).to.equal(304);
      expect((await ask(`${site.url}/docs/redoc.js`, {}, 'HEAD')).headers['content-length']).to.equal(
        String(plain.body.length),
      );
    } finally {
      site.close();
    }
  });
});
