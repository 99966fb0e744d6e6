import { expect } from 'chai';
import { repeated, rows } from '../../support/extent.js';
import { startFakeRapidata, type FakeRapidata } from '../../support/rapidata.js';
import { allOnOneChain, buyer, rpc, sandbox } from '../../support/server-process.js';
import { killedSale, textsOf, type KilledSale } from '../../support/sold-through-kills.js';
import { startFakeWurk, type FakeWurk, type WurkStep } from '../../support/wurk.js';

/** Two replies. */
const TASK_PRICE = 50_000n;

let wurk: FakeWurk;
let rapidata: FakeRapidata;

const withWurk = (): Record<string, string> => ({
  ...{ PEOPLE: 'wurk', WURK_SECRET_KEY: JSON.stringify([...buyer.secretKey]), WURK_URL: wurk.url },
});
const withRapidata = (): Record<string, string> => ({
  ...{ PEOPLE: 'rapidata', RAPIDATA_CLIENT_ID: 'id', RAPIDATA_CLIENT_SECRET: 'secret' },
  ...{ RAPIDATA_URL: rapidata.url, RAPIDATA_AUTH_URL: rapidata.url },
});

/** Kills the server once, when the order's task reaches a step for the nth time. */
function killAt(sale: KilledSale, step: WurkStep, times = 1): void {
  let left = times;
  wurk.onStep = (now, description) =>
    // The price is also read before anything is sold, for a task without the question. Reads of a job name no task.
    now === step && (description === '' || description.includes('cup number')) && --left === 0
      ? sale.kill()
      : false;
}

/** Kills the server while it signs the payment: it knows the price, and is reading the blockhash. */
function killAtSignature(sale: KilledSale): void {
  let isPriced = false;
  wurk.onStep = (step, description) => {
    if (step === 'price' && description.includes('cup number')) isPriced = true;
    return false;
  };
  rpc.intervene(async ({ method, forward, respond, drop }) => {
    if (isPriced && sale.kills === 0 && method === 'getLatestBlockhash') {
      sale.kill();
      return drop();
    }
    const { status, body } = await forward();
    respond(status, body);
  });
}

type Kept = 'nothing' | 'the payment' | 'the job' | 'either';

const keptIn = (intent: string): Kept =>
  intent === '' ? 'nothing' : intent.includes('"jobId"') ? 'the job' : 'the payment';

/** The moments at which the server is killed, and what it has stored by then. Most runs test only the first moment. */
const WURK_MOMENTS: [string, (sale: KilledSale) => void, Kept][] = [
  [
    'after the payment settled, before the server learned that',
    sale => killAt(sale, 'settled'),
    'the payment',
  ],
  ['before the payment: the price is asked for', sale => killAt(sale, 'price'), 'nothing'],
  ['while the payment is signed, before it is stored', killAtSignature, 'nothing'],
  [
    'when the payment is stored, and nothing of it was read',
    sale => killAt(sale, 'connected'),
    'the payment',
  ],
  ['when the payment was sent, and is not settled', sale => killAt(sale, 'paid'), 'the payment'],
  ['when the job is on its way', sale => killAt(sale, 'sold'), 'either'],
  ['when the job is stored, and its replies are asked for', sale => killAt(sale, 'view'), 'the job'],
  ['when the first replies are on their way', sale => killAt(sale, 'viewed'), 'the job'],
  ['while it asks for more of them', sale => killAt(sale, 'view', 2), 'the job'],
  ['when the last replies are on their way', sale => killAt(sale, 'viewed', 2), 'the job'],
];

/** Kills the server once, at its nth call of a kind: before the call is carried out, or after it, without an answer. */
function killAtCall(sale: KilledSale, call: string, when: 'before' | 'after' = 'before', times = 1): void {
  let left = times;
  const isIt = (now: string): boolean => sale.kills === 0 && now === call && --left === 0;
  if (when === 'after') rapidata.loseAnswer = now => isIt(now) && sale.kill();
  else rapidata.before = now => (isIt(now) && sale.kill() ? 'hang up' : undefined);
}

/** The price is also read before anything is sold, from a definition of its own, so the order's definition is the second one. */
const RAPIDATA_MOMENTS: [string, (sale: KilledSale) => void][] = [
  [
    'after the job was created, before the server learned that',
    sale => killAtCall(sale, 'POST /job', 'after'),
  ],
  ['before the job is created', sale => killAtCall(sale, 'POST /job')],
  ['before its definition is created', sale => killAtCall(sale, 'POST /job/definition', 'before', 2)],
  [
    'while the quote is asked for',
    sale => killAtCall(sale, 'GET /job/definition/{definitionId}/cost-estimate', 'before', 2),
  ],
  ['while the state of the job is read', sale => killAtCall(sale, 'GET /job/{jobId}')],
  ['while its replies are read', sale => killAtCall(sale, 'GET /job/{jobId}/responses')],
  ['before the job is paused', sale => killAtCall(sale, 'POST /job/{jobId}/pause')],
  [
    'after the job was paused, before the server learned that',
    sale => killAtCall(sale, 'POST /job/{jobId}/pause', 'after'),
  ],
];

/** Only make test-all tries the other moments: one kill represents them here, and each adapter's tests cover them in one process. */
const each = repeated(1, 0) === 1 ? it : it.skip;

describe('A paid marketplace task on a server that is killed', function () {
  this.timeout(240_000);
  allOnOneChain();

  beforeEach(async () => {
    const { network, usdcMint: asset, payTo, feePayer } = sandbox.info;
    wurk = await startFakeWurk({ facilitatorUrl: sandbox.facilitator.url, network, asset, payTo, feePayer });
    rapidata = await startFakeRapidata();
    const submit = (): void => {
      // At the first read, one person has answered; at every later one, both have.
      const [job] = wurk.jobs;
      if (job) wurk.submissions.set(job.jobId, looks++ === 0 ? ['+ Good.'] : ['+ Good.', '- Bad.']);
    };
    let looks = 0;
    const { submissions } = wurk;
    const get = submissions.get.bind(submissions);
    submissions.get = jobId => {
      submit();
      return get(jobId);
    };
    rapidata.onJob = job => {
      job.labelers = [
        { answer: '+ Good.', id: 'a', age: '30-39' },
        { answer: '- Bad.', id: 'b', age: '30-39' },
      ];
    };
  });
  afterEach(async () => {
    await Promise.all([wurk.close(), rapidata.close()]);
  });

  /** Checks that one task was paid once at its exact price, and that its replies were delivered. */
  async function boughtOnce(sale: KilledSale): Promise<void> {
    const answer = await sale.finish(TASK_PRICE);
    expect(textsOf(answer)).to.deep.equal(['Good.', 'Bad.']);
    expect(wurk.jobs.map(({ winners }) => winners)).to.deep.equal([2]);
  }

  for (const [when, arrange, kept] of rows(WURK_MOMENTS))
    it(`is paid once, and its replies are delivered: WURK, killed ${when}`, async () => {
      const sale = await killedSale(withWurk());
      arrange(sale);
      await sale.buy();
      await sale.killed();
      const found = keptIn(sale.intent());
      if (kept === 'either') expect(found).to.not.equal('nothing');
      else expect(found).to.equal(kept);
      wurk.onStep = undefined;
      rpc.intervene(undefined);
      await sale.start();
      await boughtOnce(sale);
      expect(sale.kills).to.equal(1);
    });

  /** Checks that one job was created and stopped when all had answered, and that the wallet paid nothing. */
  async function askedOnce(sale: KilledSale): Promise<void> {
    expect(textsOf(await sale.finish(0n))).to.deep.equal(['Good.', 'Bad.']);
    expect(rapidata.jobs.map(({ name, votes, state }) => [name, votes, state])).to.deep.equal([
      [`coinslot-${sale.id}-1-1`, 2, 'Paused'],
    ]);
    expect(wurk.jobs).to.deep.equal([]);
  }

  for (const [when, arrange] of RAPIDATA_MOMENTS)
    each(`is created once, and its replies are delivered: Rapidata, killed ${when}`, async () => {
      const sale = await killedSale(withRapidata());
      arrange(sale);
      await sale.buy();
      await sale.killed();
      await sale.start();
      await askedOnce(sale);
      expect(sale.kills).to.equal(1);
    });

  each('WURK took the payment and lost it: the operator reads that, and nothing more is paid', async () => {
    const sale = await killedSale(withWurk());
    wurk.remembers = false;
    killAt(sale, 'settled');
    await sale.buy();
    await sale.killed();
    wurk.onStep = undefined;
    await sale.start();
    await sale.health(
      /WURK was paid 0\.05 USDC for order \w{16} \(transfer \w{80,}\) and returned no job: recover the job/,
    );
    await sale.answerOnPanel();
    expect(textsOf(await sale.finish(TASK_PRICE))).to.deep.equal(['I am number 1.', 'I am number 2.']);
    expect(wurk.jobs).to.have.length(1);
  });

  each('PEOPLE is rapidata for a while: the order that WURK was paid for is finished by WURK', async () => {
    const sale = await killedSale(withWurk());
    killAt(sale, 'view');
    await sale.buy();
    await sale.killed();
    killAt(sale, 'viewed');
    await sale.start({ ...withWurk(), ...withRapidata() });
    await sale.killed();
    wurk.onStep = undefined;
    await sale.start();
    await boughtOnce(sale);
    expect(rapidata.jobs).to.deep.equal([]);
  });

  each('PEOPLE becomes wurk: the order that Rapidata was given is finished by Rapidata', async () => {
    const sale = await killedSale(withRapidata());
    killAtCall(sale, 'GET /job/{jobId}');
    await sale.buy();
    await sale.killed();
    await sale.start({ ...withRapidata(), ...withWurk() });
    await askedOnce(sale);
  });

  each(
    'the settings of WURK are gone: the operator reads what to set, and then the order is finished',
    async () => {
      const sale = await killedSale(withWurk());
      killAt(sale, 'view');
      await sale.buy();
      await sale.killed();
      wurk.onStep = undefined;
      await sale.start(withRapidata());
      const said = await sale.health(/was begun with wurk/);
      expect(said).to.contain('set WURK_SECRET_KEY again and restart, so that its replies are read');
      await sale.restart(withWurk());
      await boughtOnce(sale);
      expect(rapidata.jobs).to.deep.equal([]);
    },
  );
});
