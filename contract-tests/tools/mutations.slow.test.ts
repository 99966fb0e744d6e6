import type { Json } from '../../src/contract/json.js';
import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { PricedOperation } from '../../src/contract/contract.js';
import { loadContract, parseContract } from '../../src/contract/parse-contract.js';
import { MAX_HEADER_BYTES } from '../../src/methods/header-bytes.js';
import { renderChallenge } from '../../src/methods/x402/challenge.js';
import type { Terms } from '../../src/methods/x402/requirements.js';
import { describeInCi } from '../support/extent.js';
import {
  challengeFaults,
  closedAnswers,
  contractFaults,
  exampleFaults,
  x402Faults,
  type Seen,
} from '../support/oracle.js';
import { breaksRelease } from './breaking.js';
import { LINTERS, noLinters, type Problem } from './lint.js';
import { noPrism, startProxy, type Prism } from './prism.js';
import { recordMutations } from './record.js';

const FILE = new URL('../../../openapi.yaml', import.meta.url);
const TEXT = readFileSync(FILE, 'utf8');
const contract = loadContract(FILE);

const ADDRESS = 'z'.repeat(44);
const TERMS: Terms = {
  network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  v1Network: 'solana-devnet',
  asset: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
  payTo: '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4',
  publicUrl: `https://${'a'.repeat(52)}`,
};
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };

type Sent = { path: string; status: number; headers: Record<string, string>; body: Buffer };
type Challenge = Json & { accepts: Json[] };

function operationAt(path: string): PricedOperation {
  const operation = contract.paid.find(entry => entry.path === path);
  if (!operation) throw new Error(`nothing is sold at ${path}`);
  return operation;
}

/** Changes the challenge of summarize; the header follows the body unless `header` says otherwise. */
function challenge(change: (body: Challenge) => void = () => {}, header?: (value: string) => string): Sent {
  const path = '/v1/summarize';
  const { body } = renderChallenge(operationAt(path), TERMS, { feePayer: ADDRESS });
  const value = JSON.parse(body.toString('utf8')) as Challenge;
  change(value);
  const bytes = Buffer.from(JSON.stringify(value));
  const encoded = bytes.toString('base64');
  const headers = { ...JSON_TYPE, 'PAYMENT-REQUIRED': header ? header(encoded) : encoded };
  return { path, status: 402, headers, body: bytes };
}

function eachOption(change: (option: Json) => void): (body: Challenge) => void {
  return ({ accepts }) => accepts.forEach(change);
}

function answer(path: string, status: number, body: unknown, headers: Record<string, string> = {}): Sent {
  const bytes = body instanceof Buffer ? body : Buffer.from(JSON.stringify(body));
  return { path, status, headers: { ...JSON_TYPE, ...headers }, body: bytes };
}

function without(sent: Sent, header: string): Sent {
  const kept = Object.entries(sent.headers).filter(([name]) => name !== header);
  return { ...sent, headers: Object.fromEntries(kept) };
}

const WAV = Buffer.from('RIFF');
const SPOKEN = { 'content-type': 'audio/wav', 'X-TTS-Voice-Id': 'v', 'X-TTS-Format': 'f' };

const SOUND: Record<string, Sent> = {
  'a challenge': challenge(),
  'an answer': answer('/v1/summarize', 200, { summary: 'A text.' }),
  'an error': answer('/v1/summarize', 503, { error: 'Try again.' }, { 'Retry-After': '5' }),
  speech: answer('/v1/tts', 200, WAV, SPOKEN),
};

/** Answers of a server, each of them wrong in one way. */
const BROKEN_ANSWERS: Record<string, Sent> = {
  'the challenge asks for another price': challenge(
    eachOption(option => Object.assign(option, { amount: '20000', maxAmountRequired: '20000' })),
  ),
  'the challenge names another receiver': challenge(eachOption(option => (option['payTo'] = ADDRESS))),
  'the PAYMENT-REQUIRED header is missing': without(challenge(), 'PAYMENT-REQUIRED'),
  'header and body of the challenge differ': challenge(undefined, header => header.slice(0, -8)),
  'the amount is a number': challenge(eachOption(option => (option['amount'] = 10_000))),
  'the network has a wrong name': challenge(eachOption(option => (option['network'] = 'solana-mainnet'))),
  'a v2 challenge also names the v1 network': challenge(body =>
    body.accepts.push({ ...body.accepts[0], network: TERMS.v1Network }),
  ),
  'the challenge offers nothing': challenge(body => (body.accepts = [])),
  'an undeclared status': answer('/v1/summarize', 404, { error: 'Not found.' }),
  'the Retry-After header is missing': answer('/v1/summarize', 503, { error: 'Try again.' }),
  'the answer lacks its only field': answer('/v1/summarize', 200, { text: 'A text.' }),
  'an error without an error object': answer('/v1/summarize', 400, { message: 'Bad.' }),
  'an error as plain text': answer('/v1/summarize', 502, Buffer.from('Bad gateway'), {
    'content-type': 'text/plain',
  }),
  'speech without the header that names its voice': without(SOUND['speech'] ?? challenge(), 'X-TTS-Voice-Id'),
};

/** Changes to the contract that each break one promise: the text that is replaced, and its replacement. */
const BROKEN_DOCUMENTS: Record<string, [string | RegExp, string]> = {
  'a price goes up': ["amount: '0.025'", "amount: '0.25'"],
  'a price is a number': ["amount: '0.50'", 'amount: 0.50'],
  'a paid operation has no x-price': [/\n {6}x-price: .*amount: '0.025'.*/, ''],
  'a free operation has an x-price': [
    'operationId: getHealth\n',
    "operationId: getHealth\n      x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }\n",
  ],
  'a request requires one more field': ['required: [brand, question]', 'required: [brand, question, n]'],
  'a limit is tightened': ['maxLength: 2500', 'maxLength: 250'],
  'a query parameter accepts fewer values': [
    "        type: string\n        examples: ['1']\n",
    "        type: string\n        enum: ['1']\n",
  ],
  'an answer may lack a field': ['required: [mint, decimals, supply]', 'required: [mint, decimals]'],
  'an answer allows no additional fields': [
    /(\n {4}Summary:\n {6}type: object\n {6}description: .*\n {6}additionalProperties: )true/,
    '$1false',
  ],
  'a paid operation never answers 503': [
    /(operationId: summarize\n[\s\S]*?)\n {8}'503':\n.*Unavailable'/,
    '$1',
  ],
  'an example does not match its schema': ['text: One coin, one call.', 'voice_id: 7'],
  'the challenge outgrows its header': [
    'summary: Speak a text as WAV',
    `summary: ${'Speak a text as WAV, and then another one. '.repeat(120).trim()}`,
  ],
};

const LIVE = { feePayer: ADDRESS, recentBlockhash: ADDRESS };

/** Checks of a document that need nothing installed: those of the server's own startup, and the tests next to this one. */
const DOCUMENT_CHECKS: Record<string, (text: string) => boolean> = {
  'the server at startup': text => {
    try {
      const { paid } = parseContract(text);
      return paid.some(
        operation =>
          String(renderChallenge(operation, TERMS, LIVE).headers['PAYMENT-REQUIRED']).length >
          MAX_HEADER_BYTES,
      );
    } catch {
      return true;
    }
  },
  'comparison with 1.0.0': text => breaksRelease(parse(text) as Json).length > 0,
  'answers allow additional fields': text => closedAnswers(parse(text) as Json).length > 0,
  examples: text => exampleFaults(parse(text) as Json).length > 0,
};

const caught: Record<string, string[]> = {};

function note(mutation: string, checks: string[]): void {
  caught[mutation] = checks;
  expect(checks, `nothing notices that ${mutation}`).not.to.be.empty;
}

after(() => {
  if (!noPrism && !noLinters) recordMutations(caught);
});

describe(`A server that breaks the contract is noticed${noPrism ? ` (without Prism: ${noPrism})` : ''}`, function () {
  this.timeout(60_000);
  let stub: Server;
  let prism: Prism | undefined;
  let next: Sent;

  before(async () => {
    stub = createServer((request, response) => {
      request.resume();
      response.writeHead(next.status, { ...next.headers, 'content-length': next.body.length }).end(next.body);
    });
    await new Promise<void>(resolve => stub.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(stub.address() as AddressInfo).port}`;
    if (!noPrism) prism = await startProxy(FILE, url);
  });

  after(async () => {
    await prism?.close();
    stub.closeAllConnections();
    await new Promise(resolve => stub.close(resolve));
  });

  async function ask(base: string, sent: Sent): Promise<Seen> {
    next = sent;
    const response = await fetch(base + sent.path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(operationAt(sent.path).request?.example),
      signal: AbortSignal.timeout(20_000),
    });
    const { status, headers } = response;
    return { status, headers, body: Buffer.from(await response.arrayBuffer()) };
  }

  async function checksThatNotice(sent: Sent): Promise<string[]> {
    const operation = operationAt(sent.path);
    const seen = await ask(`http://127.0.0.1:${(stub.address() as AddressInfo).port}`, sent);
    const faults: Record<string, string[]> = {
      'answer against contract': contractFaults(contract, operation, seen),
      'challenge against offer': challengeFaults(operation, TERMS, seen),
      'x402 schemas': x402Faults(seen),
    };
    const proxied = prism ? (await ask(prism.url, sent)).headers.get('sl-violations') : null;
    if (proxied?.includes('"response"')) faults['Prism'] = [proxied];
    return Object.keys(faults).filter(name => faults[name]?.length);
  }

  for (const [name, sent] of Object.entries(SOUND)) {
    it(`${name} without a change has no findings`, async () => {
      expect(await checksThatNotice(sent)).to.deep.equal([]);
    });
  }

  for (const [name, sent] of Object.entries(BROKEN_ANSWERS)) {
    it(name, async () => note(name, await checksThatNotice(sent)));
  }
});

describeInCi(
  `A contract that breaks a promise is noticed${noLinters ? ` (without linters: ${noLinters})` : ''}`,
  function () {
    this.timeout(180_000);
    const folder = mkdtempSync(join(tmpdir(), 'coinslot-mutations-'));
    const fileOf = (index: number): string => join(folder, `${index}.yaml`);
    const texts = Object.entries(BROKEN_DOCUMENTS).map(([name, [from, to]]) => ({
      name,
      text: TEXT.replace(from, to),
    }));
    const problems: Record<string, Problem[]> = {};

    before(() => {
      if (noLinters) return;
      for (const [index, { text }] of texts.entries()) writeFileSync(fileOf(index), text);
      for (const { name, run } of LINTERS) problems[name] = run(texts.map((_text, index) => fileOf(index)));
    });

    after(() => rmSync(folder, { recursive: true, force: true }));

    it('the contract without a change has no findings', () => {
      for (const [name, notices] of Object.entries(DOCUMENT_CHECKS))
        expect(notices(TEXT), name).to.equal(false);
    });

    for (const [index, { name, text }] of texts.entries()) {
      it(name, () => {
        expect(text, 'the mutation changes nothing').not.to.equal(TEXT);
        const own = Object.entries(DOCUMENT_CHECKS).filter(([, notices]) => notices(text));
        const tools = Object.entries(problems).filter(([, found]) =>
          found.some(({ file }) => file === fileOf(index)),
        );
        note(
          name,
          [...own, ...tools].map(([check]) => check),
        );
      });
    }
  },
);
