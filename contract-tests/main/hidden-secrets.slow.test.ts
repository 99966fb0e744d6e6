import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { craftPayment, v2Header } from '../support/craft.js';
import { freePort } from '../support/free-port.js';
import {
  allOnOneChain,
  buyer,
  folder,
  proxied,
  refusedStart,
  serve,
  type Environment,
} from '../support/server-process.js';
import { call, offerOf, post, recipeOf, TEXT } from '../support/world.js';

const random = (): string => randomBytes(24).toString('base64url');
const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** A secret of each kind that a server in the sandbox reads. */
const SECRETS: Readonly<Record<string, string>> = {
  ADMIN_TOKEN: random(),
  PANEL_TOKEN: random(),
  MPP_SECRET: `${random()},${random()}`,
  RECEIPT_KEY: pem,
  WEBHOOK_SECRET: `whsec_${randomBytes(24).toString('base64')}`,
  SUMMARIZER_API_KEY: random(),
  JUPITER_API_KEY: random(),
  COINGECKO_API_KEY: random(),
  FACILITATOR_1_HEADER: `Authorization: Bearer ${random()}`,
};

/** The strings that must appear nowhere: the parts of each secret, as they are and in base64. */
function needles(secrets: Readonly<Record<string, string>>): string[] {
  const parts = Object.values(secrets).flatMap(each => each.split(/[\n,]|Authorization: Bearer |whsec_/));
  const kept = parts.filter(part => part.length >= 20 && !part.startsWith('-----'));
  return kept.flatMap(part => [part, Buffer.from(part).toString('base64').replace(/=+$/, '')]);
}

describe('Secrets in files', function () {
  this.timeout(90_000);
  allOnOneChain();
  let api: Server;
  let asked: string[];
  before(async () => {
    asked = [];
    // Answers with an error that repeats part of the request, as some services do.
    api = createServer(({ headers }, response) => {
      asked.push(headers.authorization ?? '');
      response.writeHead(500).end(JSON.stringify({ error: `not for ${headers.authorization}` }));
    }).listen(0, '127.0.0.1');
    await once(api, 'listening');
  });
  after(() => {
    api.closeAllConnections();
    api.close();
  });

  function inFiles(secrets: Readonly<Record<string, string>>): Environment {
    return Object.fromEntries(
      Object.entries(secrets).map(([name, value]) => {
        const file = join(folder, `secret-${name}`);
        writeFileSync(file, `${value}\n`, { mode: 0o600 });
        return [`${name}_FILE`, file];
      }),
    );
  }

  /** The arguments and environments of a process and of its descendants. */
  function inProc(pid: number): string {
    const of = (file: string): string => readFileSync(`/proc/${pid}/${file}`, 'latin1');
    const started = readdirSync(`/proc/${pid}/task`).flatMap(task => of(`task/${task}/children`).split(' '));
    return [of('cmdline'), of('environ'), ...started.filter(Boolean).map(each => inProc(Number(each)))].join(
      '\n',
    );
  }

  it('are used, and appear in no argument, environment, log, answer, page or metric, whatever fails', async () => {
    const admin = await freePort();
    const at = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
    const logged: string[] = [];
    const server = await serve(
      proxied('hidden', {
        ...inFiles(SECRETS),
        ...{ METHODS: 'x402,mpp', ADMIN_PORT: String(admin), LOG_LEVEL: 'trace' },
        ...{
          SUMMARIZER_URL: at,
          SUMMARIZER_MODEL: 'any',
          WEBHOOK_URLS: `${at}/hook`,
          ALLOW_PRIVATE_WEBHOOKS: 'true',
        },
      }),
      line => logged.push(line),
    );
    for (const stream of [server.child.stdout, server.child.stderr])
      stream?.on('data', (chunk: Buffer) => logged.push(chunk.toString()));
    const seen: string[] = [];
    const see = async (path: string, init?: RequestInit): Promise<void> => {
      const answer = await call(path, init);
      seen.push(`${path} ${answer.status} ${JSON.stringify([...answer.headers])} ${answer.body.toString()}`);
    };
    const offer = await offerOf(server.url);
    const { transaction } = craftPayment(recipeOf(offer, buyer));
    const headers = { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) };
    const failed = await post(
      `${server.url}/v1/summarize`,
      { text: `${TEXT} It is long enough.`.repeat(5) },
      headers,
    );
    expect(failed.status, failed.body.toString()).to.equal(502);
    seen.push(failed.body.toString(), JSON.stringify([...failed.headers]));
    for (const path of ['/health', '/openapi.json', '/llms.txt', '/panel/', '/v1/summarize'])
      await see(server.url + path);
    const bearer = { headers: { authorization: `Bearer ${SECRETS['ADMIN_TOKEN']}` } };
    for (const path of ['/metrics', '/ready', '/']) await see(`http://127.0.0.1:${admin}${path}`, bearer);
    for (const token of [random(), SECRETS['ADMIN_TOKEN'] ?? '']) {
      const form = { method: 'POST', body: new URLSearchParams({ token }), redirect: 'manual' as const };
      await see(`http://127.0.0.1:${admin}/login`, form);
    }
    expect(asked, 'the key of the summarizer is sent').to.include(`Bearer ${SECRETS['SUMMARIZER_API_KEY']}`);
    const { pid = 0 } = server.child;
    const everything = [...logged, ...seen, inProc(pid)].join('\n');
    server.child.kill('SIGTERM');
    await server.ended;
    for (const needle of needles(SECRETS)) {
      const found = everything.indexOf(needle);
      expect(found, everything.slice(Math.max(0, found - 200), found + 20)).to.equal(-1);
    }
    expect(inFiles(SECRETS)).to.have.property('MPP_SECRET_FILE');
  });

  it('do not appear in the messages of a server that refuses to start because of them', async () => {
    const bad = {
      ADMIN_TOKEN: 'short-token',
      MPP_SECRET: 'short-secret-of-mpp',
      RECEIPT_KEY: `-----BEGIN PRIVATE KEY-----\n${randomBytes(40).toString('base64')}\n-----END PRIVATE KEY-----`,
      WEBHOOK_SECRET: `nowhsec_${random()}`,
      FACILITATOR_1_HEADER: random(),
    };
    const said = await refusedStart(
      proxied('refused', { ...inFiles(bad), METHODS: 'x402,mpp', WEBHOOK_URLS: 'https://hook.example' }),
    );
    for (const name of Object.keys(bad)) expect(said).to.include(name);
    for (const needle of [...needles(bad), bad.ADMIN_TOKEN, bad.MPP_SECRET])
      expect(said).to.not.include(needle);
  });
});
