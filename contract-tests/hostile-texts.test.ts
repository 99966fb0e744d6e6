import { expect } from 'chai';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createEmbeddedSummarizer } from '../src/upstreams/summarizers/embedded.js';
import type { Summarizer } from '../src/upstreams/summarizers/summarizer.js';
import { createFliteSpeaker } from '../src/upstreams/voices/flite.js';
import type { Speaker } from '../src/upstreams/voices/voices.js';
import { HOSTILE_TEXTS } from './support/hostile-texts.js';

const NEVER = new AbortController().signal;
/** The process may not stand still for longer, on a machine with other work; most texts stop it for a few ms. */
const LONGEST_STOP_MS = 250;
const SPEECH_CHARACTERS = 2_500;
const SUMMARY_CHARACTERS = 100_000;

/** Runs `work` and says for how long it took and for how long the event loop stood still meanwhile. */
async function watched(work: () => Promise<unknown>): Promise<{ tookMs: number; stoodStillMs: number }> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  // It measures from one tick to the next, so it needs one before the work.
  await new Promise(resolve => setTimeout(resolve, 15));
  const startedAt = performance.now();
  await work();
  const tookMs = performance.now() - startedAt;
  await new Promise(resolve => setTimeout(resolve, 15));
  delay.disable();
  return { tookMs, stoodStillMs: delay.max / 1e6 };
}

describe('Hostile texts', function () {
  this.timeout(120_000);

  describe('at speech leave the process free and are prepared in no time', () => {
    let speaker: Speaker;
    before(async () => {
      speaker = createFliteSpeaker({ threads: 1, deadlineMs: 60_000 });
      await speaker.speak('Warm up.', undefined, NEVER);
    });
    after(() => speaker.close());

    for (const [name, make] of Object.entries(HOSTILE_TEXTS)) {
      it(name, async () => {
        const leave = new AbortController();
        // Some of them can be said, and that may take its seconds.
        setTimeout(() => leave.abort(new Error('heard enough')), 150).unref();
        const { stoodStillMs } = await watched(() =>
          speaker.speak(make(SPEECH_CHARACTERS), undefined, leave.signal).catch(() => undefined),
        );
        expect(stoodStillMs).to.be.below(LONGEST_STOP_MS);
        // The worker was not held either: it comes to the next text after one phrase at most.
        const { tookMs } = await watched(() => speaker.speak('Next.', undefined, NEVER));
        expect(tookMs).to.be.below(5_000);
      });
    }
  });

  describe('at summaries leave the process free and are read in seconds', () => {
    let summarizer: Summarizer;
    before(async () => {
      summarizer = createEmbeddedSummarizer({ threads: 1 });
      await summarizer.summarize('Warm up. It is a text.', NEVER);
    });
    after(() => summarizer.close());

    for (const [name, make] of Object.entries(HOSTILE_TEXTS)) {
      it(name, async () => {
        const { tookMs, stoodStillMs } = await watched(() =>
          summarizer.summarize(make(SUMMARY_CHARACTERS), NEVER).catch(() => undefined),
        );
        expect(stoodStillMs).to.be.below(LONGEST_STOP_MS);
        expect(tookMs).to.be.below(5_000);
      });
    }
  });
});
