import { expect } from 'chai';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseContract } from '../../src/contract/parse-contract.js';
import { articleOf } from '../../src/site/markdown.js';
import { BROWSER, CONTRACTS, serveSite } from '../support/site.js';

const DOCS = fileURLToPath(new URL('../../../docs/', import.meta.url));
const PATHS = readdirSync(DOCS, { recursive: true, encoding: 'utf8' })
  .filter(file => file.endsWith('.md') && file !== 'README.md')
  .map(file => `/docs/guides/${file.replaceAll('\\', '/').replace(/\.md$/, '')}`);

const linksOf = (html: string): string[] =>
  [...html.matchAll(/<a [^>]*href="([^"]*)"/g)].map(([, link = '']) => link.replaceAll('&amp;', '&'));

describe('The guides at /docs/guides', () => {
  let site: Awaited<ReturnType<typeof serveSite>>;
  const pages = new Map<string, string>();

  before(async () => {
    site = await serveSite(CONTRACTS['any shop']!);
    for (const path of ['/docs/guides', ...PATHS]) {
      const answer = await fetch(site.url + path, { headers: { accept: BROWSER } });
      expect([answer.status, answer.headers.get('content-type')], path).to.deep.equal([
        200,
        'text/html; charset=utf-8',
      ]);
      expect(answer.headers.get('content-security-policy'), path).to.equal(
        "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      );
      pages.set(path, await answer.text());
    }
  });
  after(() => site.close());

  it('are all the pages in docs/, and their index links to each', () => {
    expect(PATHS.length).to.be.above(30);
    expect(existsSync(DOCS)).to.equal(true);
    expect(linksOf(pages.get('/docs/guides') ?? '')).to.include.members(PATHS);
  });

  it('have the look of the shop: its name, its style, one first-level heading and no script', () => {
    for (const [path, html] of pages) {
      expect(html, path).to.contain('– Any shop</title>').and.to.contain('href="/site/style.css"');
      expect(html.match(/<h1>/g)?.length, path).to.equal(1);
      expect(html, path).not.to.match(/<script| style="| on[a-z]+="/);
    }
  });

  it('link to guides and headings that exist, to this server, or elsewhere', () => {
    const own = ['/', '/docs'];
    for (const [path, html] of pages)
      for (const link of linksOf(html)) {
        if (/^https?:/.test(link) || own.includes(link)) continue;
        const [page = '', heading] = link.split('#');
        const target = pages.get(page === '' ? path : page);
        expect(target, `${path} → ${link}`).to.be.a('string');
        if (heading !== undefined) expect(target, `${path} → ${link}`).to.contain(` id="${heading}"`);
      }
  });

  it('are linked from the front page and the reference', async () => {
    for (const path of ['/', '/docs']) {
      const html = await (await fetch(site.url + path, { headers: { accept: BROWSER } })).text();
      expect(linksOf(html), path).to.include('/docs/guides');
    }
  });

  it('are rendered once, so that the ETag of the first answer gets a 304', async () => {
    const url = `${site.url}/docs/guides/how-to/buy`;
    const etag = (await fetch(url)).headers.get('etag') ?? '';
    expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).to.equal(304);
    expect((await fetch(url, { method: 'HEAD' })).headers.get('etag')).to.equal(etag);
  });

  it('are only the files in docs/, and no other name reads a file', async () => {
    for (const name of ['nothing', '../package', '..%2fpackage', 'how-to', 'how-to/buy.md'])
      expect((await fetch(`${site.url}/docs/guides/${name}`)).status, name).to.equal(404);
  });

  it('leave a path to a contract that declares it', async () => {
    const own = await serveSite(
      parseContract(`
openapi: 3.1.0
info: { title: Taken, version: 1.0.0 }
paths:
  /docs/guides: { get: { operationId: ownGuides, responses: { '200': { description: Own. } } } }
`),
    );
    try {
      const answer = await fetch(`${own.url}/docs/guides`, { headers: { accept: BROWSER } });
      expect(await answer.text()).to.equal('{"error":"none"}');
      const front = await (await fetch(own.url, { headers: { accept: BROWSER } })).text();
      expect(linksOf(front)).not.to.include('/docs/guides');
    } finally {
      own.close();
    }
  });
});

describe('Markdown', () => {
  const article = (text: string) => articleOf(text, link => (link === 'known' ? '/here' : undefined));

  it('is rendered with its HTML as text, and without unknown links', () => {
    const { html } = article(
      '# A\n\nx <script>x</script> [a](known) [b](javascript:x) ![c](d) `<b>`\n\n<img src=x onerror=y>\n',
    );
    expect(html).to.equal(
      '<p>x &lt;script&gt;x&lt;/script&gt; <a href="/here">a</a> b c <code>&lt;b&gt;</code></p>\n&lt;img src=x onerror=y&gt;\n',
    );
  });

  it('gets heading anchors like those on GitHub', () => {
    const { title, contents, html } = article('# One\n\n## `POST /a`: why & how?\n\n## Same\n\n## Same\n');
    expect(title).to.equal('One');
    expect(contents.map(({ id }) => id)).to.deep.equal(['post-a-why--how', 'same', 'same-1']);
    expect(html).to.contain('<h2 id="same-1">Same</h2>');
  });
});
