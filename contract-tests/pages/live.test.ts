import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { LiveStreams } from '../../src/pages/live.js';

describe('a live stream of a page', () => {
  it('ends once its session has been signed out', async () => {
    let signedIn = true;
    const streams = new LiveStreams(async () => '', undefined, 20);
    const stream = streams.open(async () => signedIn) ?? expect.fail('no stream');
    const ended = once(stream.resume(), 'end');
    expect(await Promise.race([ended, pause(100, 'still open')])).to.equal('still open');
    signedIn = false;
    await ended;
  });
});
