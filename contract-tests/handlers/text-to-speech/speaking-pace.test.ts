import { expect } from 'chai';
import { SpeakingPace } from '../../../handlers/text-to-speech/speaking-pace.js';

describe('The pace of a speech engine', () => {
  const prose = 'The harbour bridge will close for repairs on Monday. '.repeat(10);

  it('is learned from how long earlier speeches took', async () => {
    const clock = { now: 0 };
    const pace = new SpeakingPace(() => clock.now);
    const first = pace.expect(prose, 20_000).ms;
    for (let speeches = 0; speeches < 30; speeches++)
      await pace.timed(prose, async () => void (clock.now += 4 * first));
    expect(pace.expect(prose, 20_000).ms).to.be.closeTo(4 * first, 0.01 * first);
    expect(pace.expect(prose.repeat(2), 20_000).ms).to.be.closeTo(8 * first, 0.1 * first);
  });

  it("is not learned from short speeches, which mostly measure the engine's start", async () => {
    const clock = { now: 0 };
    const pace = new SpeakingPace(() => clock.now);
    const before = pace.expect(prose, 20_000).ms;
    await pace.timed('Warm up.', async () => void (clock.now += 3_000));
    expect(pace.expect(prose, 20_000).ms).to.be.within(before, 2 * before);
  });

  it('is slower for numbers, initials and signs than for as many letters, and is not affected by failures', async () => {
    const pace = new SpeakingPace(() => 0);
    const expected = (text: string): number => pace.expect(text, 20_000).ms;
    for (const text of ['1 2 3 4 5 6 7 8 ', 'x q z w k p t r ', '$ % & € £ + = < '])
      expect(expected(text.repeat(20)), text).to.be.greaterThan(2 * expected('a stone bridge, '.repeat(20)));
    const before = expected(prose);
    await pace.timed(prose, () => Promise.reject(new Error('failed'))).catch(() => {});
    expect(expected(prose)).to.equal(before);
  });
});
