import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { aQuestion, aReply } from '../../support/memory-reply-store.js';
import { Visitor, panel, visitor, eachWithANewPanel } from '../../support/one-panel.js';

describe('the panel page', () => {
  eachWithANewPanel();

  describe('accepts a reply', () => {
    beforeEach(async () => {
      await visitor.signIn();
    });

    it('with text and choice, and says how many are still wanted', async () => {
      const { id } = panel.replyStore.put(aQuestion({ wanted: 3 }));
      expect((await visitor.get('/panel/')).text).to.contain('0 of 3 replies. Open until');
      const answer = await visitor.reply(id, ' I like\r\nthe handle. ', 'negative');
      expect([answer.status, answer.headers.get('location')]).to.deep.equal([
        303,
        `/panel/?said=added&question=${id}#q-${id}`,
      ]);
      const [reply] = await panel.replyStore.replies(id);
      expect(reply).to.include({
        text: 'I like\nthe handle.',
        sentiment: 'negative',
        isSample: false,
      });
      const page = await visitor.get(`/panel/?said=added&question=${id}`);
      expect(page.text).to.match(
        /<article[^]*1 of 3 replies[^]*<p class="said" role="status">Thank you, your reply was added\.<\/p>[^]*I like\nthe handle\.[^]*<\/article>/,
      );
      expect((await visitor.get('/panel/')).text).to.contain('You have answered this question. Thank you.');
    });

    it('and thanks for the last one, although its question then disappears', async () => {
      const { id } = panel.replyStore.put(aQuestion({ wanted: 1 }));
      const answer = await visitor.reply(id, 'The last one.');
      panel.replyStore.finish(id);
      const page = await visitor.get((answer.headers.get('location') ?? '').replace(/#.*/, ''));
      expect(page.text).to.contain('role="status">Thank you, your reply was added.</p>');
    });

    it('only once per person and question, even after the person signed out and in again', async () => {
      const { id } = panel.replyStore.put(aQuestion());
      await visitor.reply(id, 'First.');
      expect((await visitor.post('/panel/logout', { form: await visitor.formKey() })).status).to.equal(303);
      expect((await visitor.get('/panel/questions')).status).to.equal(401);
      await visitor.signIn();
      const again = await visitor.reply(id, 'Second.');
      expect(again.headers.get('location')).to.contain('said=duplicate');
      const other = await new Visitor(panel.url).signIn();
      await other.reply(id, 'Another person.');
      expect((await panel.replyStore.replies(id)).map(({ text }) => text)).to.deep.equal([
        'First.',
        'Another person.',
      ]);
    });

    it('only with a choice, which it asks for and does not guess from the words', async () => {
      const { id } = panel.replyStore.put(aQuestion());
      const answer = await visitor.reply(id, 'I hate it, terrible.', '');
      expect(answer.status).to.equal(400);
      expect(answer.text).to.contain('Please choose positive, neutral or negative.');
      expect(await panel.replyStore.replies(id)).to.deep.equal([]);
    });

    it('that looks like gibberish, holds it for the operator, and says so', async () => {
      const { id } = panel.replyStore.put(aQuestion({ wanted: 1 }));
      const accept = { accept: 'application/json' };
      const { text } = await visitor.reply(id, 'asdf asdf', 'positive', accept);
      expect(JSON.parse(text)).to.deep.equal({
        message:
          'Thank you. Your reply looks like random typing, so it counts only once the operator has allowed it.',
        outcome: 'held',
      });
      expect(await panel.replyStore.replies(id)).to.deep.equal([]);
      expect((await panel.replyStore.held(id)).map(reply => reply.text)).to.deep.equal(['asdf asdf']);
      expect((await visitor.get('/panel/')).text).to.contain('You have answered this question. Thank you.');
      const other = await new Visitor(panel.url).signIn();
      await other.reply(id, 'A real opinion.');
      expect(await panel.replyStore.replies(id)).to.have.length(1);
    });

    it("but not one that repeats another's words, and returns it to be changed", async () => {
      const { id } = panel.replyStore.put(aQuestion());
      await visitor.reply(id, 'I like the new handle!');
      const other = await new Visitor(panel.url).signIn();
      const answer = await other.reply(id, ' i LIKE the new handle ');
      expect(answer.status).to.equal(400);
      expect(answer.text).to.contain('word for word').and.contain('i LIKE the new handle');
      await other.reply(id, 'I like the old handle!');
      expect(await panel.replyStore.replies(id)).to.have.length(2);
    });

    it('of up to 2 000 characters in any script', async () => {
      const { id } = panel.replyStore.put(aQuestion());
      await visitor.reply(id, '漢😀'.repeat(1_000));
      expect([...((await panel.replyStore.replies(id))[0]?.text ?? '')]).to.have.length(2_000);
    });

    it('but not one that is empty, too long or has an invalid choice, and returns it to be corrected', async () => {
      const { id } = panel.replyStore.put(aQuestion());
      for (const [text, sentiment, complaint] of [
        [' \u200b ', 'neutral', 'Please write your reply first'],
        ['\u0000', 'neutral', 'Please write your reply first'],
        [`<b>${'x'.repeat(2_000)}`, 'neutral', 'has 2003 characters'],
        ['Fine.', 'ecstatic', 'Please choose'],
      ] as const) {
        const answer = await visitor.reply(id, text, sentiment);
        expect(answer.status).to.equal(400);
        expect(answer.text).to.contain(complaint).and.contain('aria-invalid="true"');
        if (text.startsWith('<b>'))
          expect(answer.text).to.contain(`&lt;b&gt;${'x'.repeat(2_000)}</textarea>`);
      }
      expect(await panel.replyStore.replies(id)).to.deep.equal([]);
    });

    it('only while the question is open and needs one', async () => {
      const full = panel.replyStore.put(aQuestion({ wanted: 1 }));
      await panel.replyStore.add(full.id, aReply());
      const late = await visitor.reply(full.id, 'Too <late>.');
      expect(late.status).to.equal(409);
      expect(late.text)
        .to.contain('Enough people have answered in the meantime. Your reply was not added.')
        .and.match(/<textarea id="late" readonly dir="auto">\nToo &lt;late&gt;\.<\/textarea>/);
      const over = panel.replyStore.put(aQuestion({ deadline: panel.time.now + 1_000 }));
      const formKey = await visitor.formKey();
      panel.time.now += 2_000;
      const closed = await visitor.post('/panel/reply', {
        form: formKey,
        question: over.id,
        text: 'Hm.',
        sentiment: 'neutral',
      });
      expect(closed.status).to.equal(409);
      expect(closed.text).to.contain('This question has closed').and.contain('\nHm.</textarea>');
      expect((await visitor.reply('no such question', 'Hm.')).status).to.equal(409);
      const { text } = await visitor.reply(over.id, 'Hm.', 'neutral', { accept: 'application/json' });
      expect(JSON.parse(text)).to.include({ outcome: 'closed' });
    });

    it('as JSON for the script, by the same rules', async () => {
      const { id } = panel.replyStore.put(aQuestion());
      const accept = { accept: 'application/json' };
      expect(JSON.parse((await visitor.reply(id, '', 'neutral', accept)).text)).to.include({
        outcome: 'fault',
      });
      const done = await visitor.reply(id, 'Good.', 'positive', accept);
      expect(JSON.parse(done.text)).to.deep.equal({
        message: 'Thank you, your reply was added.',
        outcome: 'added',
      });
    });

    it('at a limited rate', async () => {
      const { id } = panel.replyStore.put(aQuestion());
      const fields = { form: await visitor.formKey(), question: id, text: 'Again.', sentiment: 'neutral' };
      const statuses = [];
      for (let n = 0; n < 32; n++) statuses.push((await visitor.post('/panel/reply', fields)).status);
      expect(statuses.filter(status => status === 429)).to.have.length(2);
    });
  });

  describe('refuses a reply', () => {
    it("that another site sends, judged by origin, fetch metadata and the form's key", async () => {
      await visitor.signIn();
      const { id } = panel.replyStore.put(aQuestion());
      const fields = { form: await visitor.formKey(), question: id, text: 'Forged.', sentiment: 'positive' };
      const elsewhere: Record<string, string>[] = [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
      ];
      for (const headers of elsewhere) {
        expect((await visitor.post('/panel/reply', fields, headers)).status).to.equal(403);
      }
      for (const form of ['', 'x'.repeat(43)]) {
        expect((await visitor.post('/panel/reply', { ...fields, form })).status).to.equal(403);
      }
      const other = await new Visitor(panel.url).signIn();
      expect(
        (await visitor.post('/panel/reply', { ...fields, form: await other.formKey() })).status,
      ).to.equal(403);
      expect(await panel.replyStore.replies(id)).to.deep.equal([]);
    });

    it('that is too large, whether or not it declares its length, or is not a form', async () => {
      await visitor.signIn();
      expect((await visitor.post('/panel/reply', { text: 'x'.repeat(40_000) })).status).to.equal(413);
      const { port } = panel.server.address() as AddressInfo;
      const headers = { cookie: visitor.cookie, 'content-type': 'application/x-www-form-urlencoded' };
      const unsaid = httpRequest({ port, method: 'POST', path: '/panel/reply', headers });
      unsaid.on('error', () => {});
      unsaid.write('x'.repeat(40_000));
      const [answer] = (await once(unsaid, 'response')) as [{ statusCode: number; resume(): void }];
      expect(answer.statusCode).to.equal(413);
      unsaid.destroy();
      const json = await fetch(`${panel.url}/panel/reply`, {
        method: 'POST',
        headers: { cookie: visitor.cookie, 'content-type': 'application/json' },
        body: '{}',
      });
      expect(json.status).to.equal(415);
    });
  });
});
