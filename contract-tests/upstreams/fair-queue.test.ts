import { expect } from 'chai';
import { setMaxListeners } from 'node:events';
import { UpstreamFailure } from '../../src/net/failure.js';
import { FairQueue } from '../../src/upstreams/fair-queue.js';

const NEVER = new AbortController().signal;
setMaxListeners(0, NEVER);

/** Jobs that end when the test says so, and the order in which they were started. */
class Jobs {
  readonly begun: string[] = [];
  readonly #ends = new Map<string, () => void>();

  job(name: string): () => Promise<string> {
    return () => {
      this.begun.push(name);
      return new Promise(resolve => this.#ends.set(name, () => resolve(name)));
    };
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)?.();
    await new Promise(resolve => setImmediate(resolve));
  }
}

function queueOf(slots: number, maxWaiting: number): FairQueue {
  return new FairQueue({ slots, maxWaiting, fullMessage: 'The queue is full.' });
}

const outcomeOf = (promise: Promise<string>): Promise<string> =>
  promise.catch((error: Error) => (error instanceof UpstreamFailure ? error.kind : error.message));

/** A queue of one slot with the test's clock. The caller of a job is the first letter of its name. */
function timed(clock: { now: number }) {
  const now = (): number => clock.now;
  const queue = new FairQueue({
    slots: 1,
    maxWaiting: 16,
    fullMessage: 'Full.',
    lateMessage: 'Too late.',
    now,
  });
  const jobs = new Jobs();
  const join = (name: string, ms: number, withinMs: number): Promise<string> =>
    queue.run(jobs.job(name), NEVER, name.slice(0, 1), { ms, withinMs });
  return { queue, jobs, join };
}

const outcomeOfFailure = (promise: Promise<unknown>): Promise<object> =>
  promise.then(
    () => ({}),
    ({ kind, message, retryAfterSeconds: seconds }: UpstreamFailure) => ({ kind, message, seconds }),
  );

describe('A queue that callers share', () => {
  it('a caller who fills the queue makes other callers wait only for the running job', async () => {
    const queue = queueOf(1, 16);
    const jobs = new Jobs();
    const greedy = Array.from({ length: 17 }, (_, index) =>
      outcomeOf(queue.run(jobs.job(`greedy ${index}`), NEVER, 'greedy')),
    );
    expect(queue.full).to.equal(true);
    const honest = outcomeOf(queue.run(jobs.job('honest'), NEVER, 'honest'));
    expect(await greedy[16], 'the last one lost its place').to.equal('unavailable');
    await jobs.end('greedy 0');
    expect(jobs.begun).to.deep.equal(['greedy 0', 'honest']);
    await jobs.end('honest');
    expect(await honest).to.equal('honest');
    expect(jobs.begun.at(-1), 'jobs of one caller keep their order').to.equal('greedy 1');
  });

  it('a caller with as many waiting jobs as any other is refused when the queue is full', async () => {
    const queue = queueOf(1, 4);
    const jobs = new Jobs();
    for (const caller of ['a', 'a', 'a', 'b', 'b'])
      void outcomeOf(queue.run(jobs.job(caller), NEVER, caller));
    // One job of a is running, so a and b have two waiting jobs each.
    expect(await outcomeOf(queue.run(jobs.job('b'), NEVER, 'b'))).to.equal('unavailable');
    expect(await outcomeOf(queue.run(jobs.job('a'), NEVER, 'a'))).to.equal('unavailable');
    const third = outcomeOf(queue.run(jobs.job('c'), NEVER, 'c'));
    expect(queue.waiting).to.equal(4);
    for (let round = 0; round < 5; round++) await jobs.end(jobs.begun.at(-1) ?? '');
    expect(await third).to.equal('c');
  });

  it('callers take turns', async () => {
    const queue = queueOf(1, 16);
    const jobs = new Jobs();
    for (const name of ['a0', 'a1', 'a2', 'b0', 'b1', 'c0'])
      void queue.run(jobs.job(name), NEVER, name.slice(0, 1));
    await jobs.end('none yet');
    for (let round = 0; round < 6; round++) await jobs.end(jobs.begun.at(-1) ?? '');
    expect(jobs.begun).to.deep.equal(['a0', 'b0', 'c0', 'a1', 'b1', 'a2']);
    expect([queue.running, queue.waiting]).to.deep.equal([0, 0]);
  });

  it('a short job comes before longer ones, whether of the same caller or of others', async () => {
    const clock = { now: 0 };
    const { queue, jobs, join } = timed(clock);
    for (const [name, ms] of [
      ['a-1', 5_000],
      ['b-long', 9_000],
      ['c-long', 8_000],
      ['c-short', 500],
      ['d-short', 400],
    ] as const)
      void join(name, ms, 60_000);
    expect(queue.waiting).to.equal(4);
    for (let round = 0; round < 5; round++) await jobs.end(jobs.begun.at(-1) ?? '');
    expect(jobs.begun).to.deep.equal(['a-1', 'd-short', 'c-short', 'c-long', 'b-long']);
  });

  it('many short jobs of one caller do not delay another caller’s long job for longer than that job takes', async () => {
    const { jobs, join } = timed({ now: 0 });
    for (const name of ['a-0', 'a-1', 'a-2', 'a-3', 'a-4', 'a-5']) void join(name, 1_000, 60_000);
    void join('b-long', 3_000, 60_000);
    for (let round = 0; round < 7; round++) await jobs.end(jobs.begun.at(-1) ?? '');
    expect(jobs.begun.indexOf('b-long')).to.be.within(2, 4);
    expect(jobs.begun).to.have.length(7);
  });

  it("a job that can't end in time, because others are waiting, is refused immediately and takes no place in the queue", async () => {
    const clock = { now: 0 };
    const { queue, jobs, join } = timed(clock);
    void join('a', 10_000, 20_000);
    void join('b', 8_000, 20_000);
    const late = await outcomeOfFailure(join('c', 9_000, 20_000));
    expect(late).to.deep.equal({ kind: 'unavailable', message: 'Too late.', seconds: 18 });
    expect(queue.waiting).to.equal(1);
    expect(jobs.begun).to.deep.equal(['a']);
    const short = join('d', 1_000, 20_000);
    await jobs.end('a');
    expect(jobs.begun).to.deep.equal(['a', 'd']);
    await jobs.end('d');
    expect(await short).to.equal('d');
  });

  it('a free slot takes any job, because the expected duration may be wrong', async () => {
    const { jobs, join } = timed({ now: 0 });
    void join('a', 90_000, 20_000);
    await jobs.end('none yet');
    expect(jobs.begun).to.deep.equal(['a']);
  });

  it('a job that would begin too late is refused when its turn comes, and the next one begins', async () => {
    const clock = { now: 0 };
    const { queue, jobs, join } = timed(clock);
    void join('a', 1_000, 20_000);
    const late = outcomeOfFailure(join('b', 2_000, 20_000));
    void join('c', 3_000, 60_000);
    await jobs.end('none yet');
    clock.now = 19_000;
    await jobs.end('a');
    expect(await late).to.deep.equal({ kind: 'unavailable', message: 'Too late.', seconds: 1 });
    expect(jobs.begun).to.deep.equal(['a', 'c']);
    await jobs.end('c');
    expect([queue.running, queue.waiting]).to.deep.equal([0, 0]);
  });

  it('a caller who leaves while waiting frees its place, and its share is forgotten', async () => {
    const queue = queueOf(1, 2);
    const jobs = new Jobs();
    void queue.run(jobs.job('first'), NEVER, 'a');
    const leave = new AbortController();
    const waiting = outcomeOf(queue.run(jobs.job('second'), leave.signal, 'b'));
    leave.abort(new Error('gone'));
    expect(await waiting).to.equal('gone');
    expect(queue.waiting).to.equal(0);
    await jobs.end('first');
    expect(queue.running).to.equal(0);
    expect(jobs.begun).to.deep.equal(['first']);
  });

  it('a job that fails frees its slot', async () => {
    const queue = queueOf(1, 2);
    const jobs = new Jobs();
    const failing = outcomeOf(queue.run(() => Promise.reject(new Error('broken')), NEVER, 'a'));
    const next = queue.run(jobs.job('next'), NEVER, 'b');
    expect(await failing).to.equal('broken');
    await jobs.end('next');
    expect(await next).to.equal('next');
  });

  it('waiting jobs are refused when the queue is closed', async () => {
    const queue = queueOf(1, 2);
    const jobs = new Jobs();
    void queue.run(jobs.job('first'), NEVER, 'a');
    const waiting = outcomeOf(queue.run(jobs.job('second'), NEVER, 'b'));
    queue.close(new Error('closing'));
    expect(await waiting).to.equal('closing');
  });

  it('a thousand callers, ten thousand jobs: all end, two at a time', async () => {
    const queue = queueOf(2, 20_000);
    let most = 0;
    await Promise.all(
      Array.from({ length: 10_000 }, (_, index) =>
        queue.run(
          async () => {
            most = Math.max(most, queue.running);
          },
          NEVER,
          String(index % 1_000),
        ),
      ),
    );
    expect(most).to.equal(2);
    expect([queue.running, queue.waiting, queue.full]).to.deep.equal([0, 0, false]);
  });
});
