import { expect } from 'chai';
import { createHmac, randomBytes } from 'node:crypto';
import { AnswerKeys } from '../../src/http/answer-keys.js';
import { changeSecret, readSecrets, SECRETS_READ_EVERY_MS } from '../../src/http/answer-secrets.js';
import { openLedger, openLedgerReader } from '../../src/ledger/store.js';
import { ledgerCommand } from '../support/ledger-command.js';
import { onEachEngine, type LedgerPlace, forServer, databaseSettings } from '../support/ledger-places.js';
import { OWNER } from '../support/ledgers.js';
import { answerSecret } from '../support/answer-secret.js';
import { anotherText, callTool, mcp, paid, payloadOf, type ToolCall } from '../support/mcp-call.js';
import { call, openWorld, post, receiptOf, signFor, type Answer, type World } from '../support/world.js';

type Json = Record<string, unknown>;
type Link = { key: string; url: string };

const linkIn = (result: ToolCall): Link => result._meta?.['coinslot/pick-up'] as Link;

/** The receipt without its signature and time: each answer is signed again, with the current second. */
const settlementIn = (result: ToolCall): Json => ({
  ...(result._meta?.['x402/payment-response'] as Json),
  extensions: undefined,
});

describe('the key of an answer', () => {
  const id = randomBytes(32).toString('hex');
  const callers = [0, 1, 300].map(number => ({ id, number }));

  it('identifies its payment and caller, alone or in its URL, at every server that has the secret', () => {
    const [one, other] = [randomBytes(32), randomBytes(32)];
    const keys = new AnswerKeys([answerSecret(one)], 'https://shop.example/answers/');
    const elsewhere = new AnswerKeys([answerSecret(one)], undefined);
    for (const caller of callers) {
      const { key, url } = keys.linkOf(caller);
      expect(url).to.equal(`https://shop.example/answers/${key}`);
      for (const found of [keys.callerOf(key), keys.callerOf(url ?? ''), elsewhere.callerOf(key)])
        expect(found).to.deep.equal(caller);
      expect(elsewhere.linkOf(caller)).to.deep.equal({ key, url: undefined });
      expect(new AnswerKeys([answerSecret(other)], undefined).callerOf(key)).to.equal(undefined);
    }
    expect(new Set(callers.map(each => keys.linkOf(each).key)).size).to.equal(callers.length);
  });

  it('made by an earlier version still opens its answer', () => {
    const secret = randomBytes(32);
    const bytes = Buffer.from(id, 'hex');
    const mac = createHmac('sha256', secret).update(bytes).digest();
    const key = Buffer.concat([bytes, mac]).toString('base64url');
    expect(new AnswerKeys([answerSecret(secret)], undefined).callerOf(key)).to.deep.equal({ id, number: 0 });
  });

  it('is invalid if a character is changed, removed or added', () => {
    const keys = new AnswerKeys([answerSecret(randomBytes(32))], undefined);
    for (const { key } of callers.map(each => keys.linkOf(each))) {
      for (let at = 0; at < key.length - 1; at++) {
        const changed = key.slice(0, at) + (key[at] === 'A' ? 'B' : 'A') + key.slice(at + 1);
        expect(keys.callerOf(changed), changed).to.equal(undefined);
      }
      for (const other of ['', key.slice(1), `${key}A`, `${key}=`, ` ${key}`])
        expect(keys.callerOf(other), other).to.equal(undefined);
    }
  });
});

onEachEngine('the secret of the keys of answers', make => {
  let place: LedgerPlace;
  beforeEach(async () => {
    place = await make();
    await (await openLedger({ ...forServer(place.url), ...OWNER })).close();
  });
  afterEach(() => place.remove());

  for (const leaked of [false, true])
    it(`is changed while servers run, and keys issued before stay valid for ${leaked ? 'half a minute' : 'a month'}`, async () => {
      const ledger = await openLedgerReader({ url: place.url });
      let now = Date.now();
      const server = async (): Promise<AnswerKeys> => {
        const keys = new AnswerKeys(await readSecrets(ledger, now), undefined, () => now);
        await keys.refresh(ledger);
        return keys;
      };
      const [one, two] = [await server(), await server()];
      const caller = { id: randomBytes(32).toString('hex'), number: 3 };
      const given = one.linkOf(caller).key;
      const { from, formerUntil } = await changeSecret(ledger, { leaked, now });
      expect(from - now).to.be.greaterThan(SECRETS_READ_EVERY_MS);
      // Only the first server has read the new secret.
      await one.refresh(ledger);
      expect(one.linkOf(caller).key, 'until all have read it').to.equal(given);
      expect(two.callerOf(one.linkOf(caller).key)).to.deep.equal(caller);
      await two.refresh(ledger);
      now = from;
      const renewed = one.linkOf(caller).key;
      expect(renewed).to.not.equal(given);
      for (const each of [one, two, await server()]) {
        expect(each.callerOf(renewed)).to.deep.equal(caller);
        expect(each.linkOf(caller).key).to.equal(renewed);
        expect(each.callerOf(given)).to.deep.equal(leaked ? undefined : caller);
      }
      now = formerUntil;
      for (const each of [one, await server()]) {
        expect(each.callerOf(given)).to.equal(undefined);
        expect(each.callerOf(renewed)).to.deep.equal(caller);
      }
      // After a second change, keys made with the middle secret are still accepted.
      const again = await changeSecret(ledger, { leaked: false, now });
      now = again.from;
      expect((await server()).callerOf(renewed)).to.deep.equal(caller);
      await ledger.close();
    });

  it('is changed by a command, which never shows it', async () => {
    const env = { ...databaseSettings(place) };
    expect(await ledgerCommand(env, 'answer-keys')).to.include({ status: 1, stdout: '' });
    const { status, stdout, stderr } = await ledgerCommand(env, 'answer-keys', '--change', '--leaked');
    expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
    const ledger = await openLedgerReader({ url: place.url });
    const secrets = await readSecrets(ledger, Date.now());
    await ledger.close();
    expect(secrets).to.have.length(2);
    for (const { secret } of secrets) expect(stdout).to.not.include(secret);
  });
});

describe('an answer that is fetched by its key, without the payment', () => {
  let world: World;
  let url: string;
  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
    url = world.url;
  });
  after(() => world.close());

  const buy = async (asked: Json, path = '/v1/summarize'): Promise<Answer> =>
    post(url + path, asked, await signFor(world, path));
  const locationOf = (answer: Answer): string => answer.headers.get('location') ?? '';

  it('over HTTP, it has the same bytes and receipt, free of charge, any number of times', async () => {
    const bought = await buy(anotherText());
    const location = locationOf(bought);
    expect(location).to.match(new RegExp(`^${url}/answers/[A-Za-z0-9_-]{86}$`));
    const before = await world.earned();
    for (let times = 0; times < 2; times++) {
      const fetched = await call(location);
      expect([fetched.status, fetched.body]).to.deep.equal([200, bought.body]);
      expect(fetched.headers.get('content-type')).to.equal(bought.headers.get('content-type'));
      expect(fetched.headers.get('cache-control')).to.equal('no-store');
      expect(receiptOf(fetched)).to.deep.equal(receiptOf(bought));
    }
    const head = await call(location, { method: 'HEAD' });
    expect([head.status, head.body.length]).to.deep.equal([200, 0]);
    expect(await world.earned()).to.equal(before);
  });

  it('over MCP, it may have been bought over HTTP, and the other way round', async () => {
    const bought = await buy(anotherText());
    const fetched = await callTool(url, 'pick_up', { key: locationOf(bought) });
    expect(fetched.structuredContent).to.deep.equal(bought.json());
    const payload = payloadOf(await signFor(world, '/v1/summarize'));
    const sold = await callTool(url, 'summarize', anotherText(), paid(payload));
    const { key, url: location } = linkIn(sold);
    expect((await call(location)).json()).to.deep.equal(sold.structuredContent);
    const again = await callTool(url, 'pick_up', { key });
    expect(again.structuredContent).to.deep.equal(sold.structuredContent);
    expect(linkIn(again)).to.deep.equal(linkIn(sold));
    expect(settlementIn(again)).to.deep.equal(settlementIn(sold));
  });

  it('a key that was not made for this ledger gets a 404, whatever its form', async () => {
    for (const key of ['A'.repeat(86), 'nothing', '%20', 'x'.repeat(200)]) {
      const answer = await call(`${url}/answers/${key}`);
      expect([answer.status, answer.json().error], key).to.deep.equal([
        404,
        'This server has no call with this key. Use the whole URL of the Location header.',
      ]);
    }
    const result = await callTool(url, 'pick_up', {});
    expect([result.isError, result.structuredContent?.status]).to.deep.equal([true, 404]);
  });

  it('an answer that is fetched too often gets a 503 for a moment', async () => {
    const location = locationOf(await buy(anotherText()));
    const answers = await Promise.all(Array.from({ length: 40 }, () => call(location)));
    const busy = answers.filter(({ status }) => status === 503);
    expect(busy.length).to.be.greaterThan(0);
    expect(busy.every(({ headers }) => Number(headers.get('retry-after')) >= 1)).to.equal(true);
    expect(answers.filter(({ status }) => status === 200).length + busy.length).to.equal(40);
  });

  it('a call that people have not answered yet has the URL in its 503, and its key gets the answer later', async function () {
    this.timeout(60_000);
    const asked = { brand: 'Harbour Coffee', question: 'What do you think of the new cup?', n: 2 };
    const signed = await signFor(world, '/brand-feedback');
    const waiting = await post(`${url}/brand-feedback`, asked, { ...signed, prefer: 'wait=0' });
    const location = locationOf(waiting);
    expect(waiting.status).to.equal(503);
    expect(waiting.json().error).to.equal(
      `Paid, and in progress: send the same payment again. Or fetch the answer, free and without the payment: GET ${location}`,
    );
    const early = await call(location);
    expect([early.status, receiptOf(early).success]).to.deep.equal([503, true]);
    expect(Number(early.headers.get('retry-after'))).to.be.greaterThan(0);
    let answer = early;
    for (let tries = 0; tries < 60 && answer.status === 503; tries++) {
      await new Promise(resolve => setTimeout(resolve, 700));
      answer = await call(location);
    }
    expect(answer.status).to.equal(200);
    expect(answer.json().responses).to.have.length(2);
    expect((await post(`${url}/brand-feedback`, asked, signed)).json()).to.deep.equal(answer.json());
  });

  it('speech over 1 MB is a link even if audio was requested, and its key opens it over HTTP and as a resource', async function () {
    this.timeout(60_000);
    const text = 'The harbour bridge will close for repairs on Monday. '.repeat(12);
    const payload = payloadOf(await signFor(world, '/v1/tts'));
    const inline = { ...paid(payload), 'coinslot/inline': true };
    const sold = await callTool(url, 'textToSpeech', { text }, inline);
    const { url: uri, size, mimeType } = sold.structuredContent ?? {};
    expect([uri, mimeType]).to.deep.equal([linkIn(sold).url, 'audio/wav']);
    expect(size).to.be.greaterThan(1024 * 1024);
    const [said] = sold.content;
    const until = Date.parse(/kept until (\S+Z)\)/.exec(said?.text ?? '')?.[1] ?? '');
    expect(until - Date.now()).to.be.within(23 * 3_600_000, 24 * 3_600_000);
    const before = await world.earned();
    const anew = await callTool(
      url,
      'textToSpeech',
      { text },
      paid(payloadOf(await signFor(world, '/v1/tts'))),
    );
    expect(await world.earned(), 'nobody followed the link').to.equal(before);
    expect(settlementIn(anew)).to.deep.equal(settlementIn(sold));
    expect((await call(linkIn(anew).url, { method: 'HEAD' })).status).to.equal(200);
    const fetched = await call(linkIn(sold).url);
    expect([fetched.status, fetched.body.length]).to.deep.equal([200, size]);
    const { message } = await mcp(url, 'resources/read', { uri });
    const [resource] = message.result?.contents as { blob: string; mimeType: string }[];
    expect(Buffer.from(resource?.blob ?? '', 'base64').equals(fetched.body)).to.equal(true);
    const unknown = await mcp(url, 'resources/read', { uri: `${url}/answers/${'A'.repeat(86)}` });
    expect(unknown.message).to.have.property('error');
  });
});
