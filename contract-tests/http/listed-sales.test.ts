import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import type { PricedOperation } from '../../src/contract/contract.js';
import { exampleArguments } from '../../src/mcp/tool-arguments.js';
import { exampleCall } from '../support/example-call.js';
import { callTool, paid, payloadOf } from '../support/mcp-call.js';
import { SOLD } from '../support/sold.js';
import { call, openWorld, post, signFor, TEXT, type World } from '../support/world.js';

type Json = Record<string, unknown>;
type Listed = {
  resource: Json & { url: string };
  bazaar: { info: { input: Json; output: Json }; schema: Json; routeTemplate?: string };
};

const VERDICT = Buffer.from(JSON.stringify({ bazaar: { status: 'success' } })).toString('base64');

/** The listings sent to a facilitator that forwards everything to the real one, and claims to list everything. */
function catalogueOf(world: World): Listed[] {
  const seen: Listed[] = [];
  world.facilitator.intervene(async ({ path, body, forward, respond }) => {
    if (path === '/settle' || path === '/verify') {
      const { paymentPayload } = JSON.parse(body.toString('utf8')) as {
        paymentPayload: { resource: Listed['resource']; extensions?: { bazaar: Listed['bazaar'] } };
      };
      const { resource, extensions } = paymentPayload;
      if (extensions) seen.push({ resource, ...extensions });
    }
    const { status, body: answer } = await forward();
    respond(status, answer, { 'EXTENSION-RESPONSES': VERDICT });
  });
  return seen;
}

/** Whether `info` matches its own schema, as directories require. */
function isSound({ bazaar: { info, schema } }: Listed): boolean {
  return new Ajv2020({ strict: false }).compile(schema)(info);
}

async function signedFor(world: World, operation: PricedOperation): Promise<Record<string, string>> {
  const { query, init } = exampleCall(operation);
  const unpaid = await call(`${world.url}${operation.examplePath}${query}`, init);
  return signFor(world, operation.path, 2, unpaid);
}

describe('sales through a facilitator that has a directory', function () {
  this.timeout(60_000);
  let world: World;
  let seen: Listed[];

  before(async () => {
    world = await openWorld();
  });
  beforeEach(() => (seen = catalogueOf(world)));
  after(() => world.close());

  for (const operation of SOLD.paid) {
    it(`${operation.id} is listed as in the contract when called over HTTP`, async () => {
      const { query, init } = exampleCall(operation);
      const headers = { ...init.headers, ...(await signedFor(world, operation)), prefer: 'respond-async' };
      const answer = await call(`${world.url}${operation.examplePath}${query}`, { ...init, headers });
      expect(answer.status).to.be.lessThan(300);
      expect([...answer.headers.keys()]).not.to.include('extension-responses');
      expect(seen).to.have.length.of.at.least(1);
      for (const each of seen) {
        expect(each.resource.url).to.equal(world.url + operation.examplePath);
        expect(each.resource).to.include({ description: operation.summary, serviceName: 'Coinslot' });
        expect(each.bazaar.info.input).to.include({ type: 'http', method: operation.method });
        expect(each.bazaar.info.input['body']).to.deep.equal(operation.request?.example);
        expect(isSound(each)).to.equal(true);
      }
    });

    it(`${operation.id} is listed as in the contract when called as an MCP tool`, async () => {
      const headers = await signedFor(world, operation);
      const args = exampleArguments(operation);
      await callTool(world.url, operation.id, args, paid(payloadOf(headers)));
      expect(seen).to.have.length.of.at.least(1);
      for (const each of seen) {
        expect(each.resource.url).to.equal(`${world.url}/mcp`);
        expect(each.bazaar.info.input).to.include({ type: 'mcp', toolName: operation.id });
        expect(isSound(each)).to.equal(true);
      }
    });
  }

  it("a buyer's own resource and extensions are not passed on", async () => {
    const headers = await signFor(world, '/v1/summarize');
    const payload = payloadOf(headers);
    const poisoned = {
      ...payload,
      resource: { url: 'https://elsewhere.example', description: 'poison' },
      extensions: { bazaar: { info: { input: { type: 'http', method: 'POST' } }, schema: {}, poison: true } },
    };
    const signature = Buffer.from(JSON.stringify(poisoned)).toString('base64');
    const body = { text: `${TEXT} Nobody knows why.` };
    const answer = await post(`${world.url}/v1/summarize`, body, { 'PAYMENT-SIGNATURE': signature });
    expect(answer.status).to.equal(200);
    expect(seen).to.have.length.of.at.least(1);
    expect(JSON.stringify(seen)).not.to.match(/poison|elsewhere/);
  });
});

describe('a shop with LISTED=false', function () {
  this.timeout(60_000);

  it('sends no listing to the directory', async () => {
    const world = await openWorld({ LISTED: 'false' });
    try {
      const seen = catalogueOf(world);
      const headers = await signFor(world, '/v1/summarize');
      const answer = await post(`${world.url}/v1/summarize`, { text: TEXT }, headers);
      expect(answer.status).to.equal(200);
      expect(seen).to.deep.equal([]);
    } finally {
      await world.close();
    }
  });
});
