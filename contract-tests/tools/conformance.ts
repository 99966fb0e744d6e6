import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { breaksRelease } from './breaking.js';

/** How a deployed server is checked. Prices are USDC; nothing is paid unless `keypair` and `maxPrice` are both given. */
export type CheckedServer = {
  url: string;
  keypair?: Uint8Array | undefined;
  maxPrice?: number | undefined;
  rpcUrl?: string | undefined;
};

/** One promise of a server, and how it is broken if it is. */
export type Finding = { promise: string; fault: string | undefined };

type Answer = { status: number; headers: Headers; body: Buffer };
type Fields = Record<string, unknown>;
type Paid = { path: string; amount: string; atomic: string; example: unknown };
type Option = Fields & { network: string; extra?: Fields };
type Discovery = Fields & { version: number; resources: string[]; instructions: string };
type Challenge = Fields & { accepts: Option[]; resource?: Fields };

const TIMEOUT_MS = 20_000;
const PAID_TIMEOUT_MS = 90_000;
const MAX_BODY_BYTES = 16 << 20;
/** nginx and other proxies cut response headers that are longer. */
const MAX_HEADER_BYTES = 4096;
/** The longest text of `summarize`, four bytes a character: a front that takes less refuses calls that the contract allows. */
const LARGE_BODY = { text: '💸'.repeat(100_000) };
const CAIP2 = /^solana:[1-9A-HJ-NP-Za-km-z]{32}$/;
const DOCUMENTS = [
  '/',
  '/openapi.json',
  '/.well-known/x402',
  '/seller/.well-known/x402',
  '/brand/.well-known/x402',
  '/tts/.well-known/x402',
];

async function call(url: string, init: RequestInit = {}, timeoutMs = TIMEOUT_MS): Promise<Answer> {
  const response = await fetch(url, {
    redirect: 'manual',
    ...init,
    signal: AbortSignal.timeout(timeoutMs),
  });
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Error(`the answer of ${url} is longer than ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return { status: response.status, headers: response.headers, body: Buffer.concat(chunks) };
}

const post = (url: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  call(
    url,
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    },
    Object.keys(headers).length ? PAID_TIMEOUT_MS : TIMEOUT_MS,
  );

function json(answer: Answer): Fields {
  assert.match(
    answer.headers.get('content-type') ?? '',
    /^application\/json\b/,
    `Content-Type is ${answer.headers.get('content-type')}, not JSON`,
  );
  const parsed: unknown = JSON.parse(answer.body.toString('utf8'));
  assert.ok(typeof parsed === 'object' && parsed !== null, 'the body is no JSON object');
  return parsed as Fields;
}

function expectStatus(answer: Answer, status: number): void {
  const start = answer.body.subarray(0, 120).toString('utf8');
  assert.equal(answer.status, status, `status ${answer.status} instead of ${status}: ${start}`);
}

function expectHeader(answer: Answer, name: string, pattern: RegExp): void {
  const value = answer.headers.get(name);
  assert.ok(value !== null, `no ${name} header: a proxy may have dropped it`);
  assert.match(value, pattern, `${name} is ${value.slice(0, 100)}`);
}

/** An error of ours is JSON that says what to do next. */
function expectError(answer: Answer, status: number): void {
  expectStatus(answer, status);
  const { error } = json(answer);
  assert.ok(typeof error === 'string' && error.length > 0, 'the body has no `error` text');
}

function atomicOf(amount: string): string {
  const [whole = '', fraction = ''] = amount.split('.');
  assert.match(amount, /^\d+(\.\d{1,6})?$/, `the price ${amount} is no USDC amount`);
  return BigInt(whole + fraction.padEnd(6, '0')).toString();
}

/** The priced operations of a served description. */
function paidOf(document: Fields): Paid[] {
  const paid: Paid[] = [];
  for (const [path, item] of Object.entries(
    (document.paths ?? {}) as Record<string, Record<string, Fields>>,
  )) {
    const info = item.post?.['x-payment-info'] as { price?: { amount?: string } } | undefined;
    if (!info) continue;
    const amount = String(info.price?.amount);
    const media = (item.post?.requestBody as { content?: Record<string, Fields> } | undefined)?.content;
    paid.push({ path, amount, atomic: atomicOf(amount), example: media?.['application/json']?.example });
  }
  return paid;
}

function challengeOf(answer: Answer): Challenge {
  expectStatus(answer, 402);
  const challenge = json(answer) as Challenge;
  const header = answer.headers.get('payment-required');
  assert.ok(header !== null, 'no PAYMENT-REQUIRED header: a proxy may have dropped it');
  assert.ok(
    header.length <= MAX_HEADER_BYTES,
    `PAYMENT-REQUIRED has ${header.length} bytes, proxies cut at ${MAX_HEADER_BYTES}: shorten PUBLIC_URL`,
  );
  assert.ok(
    Buffer.from(header, 'base64').equals(answer.body),
    'PAYMENT-REQUIRED is not the base64 of the body',
  );
  expectHeader(answer, 'cache-control', /\bno-store\b/);
  expectHeader(answer, 'access-control-allow-origin', /^\*$/);
  expectHeader(answer, 'access-control-expose-headers', /\bPAYMENT-REQUIRED\b/i);
  assert.ok(Array.isArray(challenge.accepts) && challenge.accepts.length > 0, 'nothing is accepted');
  return challenge;
}

function expectOption(option: Option, { path, atomic, amount }: Paid, origin: string): void {
  assert.equal(option.scheme, 'exact', 'the scheme is not exact');
  for (const name of ['amount', 'maxAmountRequired']) {
    assert.equal(option[name], atomic, `${name} is ${option[name]}, the price ${amount} is ${atomic}`);
  }
  assert.equal(option.resource, origin + path, `resource is ${option.resource}, not ${origin + path}`);
  for (const name of ['payTo', 'asset'])
    assert.match(String(option[name]), /^[1-9A-HJ-NP-Za-km-z]{32,44}$/, name);
  assert.match(String(option.extra?.feePayer), /^[1-9A-HJ-NP-Za-km-z]{32,44}$/, 'no extra.feePayer');
}

class Conformance {
  readonly findings: Finding[] = [];
  readonly #subject: CheckedServer;
  readonly #url: string;
  #document: Fields = {};
  #paid: Paid[] = [];
  #payTo: string | undefined;

  constructor(subject: CheckedServer) {
    this.#subject = subject;
    this.#url = subject.url.replace(/\/+$/, '');
  }

  async #check(promise: string, checkServer: () => Promise<void>): Promise<void> {
    try {
      await checkServer();
      this.findings.push({ promise, fault: undefined });
    } catch (error) {
      const { message, cause } = error as Error;
      const why = cause instanceof Error ? ` (${cause.message})` : '';
      this.findings.push({ promise, fault: `${message.split('\n')[0]}${why}` });
    }
  }

  async run(): Promise<Finding[]> {
    await this.#descriptions();
    for (const operation of this.#paid) await this.#challenge(operation);
    await this.#front();
    await this.#live();
    await this.#purchase();
    return this.findings;
  }

  async #descriptions(): Promise<void> {
    await this.#check('/openapi.json describes five paid operations under this address', async () => {
      const answer = await call(`${this.#url}/openapi.json`);
      expectStatus(answer, 200);
      this.#document = json(answer);
      this.#paid = paidOf(this.#document);
      assert.equal(this.#paid.length, 5, `${this.#paid.length} paid operations instead of 5`);
      const [server] = this.#document.servers as { url: string }[];
      assert.equal(server?.url, this.#url, `servers names ${server?.url}: set PUBLIC_URL to ${this.#url}`);
    });
    await this.#check('/openapi.json keeps the prices, limits and headers of 1.0.0', async () => {
      const broken = breaksRelease(this.#document);
      assert.deepEqual(broken, [], broken.join('; '));
    });
    await this.#check('/.well-known/x402 lists them, with prices and call shapes', () => this.#discovery());
    await this.#check('the upstream discovery documents list them too, each once', () => this.#upstream());
    await this.#check('/ is an index whose prices and links are right', () => this.#index());
    for (const path of DOCUMENTS) {
      await this.#check(
        `GET ${path} has an ETag and answers 304 to it; HEAD is the same without a body`,
        () => this.#cached(path),
      );
    }
  }

  async #resources(path: string): Promise<Discovery> {
    const answer = await call(this.#url + path);
    expectStatus(answer, 200);
    const document = json(answer) as Discovery;
    assert.equal(document.version, 1, `the version is ${document.version}, not 1`);
    assert.ok(Array.isArray(document.resources), 'no resources');
    return document;
  }

  async #discovery(): Promise<void> {
    const { resources, instructions } = await this.#resources('/.well-known/x402');
    assert.deepEqual(
      new Set(resources),
      new Set(this.#paid.map(({ path }) => this.#url + path)),
      resources.join(' '),
    );
    for (const { path, amount } of this.#paid) {
      const line = String(instructions)
        .split('\n')
        .find(text => text.includes(`POST ${path} `));
      assert.ok(
        line?.includes(`${amount} USDC`),
        `the instructions don't say that ${path} costs ${amount} USDC`,
      );
    }
  }

  async #upstream(): Promise<void> {
    const lists = await Promise.all(
      ['/seller', '/brand', '/tts'].map(prefix => this.#resources(`${prefix}/.well-known/x402`)),
    );
    const listed = lists.flatMap(({ resources }) => resources).sort();
    assert.deepEqual(
      listed,
      this.#paid.map(({ path }) => this.#url + path).sort(),
      `they list ${listed.join(' ')}`,
    );
  }

  async #index(): Promise<void> {
    const answer = await call(`${this.#url}/`);
    expectStatus(answer, 200);
    const index = json(answer);
    const prices = Object.fromEntries(
      this.#paid.map(({ path, amount }) => [`POST ${path}`, `${amount} USDC`]),
    );
    assert.deepEqual(index.endpoints, prices, `the prices are ${JSON.stringify(index.endpoints)}`);
    for (const path of [index.discovery, index.upstreamDiscovery, index.health].flat() as string[]) {
      const { status } = await call(this.#url + path);
      assert.equal(status, 200, `${path} answers ${status}`);
    }
  }

  async #cached(path: string): Promise<void> {
    const url = this.#url + path;
    const answer = await call(url);
    expectStatus(answer, 200);
    expectHeader(answer, 'etag', /^(W\/)?"[^"]+"$/);
    expectHeader(answer, 'access-control-allow-origin', /^\*$/);
    expectHeader(answer, 'access-control-expose-headers', /\bETag\b/i);
    const etag = answer.headers.get('etag') ?? '';
    const again = await call(url, { headers: { 'if-none-match': etag } });
    assert.equal(again.status, 304, `If-None-Match with its own ETag answers ${again.status} instead of 304`);
    const head = await call(url, { method: 'HEAD' });
    assert.equal(head.status, 200, `HEAD answers ${head.status}`);
    assert.equal(head.headers.get('etag'), etag, 'HEAD has another ETag');
  }

  async #challenge(operation: Paid): Promise<void> {
    const url = this.#url + operation.path;
    await this.#check(`POST ${operation.path} without payment is a v2 challenge at its price`, async () => {
      const challenge = challengeOf(await post(url, operation.example));
      assert.equal(challenge.x402Version, 2, `x402Version is ${String(challenge.x402Version)}`);
      assert.equal(
        challenge.resource?.url,
        url,
        `resource.url is ${String(challenge.resource?.url)}: set PUBLIC_URL`,
      );
      for (const option of challenge.accepts) {
        assert.match(option.network, CAIP2, `the network ${option.network} is no CAIP-2 name`);
        this.#option(option, operation);
      }
    });
    await this.#check(`POST ${operation.path}?x402Version=1 is a v1 challenge at its price`, async () => {
      const challenge = challengeOf(await post(`${url}?x402Version=1`, operation.example));
      assert.equal(challenge.x402Version, 1, `x402Version is ${String(challenge.x402Version)}`);
      for (const option of challenge.accepts) {
        assert.match(option.network, /^solana(-devnet)?$/, `the network ${option.network} is none of v1`);
        this.#option(option, operation);
      }
    });
    await this.#check(
      `POST ${operation.path} with a payment that can't be read is a 402 that says so`,
      async () => {
        const challenge = challengeOf(
          await post(url, operation.example, { 'payment-signature': 'bm90aGluZw==' }),
        );
        assert.ok(typeof challenge.error === 'string' && challenge.error, 'the challenge has no `error`');
      },
    );
  }

  #option(option: Option, operation: Paid): void {
    expectOption(option, operation, this.#url);
    this.#payTo ??= String(option.payTo);
    assert.equal(
      option.payTo,
      this.#payTo,
      `payTo is ${String(option.payTo)}, elsewhere it is ${this.#payTo}`,
    );
  }

  /** What a proxy in front of the server may swallow or change. */
  async #front(): Promise<void> {
    const path = this.#paid[0]?.path ?? '/v1/summarize';
    await this.#check('a browser may pay: OPTIONS allows every origin and the payment headers', async () => {
      const answer = await call(this.#url + path, {
        method: 'OPTIONS',
        headers: {
          origin: 'https://browser.example',
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type,payment-signature',
        },
      });
      expectStatus(answer, 204);
      expectHeader(answer, 'access-control-allow-origin', /^\*$/);
      expectHeader(answer, 'access-control-allow-methods', /\bPOST\b/);
      for (const name of ['content-type', 'payment-signature', 'x-payment', 'prefer', 'if-none-match']) {
        expectHeader(answer, 'access-control-allow-headers', new RegExp(`\\b${name}\\b`, 'i'));
      }
      expectHeader(answer, 'access-control-max-age', /^[1-9]\d*$/);
    });
    await this.#check('an unknown path is a 404 of ours', async () =>
      expectError(await call(`${this.#url}/no-such-path`), 404),
    );
    await this.#check('a wrong method is a 405 of ours that says which are allowed', async () => {
      const answer = await call(this.#url + path);
      expectError(answer, 405);
      expectHeader(answer, 'allow', /\bPOST\b/);
    });
    await this.#check('400 KB of request body get through', async () => {
      challengeOf(await post(this.#url + path, LARGE_BODY));
    });
    await this.#check('12 KB of request headers get through', async () => {
      challengeOf(await post(this.#url + path, undefined, { 'x-filler': 'x'.repeat(12_000) }));
    });
  }

  async #live(): Promise<void> {
    for (const path of ['/health', '/brand/health', '/tts/health']) {
      await this.#check(`GET ${path} says ok`, async () => {
        const answer = await call(this.#url + path);
        expectStatus(answer, 200);
        const { status, upstreams } = json(answer);
        assert.equal(status, 'ok', `it says ${String(status)}: ${JSON.stringify(upstreams).slice(0, 300)}`);
      });
    }
    await this.#check('GET /tts/v1/voices lists the default voice', async () => {
      const answer = await call(`${this.#url}/tts/v1/voices`);
      expectStatus(answer, 200);
      const list = json(answer) as { default?: string; voices?: { id: string }[] };
      assert.ok(
        list.voices?.some(({ id }) => id === list.default),
        `${list.default} is not listed`,
      );
    });
  }

  /** Buys the cheapest operation once, where the operator gave a key and a limit. */
  async #purchase(): Promise<void> {
    const { keypair, maxPrice, rpcUrl } = this.#subject;
    if (!keypair || maxPrice === undefined) return;
    const [cheapest] = [...this.#paid].sort((a, b) => Number(a.atomic) - Number(b.atomic));
    if (!cheapest) return;
    await this.#check(
      `POST ${cheapest.path}, paid, is answered; sent again, it is the same answer`,
      async () => {
        const limit = Math.round(maxPrice * 1e6);
        assert.ok(
          Number(cheapest.atomic) <= limit,
          `it costs ${cheapest.amount} USDC, --max-price is ${maxPrice}`,
        );
        const url = this.#url + cheapest.path;
        const challenge = challengeOf(await post(url, cheapest.example));
        for (const option of challenge.accepts) this.#option(option, cheapest);
        const headers = await sign(challenge, keypair, rpcUrl);
        const [first, second] = [
          await post(url, cheapest.example, headers),
          await post(url, cheapest.example, headers),
        ];
        for (const answer of [first, second]) {
          expectStatus(answer, 200);
          const receipt = Buffer.from(answer.headers.get('payment-response') ?? '', 'base64').toString(
            'utf8',
          );
          assert.match(receipt, /"success":true/, `the receipt is ${receipt.slice(0, 200) || 'missing'}`);
        }
        assert.ok(first.body.equals(second.body), 'the same payment got two different answers');
      },
    );
  }
}

async function sign(
  challenge: Challenge,
  keypair: Uint8Array,
  rpcUrl: string | undefined,
): Promise<Record<string, string>> {
  const scheme = new ExactSvmScheme(await createKeyPairSignerFromBytes(keypair), { rpcUrl });
  const client = new x402HTTPClient(new x402Client().register('solana:*', scheme));
  const encoded = Buffer.from(JSON.stringify(challenge)).toString('base64');
  const required = client.getPaymentRequiredResponse(() => encoded, undefined);
  return client.encodePaymentSignatureHeader(await client.createPaymentPayload(required));
}

/** Examines a server, one finding per promise; a fault never ends the examination. */
export async function checkServer(subject: CheckedServer): Promise<Finding[]> {
  return new Conformance(subject).run();
}

const USAGE =
  'Usage: make conformance URL=https://… [KEYPAIR=file MAX_PRICE=0.01] [RPC_URL=https://…], or\n' +
  '       node dist/contract-tests/tools/conformance.js URL [--keypair FILE --max-price USDC] [--rpc URL]\n' +
  'Nothing is paid unless keypair and maximum price are both given; then the cheapest operation is bought once.\n';

function readArguments(): { url: string; keypair?: string; maxPrice?: number; rpcUrl?: string } | undefined {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { keypair: { type: 'string' }, 'max-price': { type: 'string' }, rpc: { type: 'string' } },
  });
  const [url, ...rest] = positionals;
  const { keypair, 'max-price': price, rpc } = values;
  const sound =
    (keypair === undefined) === (price === undefined) && (!price || /^\d+(\.\d{1,6})?$/.test(price));
  if (!url || !URL.canParse(url) || rest.length || !sound) return undefined;
  return {
    url,
    ...(keypair === undefined ? {} : { keypair }),
    ...(price === undefined ? {} : { maxPrice: Number(price) }),
    ...(rpc === undefined ? {} : { rpcUrl: rpc }),
  };
}

async function main(): Promise<number> {
  let read: ReturnType<typeof readArguments>;
  try {
    read = readArguments();
  } catch {
    read = undefined;
  }
  if (!read) {
    process.stderr.write(USAGE);
    return 2;
  }
  const { keypair: file, ...subject } = read;
  const keypair = file ? Uint8Array.from(JSON.parse(await readFile(file, 'utf8')) as number[]) : undefined;
  const findings = await checkServer({ ...subject, keypair });
  for (const { promise, fault } of findings) {
    process.stdout.write(
      fault === undefined ? `ok      ${promise}\n` : `FAILED  ${promise}\n          ${fault}\n`,
    );
  }
  const failed = findings.filter(({ fault }) => fault !== undefined).length;
  process.stdout.write(
    `${findings.length - failed} kept, ${failed} broken${keypair ? '' : ', nothing was paid'}\n`,
  );
  return failed ? 1 : 0;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = await main();
}
