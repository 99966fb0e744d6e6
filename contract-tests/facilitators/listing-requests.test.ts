import { expect } from 'chai';
import type { Facilitator, ListingVerdict } from '../../src/facilitators/facilitator.js';
import { httpFacilitator } from '../../src/facilitators/http-facilitator.js';
import { TakesListings } from '../../src/facilitators/listing-answers.js';
import { ListingVerdicts } from '../../src/facilitators/listing-verdicts.js';
import { Listings, type Listing } from '../../src/facilitators/listings.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import type { VerifyResult } from '../../src/rails/rail.js';
import { TERMS } from '../support/charge-world.js';
import { facilitatorRequest, FakeHttpFacilitator } from '../support/http-facilitator.js';

const LISTING: Listing = {
  operation: 'summarize',
  transport: 'http',
  members: '"resource":{"url":"https://pay.example/v1/summarize"},"extensions":{"bazaar":{"info":{}}}',
};
const ASK = { ...facilitatorRequest('F'.repeat(44)), listing: LISTING };
const SETTLED = { success: true, transaction: '5'.repeat(88) };
const DAY_MS = 86_400_000;

type Body = { paymentPayload: { resource?: object; extensions?: object } };

/** A facilitator that rejects unknown fields. */
function strict(status: number, answer: object): FakeHttpFacilitator['reply'] {
  return (request, response) => {
    const carries = (request as unknown as { listed: boolean }).listed;
    response
      .writeHead(carries ? 400 : status)
      .end(JSON.stringify(carries ? { error: 'unknown key' } : answer));
  };
}

describe('what a facilitator is sent for its directory', () => {
  let fake: FakeHttpFacilitator;
  let facilitator: Facilitator;
  let heard: ListingVerdict[];

  beforeEach(async () => {
    fake = new FakeHttpFacilitator();
    heard = [];
    facilitator = httpFacilitator(await fake.open(), undefined, {}, verdict => heard.push(verdict));
  });

  afterEach(async () => {
    await facilitator.close();
    fake.close();
  });

  const bodies = (): Body[] => fake.seen.map(({ body }) => body as Body);
  const says = (header: string, body: object = { isValid: true }): void => {
    fake.reply = (_request, response) =>
      response.writeHead(200, { 'EXTENSION-RESPONSES': header }).end(JSON.stringify(body));
  };
  const answering = (answer: object): void => {
    fake.reply = (request, response) => {
      const listed = bodies().at(-1)?.paymentPayload.extensions !== undefined;
      Object.assign(request, { listed });
      strict(200, answer)(request, response);
    };
  };
  const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');

  it('resource and extensions are members of the payment, in verify and settle', async () => {
    fake.says(200, { ...SETTLED, isValid: true });
    await facilitator.verify(ASK);
    await facilitator.settle(ASK);
    for (const { paymentPayload } of bodies())
      expect(paymentPayload).to.deep.include({
        resource: { url: 'https://pay.example/v1/summarize' },
        extensions: { bazaar: { info: {} } },
      });
    await facilitator.verify({ ...ASK, listing: undefined });
    expect(bodies().at(-1)?.paymentPayload).not.to.have.any.keys('resource', 'extensions');
  });

  it("the facilitator's message about a listing is reported in one line of printable characters", async () => {
    says(base64({ bazaar: { status: 'rejected', rejectedReason: 'info failed\nschema välidation' } }));
    expect(await facilitator.verify(ASK)).to.deep.equal({ kind: 'valid' });
    expect(heard).to.deep.equal([
      {
        operation: 'summarize',
        transport: 'http',
        status: 'rejected',
        why: 'info failed schema v lidation',
      },
    ]);
  });

  for (const [what, header] of [
    ['no base64', '%%%'],
    ['no JSON', Buffer.from('{').toString('base64')],
    ['null', base64(null)],
    ['another word', base64({ bazaar: { status: 'maybe' } })],
    ['a list', base64({ bazaar: ['success'] })],
    ['too long', base64({ bazaar: { status: 'rejected', rejectedReason: 'x'.repeat(4_000) } })],
  ] as const)
    it(`a verdict that is ${what} changes nothing`, async () => {
      says(header);
      expect(await facilitator.verify(ASK)).to.deep.equal({ kind: 'valid' });
      expect(heard).to.deep.equal([]);
    });

  it('a facilitator that rejects requests with a listing is asked again without it, and gets no listing for a day', async () => {
    answering({ isValid: true });
    expect(await facilitator.verify(ASK)).to.deep.equal({ kind: 'valid' });
    expect(bodies().map(({ paymentPayload }) => 'extensions' in paymentPayload)).to.deep.equal([true, false]);
    expect(heard).to.deep.equal([
      { operation: 'summarize', transport: 'http', status: 'refused', why: 'status 400' },
    ]);
    await facilitator.verify(ASK);
    expect(bodies()).to.have.length(3);
    expect(bodies().at(-1)?.paymentPayload).not.to.have.property('extensions');
  });

  it('a settle request that is rejected for its listing is not repeated, and the next one has no listing', async () => {
    answering(SETTLED);
    expect(await facilitator.settle(ASK)).to.include({ kind: 'unknown', reason: 'status 400' });
    expect(bodies()).to.have.length(1);
    expect(heard.map(({ status }) => status)).to.deep.equal(['refused']);
    expect(await facilitator.settle(ASK)).to.include({ kind: 'settled' });
  });

  it('a payment that is refused for reasons other than the listing is sent once', async () => {
    fake.says(200, { isValid: false, invalidReason: 'insufficient_funds' });
    expect(await facilitator.verify(ASK)).to.include({ kind: 'refused' });
    expect(fake.seen).to.have.length(1);
  });

  it('after a day, requests have a listing again', async () => {
    let now = 0;
    const takes = new TakesListings(
      () => {},
      () => now,
    );
    const asked: boolean[] = [];
    const ask = async ({
      listing,
    }: typeof ASK | { listing?: Listing | undefined }): Promise<VerifyResult> => {
      asked.push(listing !== undefined);
      return listing ? { kind: 'unavailable', detail: 'status 422' } : { kind: 'valid' };
    };
    for (const at of [0, DAY_MS - 1, DAY_MS]) {
      now = at;
      await takes.verify(ASK, ask);
    }
    expect(asked).to.deep.equal([true, false, false, true, false]);
  });
});

describe('which operations are listed, and how', () => {
  const operation = (more: string) => `
info: { title: Harbour, version: 1.0.0 }
paths:
  /v1/tides/{harbour}:
    get:
      operationId: tides
      ${more}
      x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }
      x-upstream: { url: 'https://api.example/{harbour}' }
      parameters: [{ name: harbour, in: path, required: true, schema: { type: string }, example: Oslo }]
      responses: { '200': { description: Tides, content: { application/json: { schema: { type: object } } } } }
`;
  const listings = new Listings(TERMS, () => ({ inputSchema: { type: 'object' }, example: {} }));
  const tidesOf = (more = '') => parseContract(operation(more), 'shop.yaml').paid[0]!;

  it('x-listed: false keeps an operation out of directories', () => {
    const call = { operation: tidesOf('x-listed: false'), transport: 'http' } as const;
    expect(listings.of(call)).to.equal(undefined);
    expect(listings.of({ ...call, operation: tidesOf('x-listed: true') })).to.include({ operation: 'tides' });
  });

  it('x-listed is true or false', () => {
    expect(() => tidesOf('x-listed: never')).to.throw(/x-listed.* must be true or false/);
  });

  it('a path with a parameter is listed by its template, with the example of the contract', () => {
    const { members } = listings.of({ operation: tidesOf(), transport: 'http' })!;
    const { resource, extensions } = JSON.parse(`{${members}}`) as {
      resource: { url: string };
      extensions: { bazaar: { routeTemplate: string; info: { input: object } } };
    };
    expect(resource.url).to.equal(`${TERMS.publicUrl}/v1/tides/Oslo`);
    expect(extensions.bazaar.routeTemplate).to.equal('/v1/tides/:harbour');
    expect(extensions.bazaar.info.input).to.deep.include({ pathParams: { harbour: 'Oslo' } });
  });
});

describe("the directories' verdicts on operations", () => {
  const verdict = (status: ListingVerdict['status'], why?: string): ListingVerdict => ({
    operation: 'summarize',
    transport: 'mcp',
    status,
    ...(why === undefined ? {} : { why }),
  });

  function open() {
    const notes = new Map<string, string>();
    const lines: string[] = [];
    const say = (_: object, line: string): void => void lines.push(line);
    let writes = 0;
    const ledger = {
      getMeta: async (key: string) => notes.get(key),
      setMeta: async (key: string, value: string) => {
        writes += 1;
        notes.set(key, value);
      },
    };
    const log = { info: say, warn: say, error: say };
    return { ledger, log, lines, writes: () => writes };
  }

  it('the newest verdict is kept for all servers, and logged once while it stays the same', async () => {
    const { ledger, log, lines, writes } = open();
    let now = 1_000;
    const one = new ListingVerdicts(ledger, log, () => now);
    const other = new ListingVerdicts(ledger, log, () => now);
    for (let n = 0; n < 3; n++) await one.hear('pay.example', verdict('processing'));
    now = 2_000;
    await other.hear('pay.example', verdict('rejected', 'info failed schema validation'));
    expect(await one.read(['pay.example', 'none.example'])).to.deep.equal([
      { ...verdict('rejected', 'info failed schema validation'), facilitator: 'pay.example', at: 2_000 },
    ]);
    expect(writes()).to.equal(2);
    expect(lines).to.have.length(2);
    expect(lines[1]).to.contain('pay.example does not list summarize (mcp): info failed schema validation');
  });

  it('an unchanged verdict is written again after an hour', async () => {
    const { ledger, log, lines, writes } = open();
    let now = 0;
    const verdicts = new ListingVerdicts(ledger, log, () => now);
    await verdicts.hear('pay.example', verdict('success'));
    now = 3_600_000;
    await verdicts.hear('pay.example', verdict('success'));
    expect([writes(), lines.length]).to.deep.equal([2, 1]);
  });

  it('a verdict whose text changes with every call is written and logged once a minute', async () => {
    const { ledger, log, lines, writes } = open();
    let now = 0;
    const verdicts = new ListingVerdicts(ledger, log, () => now);
    for (; now <= 60_000; now += 1_000) await verdicts.hear('pay.example', verdict('rejected', `at ${now}`));
    expect([writes(), lines.length]).to.deep.equal([2, 2]);
  });

  it('a ledger that fails adds one line to the log', async () => {
    const { log, lines } = open();
    const down = (): Promise<never> => Promise.reject(new Error('disk full'));
    const verdicts = new ListingVerdicts({ getMeta: down, setMeta: down }, log);
    await verdicts.hear('pay.example', verdict('success'));
    expect(lines.at(-1)).to.contain('was not stored');
  });
});
