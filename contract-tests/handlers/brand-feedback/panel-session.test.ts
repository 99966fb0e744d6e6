import { expect } from 'chai';
import { aQuestion } from '../../support/memory-reply-store.js';
import { TOKEN, Visitor, panel, startPanel, visitor, eachWithANewPanel } from '../../support/one-panel.js';

const SESSION_MS = 7 * 24 * 3_600_000;

describe('the panel page', () => {
  eachWithANewPanel();

  describe('opens only with the operator’s token', () => {
    it('and shows nothing before that', async () => {
      panel.replyStore.put(aQuestion({ brand: 'Secret Brand' }));
      const page = await visitor.get('/panel/');
      expect(page.status).to.equal(200);
      expect(page.text).to.contain('name="token"').and.not.contain('Secret Brand');
      for (const path of ['/panel/questions', '/panel/live'])
        expect((await visitor.get(path)).status).to.equal(401);
      for (const path of ['/panel/reply', '/panel/typing', '/panel/logout'])
        expect((await visitor.post(path, { text: 'x' })).status).to.equal(401);
    });

    it('from the form, with a strict cookie that does not contain it', async () => {
      const answer = await visitor.post('/panel/login', { token: TOKEN });
      expect([answer.status, answer.headers.get('location')]).to.deep.equal([303, '/panel/']);
      const cookie = answer.headers.get('set-cookie') ?? '';
      expect(cookie)
        .to.match(/; HttpOnly/i)
        .and.match(/; SameSite=Strict/i)
        .and.match(/; Path=\/panel(;|$)/i);
      expect(cookie)
        .to.not.contain(TOKEN)
        .and.not.match(/Secure/i);
      const expires = Date.parse(/; Expires=([^;]+)/i.exec(cookie)?.[1] ?? '');
      expect(expires - Date.now()).to.be.within(SESSION_MS - 60_000, SESSION_MS);
      expect((await visitor.get('/panel/')).text).to.contain('Sign out');
    });

    it('from the address, from which it is removed', async () => {
      const answer = await visitor.get(`/panel/?token=${TOKEN}`);
      expect([answer.status, answer.headers.get('location')]).to.deep.equal([303, '/panel/']);
      expect((await visitor.get('/panel/')).text).to.contain('Sign out');
      const linked = await new Visitor(panel.url).get(`/panel/?token=${TOKEN}`, {
        'sec-fetch-site': 'cross-site',
      });
      expect(linked.status).to.equal(200);
      expect(linked.text).to.contain('url=/panel/').and.not.contain(TOKEN);
    });

    it('and not with another token, a forged cookie, a cookie for another token, or an expired one', async () => {
      for (const token of ['', 'wrong', `${TOKEN}x`]) {
        expect((await visitor.post('/panel/login', { token })).status).to.equal(401);
      }
      expect(visitor.cookie).to.equal('');
      await visitor.signIn();
      const good = visitor.cookie;
      const [name, value = ''] = good.split('=');
      const [respondent, until, signature = ''] = value.split('.');
      const other = await startPanel({ token: 'another-token-of-somebody' });
      const stranger = new Visitor(other.url);
      stranger.cookie = good;
      expect((await stranger.get('/panel/questions')).status).to.equal(401);
      other.server.close();
      for (const forged of [
        `${respondent}.${Number(until) + 1e9}.${signature}`,
        `${respondent}.${until}.${signature.slice(0, -1)}`,
        `${respondent}.${until}`,
        `${value}.x`,
        '..',
      ]) {
        visitor.cookie = `${name}=${forged}`;
        expect((await visitor.get('/panel/questions')).status, forged).to.equal(401);
      }
      visitor.cookie = good;
      expect((await visitor.get('/panel/questions')).status).to.equal(200);
      panel.time.now += 8 * 24 * 3_600_000;
      expect((await visitor.get('/panel/questions')).status).to.equal(401);
    });

    it('and makes those who guess wait', async () => {
      for (let n = 0; n < 10; n++) await visitor.post('/panel/login', { token: `guess ${n}` });
      const began = performance.now();
      const blocked = await visitor.post('/panel/login', { token: 'one guess more' });
      expect(performance.now() - began).to.be.greaterThan(900);
      expect(blocked.status).to.equal(429);
      expect(Number(blocked.headers.get('retry-after'))).to.be.within(1, 60);
      panel.time.now += 61_000;
      expect((await visitor.post('/panel/login', { token: 'a later guess' })).status).to.equal(401);
    });

    it('which works immediately, however many wrong tokens came from the same address', async () => {
      let answered = 0;
      const guesses = Array.from({ length: 300 }, async (_, n) => {
        await visitor.post('/panel/login', { token: `guess ${n}` });
        answered += 1;
      });
      // The first wrong tokens are answered immediately, the others after a second.
      await guesses[0];
      expect((await new Visitor(panel.url).post('/panel/login', { token: TOKEN })).status).to.equal(303);
      expect(answered, 'the guesses wait').to.be.below(guesses.length);
      await Promise.all(guesses);
    });
  });

  describe('ends a session on sign-out', () => {
    const signOut = async (browser: Visitor) =>
      expect((await browser.post('/panel/logout', { form: await browser.formKey() })).status).to.equal(303);

    it("for every copy of its cookie, but not the person's next session", async () => {
      await visitor.signIn();
      const thief = new Visitor(panel.url);
      thief.cookie = visitor.cookie;
      expect((await thief.get('/panel/questions')).status).to.equal(200);
      await signOut(visitor);
      expect((await thief.get('/panel/questions')).status).to.equal(401);
      await visitor.signIn();
      expect((await visitor.get('/panel/questions')).status).to.equal(200);
      expect((await thief.get('/panel/questions')).status).to.equal(401);
    });

    it('at every server of the same ledger, even after restarts', async () => {
      await visitor.signIn();
      const other = await startPanel({ notes: panel.notes });
      const copy = new Visitor(other.url);
      copy.cookie = visitor.cookie;
      expect((await copy.get('/panel/questions')).status).to.equal(200);
      await signOut(visitor);
      expect((await copy.get('/panel/questions')).status).to.equal(401);
      other.server.close();
    });

    it("and lets nobody in while it can't read who has signed out", async () => {
      await visitor.signIn();
      panel.notes.broken = true;
      expect((await visitor.get('/panel/questions')).status).to.equal(503);
    });
  });

  it('counts signed-in visitors as present, and no others', async () => {
    await visitor.get('/panel/');
    await visitor.post('/panel/login', { token: 'a wrong one' });
    expect(await panel.presence.absence()).to.be.a('string');
    await visitor.signIn();
    for (const path of ['/panel/', '/panel/questions']) {
      panel.time.now += 11 * 60_000;
      expect(await panel.presence.absence()).to.be.a('string');
      expect((await visitor.get(path)).status).to.equal(200);
      expect(await panel.presence.absence()).to.equal(undefined);
    }
  });

  it('sets a Secure cookie if the visitor came by https', async () => {
    const secure = await startPanel({ secure: true });
    const answer = await new Visitor(secure.url).post('/panel/login', { token: TOKEN });
    expect(answer.headers.get('set-cookie')).to.match(/; Secure/i);
    secure.server.close();
  });
});
