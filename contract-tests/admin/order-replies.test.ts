import { expect } from 'chai';
import type { ReplyStore } from '../../handlers/brand-feedback/replies.js';
import { aReply } from '../support/memory-reply-store.js';
import { TOKEN as PANEL_TOKEN, Visitor, startPanel, type Panel } from '../support/one-panel.js';
import { openOperatorWorld, OPERATOR_TOKEN, owe, type OperatorWorld } from '../support/operator-world.js';

describe('the replies to a question on the operator page', () => {
  let world: OperatorWorld;
  let panel: Panel;
  let id: string;
  let cookie: string;

  beforeEach(async () => {
    world = await openOperatorWorld();
    const { clock } = world;
    panel = await startPanel({
      replyStore: world.replies,
      now: () => clock.now,
      token: PANEL_TOKEN,
    });
    id = await owe(world, false);
    cookie = '';
  });
  afterEach(async () => {
    panel.end.abort();
    panel.server.closeAllConnections();
    await new Promise(resolve => panel.server.close(resolve));
    await world.close();
  });

  async function ask(path: string, fields?: Record<string, string>): Promise<Response & { page: string }> {
    const answer = await fetch(world.url + path, {
      ...(fields ? { method: 'POST', body: new URLSearchParams(fields) } : {}),
      headers: { cookie },
      redirect: 'manual',
    });
    return Object.assign(answer, { page: await answer.text() });
  }

  async function signIn(): Promise<void> {
    const { headers } = await ask('/login', { token: OPERATOR_TOKEN });
    cookie = (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  }

  const keyIn = (page: string): string => /name="form" value="([^"]+)"/.exec(page)?.[1] ?? '';
  const rejectionOf = (reply: string): string => `/payments/${id}/reject/${reply}`;
  const texts = async (): Promise<string[]> => (await world.replies.replies(id)).map(({ text }) => text);

  it('are shown with their opinions and authors, and with who labelled them', async () => {
    const hostile = '<img src=x onerror=alert(1)>\u202e';
    await world.replies.add(id, aReply({ text: hostile, sentiment: 'negative' }));
    await world.replies.add(id, aReply({ isSample: true, sentiment: 'unknown' }));
    await signIn();
    const { page } = await ask(`/payments/${id}`);
    expect(page).to.contain('Replies <span class="soft">(2 of 5)</span>');
    expect(page).to.contain('&lt;img').and.not.contain('<img');
    expect(page).to.contain('<span class="mark negative">Negative</span>');
    expect(page).to.contain('<span class="mark neutral">Opinion not stated</span>');
    expect(page).to.contain('(sample respondent, not a person)');
    expect(page.match(/>Reject…<\/a>/g)).to.have.length(2);
    expect(page).to.contain('<bdi>Acme</bdi>').and.contain('>Any good?</div>');
  });

  it('can be rejected after a confirmation: their place is then free, but not for the same author', async () => {
    const [author, other] = [await new Visitor(panel.url).signIn(), await new Visitor(panel.url).signIn()];
    await author.reply(id, 'Something offensive.');
    const [reply] = await world.replies.replies(id);
    await signIn();
    const asked = await ask(rejectionOf(reply?.id ?? ''));
    expect(asked.page).to.contain('Reject this reply?').and.contain('Something offensive.');
    expect(await texts()).to.deep.equal(['Something offensive.']);
    const form = keyIn(asked.page);
    const done = await ask(rejectionOf(reply?.id ?? ''), { form });
    expect([done.status, done.headers.get('location')]).to.deep.equal([303, `/payments/${id}?said=reject`]);
    expect((await ask(`/payments/${id}?said=reject`)).page)
      .to.contain('The reply has been rejected.')
      .and.contain('Nobody has replied yet.');
    expect(world.logged).to.deep.equal(['the operator rejected a reply']);
    expect((await ask(rejectionOf(reply?.id ?? ''), { form })).status).to.equal(404);
    const json = { accept: 'application/json' };
    expect((await author.reply(id, 'Once more.', 'neutral', json)).text).to.contain('"duplicate"');
    expect((await other.reply(id, 'Something kind.', 'neutral', json)).text).to.contain('"added"');
    expect(await texts()).to.deep.equal(['Something kind.']);
  });

  it('that look like gibberish are shown separately, and can be counted after a confirmation', async () => {
    const author = await new Visitor(panel.url).signIn();
    await author.reply(id, 'asdf asdf');
    expect(await texts(), 'it does not count').to.deep.equal([]);
    const [held] = await world.replies.held(id);
    await signIn();
    const { page } = await ask(`/payments/${id}`);
    expect(page).to.contain('Replies <span class="soft">(0 of 5)</span>').and.contain('Held for you');
    expect(page).to.contain('>Let it count…</a>').and.contain('aria-label="Reject held reply 1…"');
    const admission = `/payments/${id}/admit/${held?.id}`;
    const asked = await ask(admission);
    expect(asked.page).to.contain('Let this reply count?').and.contain('asdf asdf');
    const form = keyIn(asked.page);
    expect((await ask(admission, { form })).status).to.equal(303);
    expect(await texts()).to.deep.equal(['asdf asdf']);
    expect(await world.replies.held(id)).to.deep.equal([]);
    expect(world.logged).to.deep.equal(['the operator admitted a reply that was held']);
    expect((await ask(admission, { form })).status, 'only once').to.equal(404);
  });

  it('that are held can be rejected: they never count', async () => {
    await world.replies.add(id, aReply({ text: 'hhhh', isHeld: true }));
    const [held] = await world.replies.held(id);
    await signIn();
    const form = keyIn((await ask(rejectionOf(held?.id ?? ''))).page);
    expect((await ask(rejectionOf(held?.id ?? ''), { form })).status).to.equal(303);
    expect([await texts(), await world.replies.held(id)]).to.deep.equal([[], []]);
  });

  it('can be replaced only while an attempt is in progress, and the page says so', async () => {
    await world.replies.add(id, aReply());
    const [reply] = await world.replies.replies(id);
    await signIn();
    expect((await ask(rejectionOf(reply?.id ?? ''))).page).to.contain(
      'Somebody else can answer instead while the question is open.',
    );
    await world.ledger.finishOrder(id);
    const { page } = await ask(rejectionOf(reply?.id ?? ''));
    const later =
      'The question is closed: somebody else can answer instead once you have started another attempt.';
    expect(page).to.contain(later).and.not.contain('while the question is open');
    const done = await ask(rejectionOf(reply?.id ?? ''), { form: keyIn(page) });
    expect((await ask(done.headers.get('location') ?? '')).page)
      .to.contain(`The reply has been rejected. ${later}`)
      .and.contain('Nobody has replied yet.');
  });

  it("can't be rejected if they were delivered while the operator was asked to confirm; the page says so", async () => {
    await world.replies.add(id, aReply());
    const [reply] = await world.replies.replies(id);
    await signIn();
    const form = keyIn((await ask(rejectionOf(reply?.id ?? ''))).page);
    const { ledger } = world;
    const reject: ReplyStore['reject'] = world.replies.reject.bind(world.replies);
    const deliver = async (): Promise<void> => {
      const row = (await ledger.adopt(id, 60_000)) ?? expect.fail('another server held it');
      await ledger.saveAnswer(id, row.claim, { status: 200, headers: {}, body: Buffer.from('{}') });
      const how = { settlement: '5'.repeat(88), answerExpiresAt: world.clock.now + 60_000 };
      expect(await ledger.deliver(id, row.claim, how)).to.equal(true);
    };
    Object.assign(world.replies, {
      reject: async (...which: Parameters<ReplyStore['reject']>) => {
        await deliver();
        return reject(...which);
      },
    });
    const late = await ask(rejectionOf(reply?.id ?? ''), { form });
    expect(late.status).to.equal(409);
    expect(late.page).to.contain('this can’t be done any more. Nothing was changed.');
    expect(world.logged).to.deep.equal([]);
    expect(await texts()).to.have.length(1);
  });

  it('are not shown to respondents: neither their token nor their cookie opens the page', async () => {
    await world.replies.add(id, aReply({ text: 'Somebody’s words.' }));
    const [reply] = await world.replies.replies(id);
    const respondent = await new Visitor(panel.url).signIn();
    expect((await ask('/login', { token: `${PANEL_TOKEN}-of-respondents` })).status).to.equal(401);
    for (const own of [
      '',
      respondent.cookie,
      respondent.cookie.replace('coinslot_panel', 'coinslot_operator'),
    ]) {
      cookie = own;
      for (const path of [`/payments/${id}`, rejectionOf(reply?.id ?? '')]) {
        const { status, page } = await ask(path);
        expect(status, path).to.equal(401);
        expect(page).to.not.contain('Somebody’s words.');
      }
      const posted = await ask(rejectionOf(reply?.id ?? ''), { form: await respondent.formKey() });
      expect(posted.status).to.equal(401);
    }
    expect(await texts()).to.deep.equal(['Somebody’s words.']);
  });

  it("can't be rejected without the page's own form, if they are unknown, or after they were delivered", async () => {
    await world.replies.add(id, aReply());
    const [reply] = await world.replies.replies(id);
    await signIn();
    const form = keyIn((await ask(rejectionOf(reply?.id ?? ''))).page);
    expect((await ask(rejectionOf(reply?.id ?? ''), {})).status).to.equal(403);
    expect((await ask(rejectionOf('no-such-reply'), { form })).status).to.equal(404);
    expect((await ask(`/payments/${'0'.repeat(64)}/reject/x`, { form })).status).to.equal(404);
    const row = (await world.ledger.adopt(id, 60_000)) ?? expect.fail('another server held it');
    await world.ledger.saveAnswer(id, row.claim, { status: 200, headers: {}, body: Buffer.from('{}') });
    const how = { settlement: '5'.repeat(88), answerExpiresAt: world.clock.now + 60_000 };
    expect(await world.ledger.deliver(id, row.claim, how)).to.equal(true);
    const late = await ask(rejectionOf(reply?.id ?? ''), { form });
    expect(late.status).to.equal(409);
    expect(late.page).to.contain('this can’t be done any more. Nothing was changed.');
    expect((await ask(`/payments/${id}`)).page).to.not.contain('Reject…');
    expect(await texts()).to.have.length(1);
  });
});
