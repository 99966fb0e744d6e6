import { expect } from 'chai';
import { Counter, Histogram, Registry } from 'prom-client';
import { countIn, durationsIn } from '../../src/observe/series.js';

const BOUNDS = [0.001, 0.01, 0.1];
const STEPS = { name: 'step_seconds', help: 'How long it "took".', labelNames: ['step', 'operation'] };
const ALONE = { name: 'commit_seconds', help: 'How long it took.', labelNames: [] };
const SALES = { name: 'sales_total', help: 'How many.', labelNames: ['operation', 'status'] };

/** Normalizes the order of samples and of the labels of each. */
function samples(text: string): string[] {
  return text
    .split('\n')
    .map(line => line.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(',').sort().join(',')}}`))
    .sort();
}

describe('Our own metrics have the same output as those of prom-client', () => {
  const ours = new Registry();
  const theirs = new Registry();
  const same = async (): Promise<void> => {
    expect(samples(await ours.metrics())).to.deep.equal(samples(await theirs.metrics()));
  };
  afterEach(() => {
    ours.clear();
    theirs.clear();
  });

  it('for durations that equal the bound of a bucket or exceed the last one, and before the first duration', async () => {
    const registers = [theirs];
    const buckets = BOUNDS;
    const times = durationsIn(ours, STEPS, BOUNDS);
    durationsIn(ours, ALONE, BOUNDS);
    const peer = new Histogram({ ...STEPS, buckets, registers });
    new Histogram({ ...ALONE, buckets, registers });
    await same();
    for (const [ms, step, operation] of [
      [0, 'work', 'summarize'],
      [1, 'work', 'summarize'],
      [1.5, 'settle', 'summarize'],
      [100, 'work', 'a "name"\\'],
      [101, 'work', 'summarize'],
      [5_000, 'work', 'summarize'],
    ] as const) {
      times.add(ms, step, operation);
      peer.observe({ step, operation }, ms / 1000);
    }
    await same();
    expect(await ours.metrics()).to.include('step_seconds_count{step="work",operation="summarize"} 4');
  });

  it('for counters with and without labels, and for series that start at 0', async () => {
    const registers = [theirs];
    const sales = countIn(ours, SALES);
    const alone = countIn(ours, { ...ALONE, name: 'faults_total' });
    const peer = new Counter({ ...SALES, registers });
    const peerAlone = new Counter({ ...ALONE, name: 'faults_total', registers });
    await same();
    sales.begin('brief', '200');
    peer.inc({ operation: 'brief', status: '200' }, 0);
    for (let n = 0; n < 3; n++) {
      sales.add('summarize', '402');
      peer.inc({ operation: 'summarize', status: '402' });
    }
    sales.begin('summarize', '402');
    alone.add();
    peerAlone.inc();
    await same();
    expect(await ours.metrics()).to.include('sales_total{operation="summarize",status="402"} 3');
  });
});
