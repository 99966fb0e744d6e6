import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { aQuestion } from '../../support/memory-reply-store.js';
import { panel, visitor, eachWithANewPanel } from '../../support/one-panel.js';

describe('the panel page', () => {
  eachWithANewPanel();

  it("sends strict headers with every answer and can't be read by other origins", async () => {
    await visitor.signIn();
    for (const path of ['/panel/', '/panel/questions', '/panel/style.css', '/panel/panel.js']) {
      const { status, headers } = await visitor.get(path);
      expect(status).to.equal(200);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy)
        .to.contain("default-src 'none'")
        .and.contain("script-src 'self'")
        .and.contain("frame-ancestors 'none'");
      expect(policy)
        .to.contain("form-action 'self'")
        .and.contain("base-uri 'none'")
        .and.not.contain('unsafe');
      expect(headers.get('x-content-type-options')).to.equal('nosniff');
      expect(headers.get('referrer-policy')).to.equal('same-origin');
      expect(headers.get('access-control-allow-origin')).to.equal(null);
      expect(headers.get('cache-control')).to.match(/no-store|no-cache/);
    }
    const { text } = await visitor.get('/panel/');
    expect(text).to.not.match(/<script(?![^>]*\ssrc=)|\son\w+=|<style|\sstyle=/);
  });

  it('leaves everything outside /panel to the contract', async () => {
    for (const path of ['/', '/panels', '/panel/nothing', '/Panel/']) {
      expect((await visitor.get(path)).text).to.equal('the contract');
    }
    expect((await visitor.get('/panel')).headers.get('location')).to.equal('/panel/');
  });

  describe('shows text from strangers', () => {
    const hostile =
      '<script>alert(1)</script><img src=x onerror=alert(1)>"\'&amp;\u202eesrever\u0000\u2066\ud800';

    it("in brand, question and the visitor's own reply, each with its own text direction", async () => {
      const { id } = panel.replyStore.put(aQuestion({ brand: hostile, question: hostile, id: 'ab"><b>' }));
      await visitor.signIn();
      expect((await visitor.reply(id, hostile)).status).to.equal(303);
      const { text } = await visitor.get('/panel/');
      expect(text).to.not.match(/<script>|<img|onerror=alert\(1\)>(?!.*&gt;)|<b>/);
      expect(text.match(/&lt;script&gt;alert\(1\)/g)).to.have.length(4);
      expect(text)
        .to.contain('&amp;amp;')
        .and.contain('\u2400')
        .and.not.contain('\u0000')
        .and.not.contain('"ab"');
      expect(text).to.contain('id="q-ab&quot;&gt;&lt;b&gt;"');
      expect(text)
        .to.match(/<bdi>&lt;script/)
        .and.match(/<div class="foreign [a-z]*" dir="auto">&lt;script/);
      expect((await visitor.get('/panel/style.css')).text).to.match(/\.foreign \{[^}]*unicode-bidi: isolate/);
    });

    it('of up to 10 000 characters, and only the beginning of longer text', async () => {
      panel.replyStore.put(aQuestion({ question: 'ä'.repeat(10_000) }));
      panel.replyStore.put(aQuestion({ question: 'z'.repeat(1_000_000), brand: 'q'.repeat(100_000) }));
      await visitor.signIn();
      const { text } = await visitor.get('/panel/');
      expect(text).to.contain('ä'.repeat(10_000)).and.contain('… (shortened)');
      expect(text.length).to.be.lessThan(60_000);
    });

    it('but none that comes from the URL', async () => {
      await visitor.signIn();
      const { text } = await visitor.get('/panel/?said=<script>');
      const silent = '<p id="status" class="said" role="status"></p>';
      expect(text).to.contain(silent).and.not.contain('<script>');
      expect((await visitor.get('/panel/?said=constructor')).text).to.contain(silent);
      const odd = await visitor.get('/panel/?said=added&question=%22%3E%3Cscript%3E');
      expect(odd.text).to.not.contain('<script>');
    });
  });

  it('shows at most twenty questions, starting with those that the visitor can still answer, and how many more are waiting', async () => {
    const questions = Array.from({ length: 30 }, (_, n) =>
      panel.replyStore.put(aQuestion({ brand: `Brand ${n}.` })),
    );
    await visitor.signIn();
    for (const { id } of questions.slice(0, 5)) await visitor.reply(id, 'Good.');
    const { text } = await visitor.get('/panel/');
    expect(text.match(/<article/g)).to.have.length(20);
    expect(text)
      .to.contain('10 more questions will appear')
      .and.contain('Brand 5.')
      .and.not.contain('Brand 0.');
  });

  it('can be used with a keyboard, a screen reader and a small phone', async () => {
    panel.replyStore.put(aQuestion());
    await visitor.signIn();
    const { text } = await visitor.get('/panel/');
    expect(text).to.contain('<html lang="en">').and.contain('width=device-width').and.contain('<main ');
    expect(text).to.match(/<p id="status" class="said" role="status">/);
    expect(text).to.match(/<fieldset [^>]+>\s*<legend>[^<]+<\/legend>/);
    const areas = [...text.matchAll(/<textarea id="([^"]+)"/g)].map(([, id]) => id);
    for (const id of areas) expect(text).to.contain(`<label class="above" for="${id}">`);
    expect(text.match(/type="radio"/g)).to.have.length(3);
    const style = (await visitor.get('/panel/style.css')).text;
    expect(style)
      .to.contain(':focus-visible')
      .and.contain('prefers-color-scheme: dark')
      .and.contain('overflow-wrap: anywhere');
  });

  it("says that it can't read the questions while the ledger can't be reached", async () => {
    await visitor.signIn();
    panel.replyStore.broken = true;
    const page = await visitor.get('/panel/');
    expect(page.status).to.equal(503);
    expect(page.text).to.contain('cannot be read').and.not.contain('the ledger is gone');
  });

  describe('live stream', () => {
    async function changes(count: number, act: () => Promise<unknown>): Promise<void> {
      const gone = new AbortController();
      const answer = await fetch(`${panel.url}/panel/live`, {
        headers: { cookie: visitor.cookie },
        signal: gone.signal,
      });
      expect(answer.headers.get('content-type')).to.contain('text/event-stream');
      const reader = answer.body?.getReader() ?? expect.fail();
      let text = '';
      let acted = false;
      while ((text.match(/event: change/g) ?? []).length < count) {
        const { value, done } = await reader.read();
        if (done) expect.fail('the stream ended');
        text += Buffer.from(value as Uint8Array).toString();
        if (!acted && text.includes('event: change')) {
          acted = true;
          await pause(1_200);
          await act();
        }
      }
      gone.abort();
    }

    it('reports that something changed', async () => {
      await visitor.signIn();
      await changes(3, async () => panel.replyStore.put(aQuestion()));
    });

    it('has a limited number of clients and ends with the server', async () => {
      await visitor.signIn();
      const open = () => fetch(`${panel.url}/panel/live`, { headers: { cookie: visitor.cookie } });
      const streams = await Promise.all(Array.from({ length: 50 }, open));
      expect(streams.every(({ status }) => status === 200)).to.equal(true);
      const refused = await open();
      expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([503, '10']);
      await streams[0]?.body?.cancel();
      await pause(100);
      streams[0] = await open();
      expect(streams[0].status).to.equal(200);
      panel.end.abort();
      for (const stream of streams) expect(await stream.text()).to.contain('event: change');
      expect((await open()).status).to.equal(503);
    });
  });
});
