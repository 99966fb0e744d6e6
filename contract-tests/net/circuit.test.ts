import { expect } from 'chai';
import { setTimeout as pause } from 'node:timers/promises';
import { Circuit, Resting } from '../../src/net/circuit.js';

const NEVER = new AbortController().signal;
const REST_MS = 50;

describe('The circuit of a service', () => {
  let runs = 0;
  beforeEach(() => (runs = 0));

  const failing = async (): Promise<never> => {
    runs += 1;
    throw new Error('no');
  };
  const well = async (): Promise<string> => {
    runs += 1;
    return 'yes';
  };

  async function outcome(run: Promise<unknown>): Promise<unknown> {
    return run.catch((error: unknown) => (error instanceof Resting ? 'resting' : (error as Error).message));
  }

  it('opens after several failures in a row, and closes after a success', async () => {
    const circuit = new Circuit({ failures: 3, restMs: REST_MS });
    for (const work of [failing, failing, well, failing, failing]) await outcome(circuit.run(NEVER, work));
    expect(circuit.restSeconds).to.equal(0);
    expect(await outcome(circuit.run(NEVER, failing))).to.equal('no');
    expect(circuit.restSeconds).to.equal(1);
    expect(await outcome(circuit.run(NEVER, well))).to.equal('resting');
    expect(runs).to.equal(6);
    await pause(REST_MS + 10);
    expect(await outcome(circuit.run(NEVER, well))).to.equal('yes');
    expect(circuit.restSeconds).to.equal(0);
  });

  it('lets one call through after the pause, while the others fail', async () => {
    const circuit = new Circuit({ failures: 1, restMs: REST_MS });
    await outcome(circuit.run(NEVER, failing));
    await pause(REST_MS + 10);
    let answer = (_text: string): void => {};
    const probing = circuit.run(NEVER, () => new Promise<string>(resolve => (answer = resolve)));
    expect(await outcome(circuit.run(NEVER, well))).to.equal('resting');
    answer('probed');
    expect(await probing).to.equal('probed');
    expect(runs).to.equal(1);
  });

  it('opens immediately when the service asks callers to wait, for the time that it names', async () => {
    const circuit = new Circuit({ failures: 5, restMs: REST_MS });
    const asked = async (): Promise<never> => {
      circuit.trip(7);
      throw new Error('too many');
    };
    expect(await outcome(circuit.run(NEVER, asked))).to.equal('too many');
    expect(await circuit.run(NEVER, well).catch((error: unknown) => error))
      .to.be.instanceOf(Resting)
      .and.to.include({ seconds: 7 });
  });

  it('does not count callers that left, whose calls fail with the reason for leaving', async () => {
    const circuit = new Circuit({ failures: 1, restMs: REST_MS });
    const gone = new AbortController();
    const leaving = circuit.run(gone.signal, async () => {
      gone.abort(new Error('gone'));
      return failing();
    });
    expect(await outcome(leaving)).to.equal('gone');
    expect(await outcome(circuit.run(gone.signal, well))).to.equal('gone');
    expect(await outcome(circuit.run(NEVER, well))).to.equal('yes');
    expect(runs).to.equal(2);
  });
});
