import { expect } from 'chai';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { BodyFault, requireJsonType } from '../../src/http/json-body.js';
import { readRetryAfter } from '../../src/net/failure.js';
import { cleanName } from '../../handlers/mints/clean-text.js';
import { createBrandFeedback } from '../../handlers/brand-feedback/aggregate.js';
import { looksLikeGibberish } from '../../handlers/brand-feedback/gibberish.js';
import { readMark } from '../../handlers/brand-feedback/opinion-mark.js';
import { MAX_REPLY_CHARACTERS } from '../../handlers/brand-feedback/replies.js';
import { tidyReply } from '../../handlers/brand-feedback/reply-text.js';
import { createEmbeddedSummarizer } from '../../handlers/summarize/embedded.js';
import type { Summarizer } from '../../handlers/summarize/summarizer.js';
import { createFliteSpeaker } from '../../handlers/text-to-speech/flite.js';
import { speakingSeconds } from '../../handlers/text-to-speech/speaking-time.js';
import type { Speaker } from '../../handlers/text-to-speech/voices.js';
import { HOSTILE_TEXTS } from '../support/hostile-texts.js';

const NEVER = new AbortController().signal;
/** The longest time for which the process may be blocked, on a busy machine; most texts block it for a few ms. */
const LONGEST_STOP_MS = 250;
/** A quadratic reader would take minutes. */
const SECONDS_MS = 20_000;
const SPEECH_CHARACTERS = 2_500;
const SUMMARY_CHARACTERS = 100_000;
/** Processor time for one text on the main thread; most take less than 1 ms, and a non-linear reader takes seconds. */
const MOST_MS = 60;

/** Runs `work`. @returns its duration, and for how long the event loop was blocked meanwhile */
async function watched(work: () => Promise<unknown>): Promise<{ tookMs: number; stoodStillMs: number }> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  // The monitor measures the time from one tick to the next, so a tick must come before the work.
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

  describe('for speech leave the process free and are prepared quickly', () => {
    let speaker: Speaker;
    before(async () => {
      speaker = createFliteSpeaker({ threads: 1, deadlineMs: 60_000 });
      await speaker.speak('Warm up.', undefined, NEVER);
    });
    after(() => speaker.close());

    for (const [name, make] of Object.entries(HOSTILE_TEXTS)) {
      it(name, async () => {
        const leave = new AbortController();
        // Some of the texts can be spoken, which may take seconds.
        setTimeout(() => leave.abort(new Error('heard enough')), 150).unref();
        const { stoodStillMs } = await watched(() =>
          speaker.speak(make(SPEECH_CHARACTERS), undefined, leave.signal).catch(() => undefined),
        );
        expect(stoodStillMs).to.be.below(LONGEST_STOP_MS);
        // The worker was not blocked either, so it begins the next text after one phrase at most.
        const { tookMs } = await watched(() => speaker.speak('Next.', undefined, NEVER));
        expect(tookMs).to.be.below(SECONDS_MS);
      });
    }
  });

  describe('for summaries leave the process free and are read in seconds', () => {
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
        expect(tookMs).to.be.below(SECONDS_MS);
      });
    }
  });

  describe('from respondents, markets and callers are read in linear time', () => {
    const longer: Record<string, (size: number) => string> = {
      ...HOSTILE_TEXTS,
      'an address of one letter': size => `http://${'a.'.repeat(size / 2)}`,
      'a mail address of dashes': size => `a@${'a-'.repeat(size / 2)}`,
      'a possessive': size => `${'a'.repeat(size - 1)}'`,
      'per cent encoding': size => '%'.repeat(size),
      waits: size => 'wait '.repeat(size / 5),
    };
    /** What the server does with strangers' texts, and the maximum length of these texts. */
    const readers: Record<string, { characters: number; read: (text: string) => unknown }> = {
      'a reply’s sentiment': { characters: MAX_REPLY_CHARACTERS, read: readMark },
      'a reply’s letters': { characters: MAX_REPLY_CHARACTERS, read: looksLikeGibberish },
      'a reply': { characters: 200_000, read: text => tidyReply(text) },
      'the name of a token': { characters: 1_000_000, read: text => cleanName(text) },
      'an answer of people': {
        characters: MAX_REPLY_CHARACTERS,
        read: text => {
          const reply = { text, sentiment: 'neutral', from: 'respondent', isSample: false } as const;
          const replies = Array.from({ length: 20 }, () => reply);
          return createBrandFeedback({ brand: text, question: text, wanted: 20 }, replies);
        },
      },
      'the Retry-After of an upstream': { characters: 16_000, read: text => readRetryAfter(text) },
      'the Content-Type of a call': {
        characters: 16_000,
        read: text => {
          expect(() => requireJsonType(text)).to.throw(BodyFault);
        },
      },
      'an estimate of a speech': { characters: 5_000, read: speakingSeconds },
    };
    /** Processor time in ms, because other programs may be running. */
    const timeOf = (work: () => unknown): number => {
      const before = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    for (const [name, { characters, read }] of Object.entries(readers)) {
      it(name, () => {
        for (const [kind, make] of Object.entries(longer)) {
          const text = make(characters);
          const took = Math.min(...[1, 2, 3].map(() => timeOf(() => read(text))));
          expect(took, kind).to.be.below(MOST_MS);
        }
      });
    }
  });
});
