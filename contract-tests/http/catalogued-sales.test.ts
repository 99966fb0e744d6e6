import { expect } from 'chai';
import { call, openWorld, post, signFor, TEXT, type Answer, type World } from '../support/world.js';

const PATH = '/v1/summarize';

describe('FACILITATOR_URL=embedded with CATALOGUE_FACILITATORS', function () {
  this.timeout(60_000);
  let world: World;
  /** The requests to the facilitator that ask for a listing in its directory. */
  let listed: string[];

  before(async () => {
    world = await openWorld(url => ({ FACILITATOR_URL: 'embedded', CATALOGUE_FACILITATORS: url }));
    world.facilitator.intervene(async ({ path, body, forward, respond }) => {
      const { paymentPayload } = JSON.parse(body.toString('utf8') || '{}') as {
        paymentPayload?: { resource: { url: string }; extensions?: object };
      };
      if (paymentPayload?.extensions) listed.push(`${path} ${paymentPayload.resource.url}`);
      const { status, body: answer } = await forward();
      respond(status, answer);
    });
  });
  beforeEach(() => (listed = []));
  after(() => world.close());

  const feePayerOf = (answer: Answer): unknown => {
    const { accepts } = answer.json() as { accepts: { extra: { feePayer: string } }[] };
    return accepts[0]?.extra.feePayer;
  };
  const buy = async (text: string): Promise<{ feePayer: unknown; status: number }> => {
    const unpaid = await call(world.url + PATH, { method: 'POST' });
    const paying = await signFor(world, PATH, 2, unpaid);
    const { status } = await post(world.url + PATH, { text }, paying);
    return { feePayer: feePayerOf(unpaid), status };
  };

  it("the first sale goes through the directory's facilitator, which learns what was sold; the next does not", async () => {
    const [first, second] = [await buy(TEXT), await buy(`${TEXT} Again.`)];
    expect([first.status, second.status]).to.deep.equal([200, 200]);
    expect(first.feePayer).not.to.equal(second.feePayer);
    expect(listed).to.deep.equal(['/verify', '/settle'].map(path => `${path} ${world.url}${PATH}`));
  });

  it('health shows the facilitator that sales depend on', async () => {
    const { upstreams } = (await call(`${world.url}/health`)).json() as {
      upstreams: { facilitator: { status: string; detail?: string } };
    };
    expect(upstreams.facilitator.status).to.equal('ok');
    expect(upstreams.facilitator.detail).to.equal(undefined);
  });
});
