import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import { Routes, type Route } from '../../src/contract/routes.js';
import { RELEASED } from '../support/sold.js';
import { sentTo } from '../support/sent-to.js';

const contract = RELEASED;
type Operation = Extract<Route, { kind: 'operation' }>;

let routes: Routes;
before(async () => {
  routes = await Routes.create(contract);
});

function operationAt(method: string, path: string): Operation {
  const route = routes.match(method, path);
  if (route.kind !== 'operation') throw new Error(`${method} ${path}: ${route.kind}`);
  return route;
}

describe('The router', () => {
  it('finds every operation of the contract, and its price', () => {
    for (const { id, path } of contract.paid) {
      const { id: found, priced } = operationAt('POST', path);
      expect({ found, priced: priced?.id }).to.deep.equal({ found: id, priced: id });
    }
    for (const { id, path } of contract.free) {
      for (const method of ['GET', 'HEAD']) {
        const { id: found, priced } = operationAt(method, path);
        expect({ found, priced }).to.deep.equal({ found: id, priced: undefined });
      }
    }
  });

  const spellings = [
    ...[
      '/v1/summarize/',
      '//v1/summarize',
      '/v1//summarize',
      '/v1%2fsummarize',
      '/v1%2Fsummarize',
      '/v1/summariz%65',
    ],
    ...[
      '/v1/./summarize',
      '/v1/x/../summarize',
      '/V1/summarize',
      '/v1/Summarize',
      '/v1/summarize?x402Version=1',
    ],
    ...[
      '/v1/summarize#a',
      '/v1/summarize;a=1',
      '/v1/summarize ',
      ' /v1/summarize',
      '/v1/summarize\u00a0',
      '\ufeff/v1/summarize',
      'v1/summarize',
      '/v1/summarize\0',
    ],
    ...[
      '',
      '*',
      '//',
      '/.',
      '/v1',
      '/health/',
      '/%68ealth',
      'http://h/v1/summarize',
      '/__proto__',
      '/constructor',
      '/{a}',
    ],
  ];
  for (const path of spellings) {
    it(`finds nothing at ${JSON.stringify(path)}`, () => {
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) {
        expect(routes.match(method, path)).to.deep.equal({ kind: 'notFound' });
      }
    });
  }

  it('does not let openapi-backend change a method', () => {
    for (const method of ['post', ' POST', 'POST '])
      expect(routes.match(method, '/v1/tts')).to.have.property('kind', 'methodNotAllowed');
  });

  it('accepts handlers for its own operations only, and calls them by operationId', async () => {
    const own = await Routes.create(contract);
    own.register({ summarize: { call: async call => ({ status: 200, body: call?.caller }) } });
    expect(() => own.register({ nobody: { call: async () => ({ status: 200, body: {} }) } })).to.throw(
      /nobody/,
    );
    const call = { params: {}, query: {}, body: {}, signal: new AbortController().signal, caller: 'c' };
    expect(await own.handle('summarize', call)).to.deep.equal({ status: 200, body: 'c' });
    for (const id of ['textToSpeech', 'constructor'])
      expect(await own.handle(id).catch((error: Error) => error.message)).to.equal(`${id} has no handler`);
  });

  it('returns the allowed methods, and the operation that is sold at the path, if the method is wrong', () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'BREW']) {
      expect(routes.match(method, '/v1/tts')).to.deep.equal({
        kind: 'methodNotAllowed',
        allow: 'POST, OPTIONS',
        priced: operationAt('POST', '/v1/tts').priced,
      });
    }
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect(routes.match(method, '/')).to.deep.equal({
        kind: 'methodNotAllowed',
        allow: 'GET, HEAD, OPTIONS',
        priced: undefined,
      });
    }
  });
});

describe('The check of a body', () => {
  const check = (path: string, body: unknown): { ok: boolean; error?: string } => {
    const route = operationAt('POST', path);
    const checked = routes.checkAsked(route, '', sentTo(route, body));
    return checked.ok ? { ok: true } : checked;
  };

  it('accepts the example of every operation', () => {
    for (const { path, request } of contract.paid) {
      expect(check(path, structuredClone(request!.example))).to.deep.equal({ ok: true });
    }
  });

  it('adds a missing n to the body itself, and does not change an n that was sent', () => {
    const body: Json = { brand: 'b', question: 'q' };
    expect(check('/brand-feedback', body)).to.deep.equal({ ok: true });
    expect(body).to.deep.equal({ brand: 'b', question: 'q', n: 5 });
    const given = { brand: 'b', question: 'q', n: 50 };
    expect(check('/brand-feedback', given)).to.deep.equal({ ok: true });
    expect(given.n).to.equal(50);
  });

  const refused: [string, Json, RegExp][] = [
    ['/v1/summarize', {}, /^text is missing$/],
    ['/v1/summarize', { text: '' }, /^text must not be empty$/],
    ['/v1/summarize', { text: 1 }, /^text must be a string$/],
    ['/v1/summarize', { text: null }, /^text must be a string$/],
    ['/v1/summarize', { text: ['a'] }, /^text must be a string$/],
    ['/brand-feedback', { brand: 'b', question: 'q', n: '5' }, /^n must be a whole number$/],
    ['/brand-feedback', { brand: 'b', question: 'q', n: null }, /^n must be a whole number$/],
    ['/brand-feedback', { brand: 'b', question: 'q', n: 1.5 }, /^n must be a whole number$/],
    ['/brand-feedback', { brand: 'b', question: 'q', n: 0 }, /^n must be at least 1$/],
    ['/brand-feedback', { brand: 'b', question: 'q', n: 51 }, /^n must be at most 50$/],
    ['/brand-feedback', { brand: '', question: 'q' }, /^brand /],
    ['/brand-feedback', { brand: 'b' }, /^question is missing$/],
    ['/brand-feedback', { n: 2 }, /^brand and question are missing$/],
    ['/v1/sol-mint-info', { mint: '' }, /^mint must not be empty$/],
    [
      '/v1/sol-mint-info',
      { mint: 'z'.repeat(31) },
      /^mint must (have at least 32 characters|be a base58 address: 32 to 44 letters and digits, without 0, O, I and l)$/,
    ],
    [
      '/v1/sol-mint-info',
      { mint: 'z'.repeat(45) },
      /^mint must (have at most 44 characters|be a base58 address: 32 to 44 letters and digits, without 0, O, I and l)$/,
    ],
    [
      '/v1/sol-mint-info',
      { mint: `${'z'.repeat(32)}\n` },
      /^mint must be a base58 address: 32 to 44 letters and digits/,
    ],
    [
      '/v1/sol-token-brief',
      { mint: '0'.repeat(40) },
      /^mint must be a base58 address: 32 to 44 letters and digits/,
    ],
    [
      '/v1/sol-mint-info',
      { mint: 'z'.repeat(32), network: 'devnet' },
      /^unknown field 'network' in the body; it takes only mint$/,
    ],
  ];
  for (const [path, body, error] of refused) {
    it(`converts no values and says what is wrong with ${path} ${JSON.stringify(body)}`, () => {
      const before = structuredClone(body);
      const result = check(path, body);
      expect(result.ok).to.equal(false);
      expect(result.error).to.match(error);
      if (!path.includes('brand')) expect(body).to.deep.equal(before);
    });
  }

  it('counts characters, not UTF-16 units, up to the limit', () => {
    for (const character of ['a', '不', '💸', '\ud83d']) {
      expect(check('/v1/tts', { text: character.repeat(2500) }), character).to.deep.equal({ ok: true });
      const { ok, error } = check('/v1/tts', { text: character.repeat(2501) });
      expect(ok, character).to.equal(false);
      expect(error).to.equal('text must have at most 2500 characters, and has 2501');
      expect(check('/v1/tts', { text: character.repeat(9000) }).error).to.equal(
        'text must have at most 2500 characters, and has more than 5000',
      );
    }
    expect(check('/v1/tts', { text: `${'💸'.repeat(2499)}\udcb8` }).ok).to.equal(true);
    expect(check('/v1/tts', { text: `${'💸'.repeat(2499)}\udcb8\ud83d` }).ok).to.equal(false);
    expect(check('/v1/tts', { text: '' }).ok).to.equal(false);
    for (const character of ['a', '💸', '\ud83d'])
      expect(check('/v1/tts', { text: character }).ok).to.equal(true);
    expect(check('/v1/sol-mint-info', { mint: '💸'.repeat(31) }).error).to.match(/at least 32|base58/);
    expect(check('/v1/summarize', { text: 'a'.repeat(100_000) }).ok).to.equal(true);
    expect(check('/v1/summarize', { text: 'a'.repeat(100_001) }).ok).to.equal(false);
  });

  it('ignores unknown fields, except where the specification allows none', () => {
    expect(check('/v1/summarize', { text: 'a', more: 1 }).ok).to.equal(true);
    expect(check('/brand-feedback', { brand: 'b', question: 'q', more: 1 }).ok).to.equal(true);
    expect(check('/v1/tts', { text: 'a', more: 1 }).ok).to.equal(true);
    const mint = 'z'.repeat(44);
    for (const path of ['/v1/sol-token-brief', '/v1/sol-mint-info']) {
      expect(check(path, { mint }).ok).to.equal(true);
      expect(check(path, { mint, more: 1 }).error).to.contain("'more'");
      expect(check(path, JSON.parse(`{"mint":"${mint}","__proto__":1}`) as Json).ok).to.equal(false);
    }
  });

  it('limits the length of its message', () => {
    const { error } = check('/v1/sol-mint-info', { mint: 'z'.repeat(44), ['x'.repeat(10_000)]: 1 });
    expect(error).to.have.length.at.most(500);
  });
});

describe('The check of an answer', () => {
  const check = (path: string, reply: { status: number; body: unknown; headers?: Record<string, string> }) =>
    routes.checkReply(operationAt('POST', path), reply);
  const wav = { 'X-TTS-Voice-Id': 'v', 'X-TTS-Format': 'f' };
  const brief = { mint: 'm', brief: 'b', sources: [], asOf: '2026-11-02T09:30:00.000Z' };
  const facts = { mint: 'm', decimals: 6, supply: '1.000000' };

  it('accepts answers that match the contract', () => {
    expect(check('/v1/summarize', { status: 200, body: { summary: 's' } })).to.equal(undefined);
    expect(check('/v1/summarize', { status: 200, body: Buffer.from('{"summary":"s"}') })).to.equal(undefined);
    expect(check('/v1/sol-token-brief', { status: 200, body: { ...brief, priceUsd: null } })).to.equal(
      undefined,
    );
    expect(check('/v1/sol-mint-info', { status: 200, body: facts })).to.equal(undefined);
    expect(check('/v1/tts', { status: 200, body: Buffer.from('RIFF'), headers: wav })).to.equal(undefined);
    for (const { path } of contract.paid) {
      expect(check(path, { status: 400, body: { error: 'e' } })).to.equal(undefined);
      expect(check(path, { status: 502, body: { error: 'e' } })).to.equal(undefined);
      expect(check(path, { status: 503, body: { error: 'e' }, headers: { 'retry-after': '5' } })).to.equal(
        undefined,
      );
    }
  });

  it('rejects an undeclared status, and a challenge that the charge did not make', () => {
    for (const status of [201, 204, 304, 401, 404, 500, 504, NaN]) {
      expect(check('/v1/summarize', { status, body: { summary: 's', error: 'e' } })).to.contain(
        'is not declared',
      );
    }
    const body = {
      x402Version: 2,
      accepts: [{ scheme: 'exact', network: 'solana', payTo: 'p', asset: 'a' }],
    };
    expect(check('/v1/summarize', { status: 402, body })).to.contain('status 402 is for the challenge');
  });

  const wrong: [string, unknown][] = [
    ['/v1/summarize', {}],
    ['/v1/summarize', { summary: '' }],
    ['/v1/summarize', { summary: 5 }],
    ['/v1/summarize', { summary: 's', mock: 'yes' }],
    ['/v1/summarize', 'summary'],
    ['/v1/summarize', null],
    ['/v1/summarize', undefined],
    ['/v1/summarize', [{ summary: 's' }]],
    ['/v1/summarize', Buffer.from('{"summary":5}')],
    ['/v1/summarize', Buffer.from('{"summary":"s"')],
    ['/v1/summarize', Buffer.from('{"summary":"é"}', 'latin1')],
    ['/v1/sol-token-brief', { ...brief, priceUsd: NaN }],
    ['/v1/sol-token-brief', { ...brief, holders: Infinity }],
    ['/v1/sol-token-brief', { ...brief, priceUsd: '1' }],
    ['/v1/sol-token-brief', { ...brief, asOf: 'yesterday' }],
    ['/v1/sol-token-brief', { ...brief, brief: 'two\nlines' }],
    ['/v1/sol-token-brief', { ...brief, sources: [1] }],
    ['/v1/sol-mint-info', { ...facts, decimals: NaN }],
    ['/v1/sol-mint-info', { ...facts, decimals: Infinity }],
    ['/v1/sol-mint-info', { ...facts, decimals: 1.5 }],
    ['/v1/sol-mint-info', { ...facts, supply: 1 }],
    ['/v1/sol-mint-info', { ...facts, supply: '1,000' }],
    ['/v1/sol-mint-info', { ...facts, network: 'solana' }],
    ['/brand-feedback', { brand: 'b', responses: [{ text: 't', sentiment: 'angry' }] }],
    ['/brand-feedback', { brand: 'b', responses: [{ sentiment: 'neutral' }] }],
  ];
  for (const [number, [path, body]] of wrong.entries()) {
    it(`rejects a body that violates the contract: ${path} (${number}) ${String(JSON.stringify(body)).slice(0, 60)}`, () => {
      expect(check(path, { status: 200, body })).to.be.a('string');
    });
  }

  it('rejects speech that is empty, not bytes, or without its headers', () => {
    expect(check('/v1/tts', { status: 200, body: Buffer.alloc(0), headers: wav })).to.equal(
      'the body must be bytes',
    );
    expect(check('/v1/tts', { status: 200, body: 'RIFF', headers: wav })).to.equal('the body must be bytes');
    expect(check('/v1/tts', { status: 200, body: { wav: 1 }, headers: wav })).to.equal(
      'the body must be bytes',
    );
    const body = Buffer.from('RIFF');
    expect(check('/v1/tts', { status: 200, body })).to.equal('header X-TTS-Voice-Id is missing');
    const half = { 'X-TTS-Voice-Id': 'v' };
    expect(check('/v1/tts', { status: 200, body, headers: half })).to.equal('header X-TTS-Format is missing');
  });

  it('rejects an error without its message, and a 503 without Retry-After', () => {
    expect(check('/v1/tts', { status: 502, body: { message: 'e' } })).to.contain('error is missing');
    expect(check('/v1/tts', { status: 502, body: { error: '' } })).to.be.a('string');
    expect(check('/v1/tts', { status: 503, body: { error: 'e' } })).to.equal('header Retry-After is missing');
  });
});
