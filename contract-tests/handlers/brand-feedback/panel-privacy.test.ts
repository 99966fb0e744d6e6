import { expect } from 'chai';
import { aQuestion, aReply } from '../../support/memory-reply-store.js';
import { panel, visitor, eachWithANewPanel, Visitor, type Answer } from '../../support/one-panel.js';

/** Another respondent's reply, and what the ledger stores about it. */
const WORDS = 'My own words about the handle';
const OTHERS = {
  id: 'reply-of-another',
  text: WORDS,
  respondent: 'another-person',
  sentiment: 'negative',
} as const;
const SECRET = /My own words about|reply-of-another|another-person/;
const JSON_ONLY = { accept: 'application/json' };

describe('a respondent on the panel', () => {
  let id: string;

  eachWithANewPanel();
  beforeEach(async () => {
    ({ id } = panel.replyStore.put(aQuestion({ wanted: 5 })));
    await panel.replyStore.add(id, aReply(OTHERS));
    await panel.replyStore.add(id, aReply({ isSample: true, text: `${WORDS}, said by a sample` }));
    await visitor.signIn();
  });

  const fields = async (more: Record<string, string> = {}): Promise<Record<string, string>> => ({
    form: await visitor.formKey(),
    question: id,
    ...more,
  });

  const requests: [what: string, ask: () => Promise<Answer>, status: number][] = [
    ['the page', () => visitor.get('/panel/'), 200],
    ['the page after a reply', () => visitor.get(`/panel/?said=added&question=${id}`), 200],
    ['the list that the script reads', () => visitor.get('/panel/questions'), 200],
    ['the list as JSON', () => visitor.get('/panel/questions', JSON_ONLY), 200],
    ['a refused reply', () => visitor.reply(id, '', 'neutral'), 400],
    ['a refused reply as JSON', () => visitor.reply(id, '', 'neutral', JSON_ONLY), 400],
    ['a reply with the words of another', () => visitor.reply(id, 'my own WORDS about the handle!'), 400],
    ['an unlabelled one in another language', () => visitor.reply(id, 'Das mag ich gar nicht.', ''), 400],
    ['a late reply', () => visitor.reply('f'.repeat(64), 'Hm.'), 409],
    ['an accepted reply', () => visitor.reply(id, 'Mine.'), 303],
    ['an accepted reply as JSON', () => visitor.reply(id, 'Mine.', 'neutral', JSON_ONLY), 200],
    ['the note that somebody types', async () => visitor.post('/panel/typing', await fields()), 204],
    ['signing out', async () => visitor.post('/panel/logout', await fields()), 303],
    ['the script', () => visitor.get('/panel/panel.js'), 200],
    ['the style sheet', () => visitor.get('/panel/style.css'), 200],
  ];
  for (const [what, ask, status] of requests)
    it(`sees no replies of others in ${what}`, async () => {
      const answer = await ask();
      expect(answer.status).to.equal(status);
      // The visitor's own text comes back with an error, as they typed it.
      expect(answer.text.replace('my own WORDS about the handle!', '')).to.not.match(SECRET);
      expect(JSON.stringify([...answer.headers])).to.not.match(SECRET);
      expect(answer.text).to.not.match(/negative:|[0-9]+ (negative|positive|neutral)/i);
    });

  it('sees no replies in the live updates, which say only that something changed', async () => {
    const gone = new AbortController();
    const { body } = await fetch(`${panel.url}/panel/live`, {
      headers: { cookie: visitor.cookie },
      signal: gone.signal,
    });
    const reader = body?.getReader() ?? expect.fail('no stream');
    let text = '';
    while ((text.match(/event: change/g) ?? []).length < 2) {
      const { value, done } = await reader.read();
      if (done) expect.fail('the stream ended');
      text += Buffer.from(value as Uint8Array).toString();
    }
    gone.abort();
    expect(text.replace(/^(retry: \d+|event: change|data: 1|: still here|)$/gm, '').trim()).to.equal('');
  });

  it('sees no replies of others even after answering, because another browser would be another respondent', async () => {
    await visitor.reply(id, 'Mine.');
    for (const path of ['/panel/', '/panel/questions', `/panel/?said=added&question=${id}`]) {
      const { text } = await visitor.get(path);
      expect(text).to.not.match(SECRET);
      expect(text).to.contain('Mine.').and.contain('3 of 5 replies');
    }
    const other = await new Visitor(panel.url).signIn();
    expect((await other.get('/panel/')).text).to.not.contain('Mine.');
  });

  it('knows how many have answered, but not who or how', async () => {
    const before = (await visitor.get('/panel/questions')).text;
    await panel.replyStore.reject(id, OTHERS.id);
    await panel.replyStore.add(id, aReply({ text: 'Something else.', sentiment: 'positive' }));
    expect((await visitor.get('/panel/questions')).text).to.equal(before);
  });

  it("can't reject any reply, neither another's nor their own", async () => {
    await visitor.reply(id, 'Mine.');
    const before = await panel.replyStore.replies(id);
    for (const { id: reply } of before)
      for (const path of ['/panel/reject', `/payments/${id}/replies/${reply}/reject`]) {
        const answer = await visitor.post(path, await fields({ reply }));
        expect([answer.status, answer.text]).to.deep.equal([404, 'the contract']);
      }
    expect((await visitor.get('/panel/')).text).to.not.match(/reject/i);
    expect(await panel.replyStore.replies(id)).to.deep.equal(before);
  });
});
