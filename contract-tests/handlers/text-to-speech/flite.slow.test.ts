import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect } from 'chai';
import { createFliteSpeaker, loadFlite } from '../../../handlers/text-to-speech/flite.js';
import { speakingSeconds } from '../../../handlers/text-to-speech/speaking-time.js';
import type { Speaker } from '../../../handlers/text-to-speech/voices.js';
import { loudness, readWav } from '../../../handlers/text-to-speech/wav.js';
import { SpeechWorkers } from '../../../handlers/text-to-speech/speech-workers.js';
import { failureOf } from '../../support/failure.js';

const NEVER = new AbortController().signal;
const SENTENCE = 'The quick brown fox jumps over the lazy dog near the river bank, and nobody minds. ';
const LONG = SENTENCE.repeat(31).slice(0, 2_500);

/** Checks every field of the header, and that the sound is neither silent nor clipped. @returns its length in seconds */
function seconds(wav: Buffer): number {
  expect(wav.toString('latin1', 0, 4)).to.equal('RIFF');
  expect(wav.readUInt32LE(4)).to.equal(wav.length - 8);
  expect(wav.toString('latin1', 8, 16)).to.equal('WAVEfmt ');
  expect([wav.readUInt32LE(16), wav.readUInt16LE(20), wav.readUInt16LE(22)]).to.deep.equal([16, 1, 1]);
  expect([wav.readUInt32LE(24), wav.readUInt32LE(28)]).to.deep.equal([22_050, 44_100]);
  expect([wav.readUInt16LE(32), wav.readUInt16LE(34)]).to.deep.equal([2, 16]);
  expect(wav.toString('latin1', 36, 40)).to.equal('data');
  expect(wav.readUInt32LE(40)).to.equal(wav.length - 44);
  const { samples } = readWav(wav);
  const { peak, rms } = loudness(samples);
  expect(peak).to.be.within(0.1, 0.98);
  expect(rms).to.be.above(0.02);
  return samples.length / 22_050;
}

/** Mean amplitude of the frequencies from `from` to `to`, sampled every 100 Hz over the whole sound. */
function bandLevel(samples: Float32Array, rateHz: number, from: number, to: number): number {
  let energy = 0;
  let bins = 0;
  for (let hz = from; hz <= to; hz += 100, bins++) {
    for (let start = 0; start + 1_024 <= samples.length; start += 4_096) {
      let [re, im] = [0, 0];
      for (let n = 0; n < 1_024; n++) {
        const windowed = (samples[start + n] as number) * (1 - Math.cos((2 * Math.PI * n) / 1_024));
        re += windowed * Math.cos((2 * Math.PI * hz * n) / rateHz);
        im += windowed * Math.sin((2 * Math.PI * hz * n) / rateHz);
      }
      energy += re * re + im * im;
    }
  }
  return Math.sqrt(energy / bins);
}

/** Polls until `ready`. */
async function until(ready: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if (await ready()) return;
    await new Promise(resolve => setTimeout(resolve, 5));
  }
  throw new Error('it never came true');
}

describe('voices: the embedded engine', function () {
  this.timeout(90_000);
  const speakers: Speaker[] = [];
  function speaker(options: Parameters<typeof createFliteSpeaker>[0] = {}): Speaker {
    const made = createFliteSpeaker({ deadlineMs: 60_000, ...options });
    speakers.push(made);
    return made;
  }
  afterEach(async () => {
    await Promise.all(speakers.splice(0).map(made => made.close()));
  });

  it('offers US English voices of medium quality, the default among them', async () => {
    const { default: id, voices } = await speaker().voices();
    expect(voices.map(voice => voice.id)).to.deep.equal(['en_US-rms-medium', 'en_US-slt-medium']);
    expect(id).to.equal('en_US-rms-medium');
    for (const voice of voices)
      expect(voice).to.include({ language: 'en-US', quality: 'medium', sampleRateHz: 22_050, bandwidthHz: 8_000 }).and.to.have.all.keys(
        'id', 'name', 'language', 'quality', 'sampleRateHz', 'bandwidthHz', 'license',
      ); // prettier-ignore
  });

  it('is healthy when the engine loads', async () => {
    expect((await speaker().health()).status).to.equal('ok');
  });

  it('speaks with both voices, which differ, and names the one it used', async () => {
    const made = speaker();
    const rms = await made.speak(SENTENCE, undefined, NEVER);
    const slt = await made.speak(SENTENCE, 'en_US-slt-medium', NEVER);
    expect([slt.voiceId, rms.voiceId]).to.deep.equal(['en_US-slt-medium', 'en_US-rms-medium']);
    expect(seconds(slt.wav)).to.be.within(3, 10);
    expect(seconds(rms.wav)).to.be.within(3, 10);
    expect(slt.wav.equals(rms.wav)).to.equal(false);
  });

  it('returns the same bytes for the same text, whatever was spoken before', async () => {
    const made = speaker({ threads: 1 });
    const first = await made.speak('Hello again.', undefined, NEVER);
    await made.speak('Something else entirely!', 'en_US-rms-medium', NEVER);
    expect((await made.speak('Hello again.', undefined, NEVER)).wav.equals(first.wav)).to.equal(true);
  });

  it('speaks all of 2 500 characters', async () => {
    const { wav } = await speaker().speak(LONG, undefined, NEVER);
    expect(seconds(wav)).to.be.within(120, 220);
  });

  it('speaks a single character', async () => {
    expect(seconds((await speaker().speak('a', undefined, NEVER)).wav)).to.be.within(0.2, 2);
  });

  it('refuses an unknown voice instead of speaking with the 8 kHz one', async () => {
    for (const id of ['en_US-nobody-medium', 'kal', 'slt', '', '__proto__'])
      expect((await failureOf(speaker().speak('Hello.', id, NEVER))).kind, id).to.equal('invalid');
  });

  it('fails rather than answer with the 8 kHz voice that the engine falls back to', async () => {
    const workers = new SpeechWorkers(1, loadFlite);
    try {
      const task = {
        text: 'Hello.',
        voice: 'nobody',
        rateHz: 16_000,
        maxSeconds: 10,
      };
      const failure = await failureOf(workers.speak(task, NEVER));
      expect(failure.kind).to.equal('failed');
      expect(String(failure.cause)).to.match(/8000 Hz/);
    } finally {
      await workers.close();
    }
  });

  it('rejects text with nothing to say, and text that is far too long to say in time, as invalid', async () => {
    for (const text of ['   ', '...', '', 'Привет', '你好', 'a'.repeat(30_000)])
      expect((await failureOf(speaker().speak(text, undefined, NEVER))).kind, text.slice(0, 10)).to.equal(
        'invalid',
      );
  });

  it('refuses words that it cannot speak, and names them', async () => {
    const { kind, message } = await failureOf(
      speaker().speak('Hello Привет, 你好 \uE000.', undefined, NEVER),
    );
    expect(kind).to.equal('invalid');
    expect(message).to.match(/^text has words .*: "Привет", "你好", U\+E000\. Write/);
  });

  it('reports its true bandwidth: there is sound just below it, and none above', async () => {
    const { wav, bandwidthHz } = await speaker().speak(
      'She sells sea shells, six sizes of seashells.',
      undefined,
      NEVER,
    );
    expect(bandwidthHz).to.equal(8_000);
    const { samples, rateHz } = readWav(wav);
    const whole = bandLevel(samples, rateHz, 100, 4_000);
    expect(bandLevel(samples, rateHz, 5_500, 7_500) / whole).to.be.above(1e-2);
    expect(bandLevel(samples, rateHz, 8_200, 11_000) / whole).to.be.below(1e-3);
  });

  it('rejects text that takes far longer to say than prose before speaking any of it, and says why', async () => {
    const made = speaker({ threads: 1 });
    await made.speak('Warm up.', undefined, NEVER);
    const texts = ['9876543217', '987,654,321, ', '$987.65 ', 'WXQZ', '1%°', '1999 '];
    for (const text of texts) {
      const began = performance.now();
      const failure = await failureOf(made.speak(text.repeat(2_500 / text.length), undefined, NEVER));
      expect(failure.kind, text).to.equal('invalid');
      expect(failure.message).to.match(/shorten/);
      expect(performance.now() - began, text).to.be.below(1_000);
    }
    const prose =
      'In 2024, revenue rose by 12% to $3.4 million, and 17 of the 25 USDC accounts were closed. ';
    expect(speakingSeconds(prose.repeat(27))).to.be.below(330);
  });

  it('estimates how long a text takes to say', async () => {
    const texts = [SENTENCE.repeat(3), '9876543217', '987,654,321, 17. ', 'WXQZ', 'In 1999 it was 7. '];
    const made = speaker();
    for (const text of texts) {
      const long = text.repeat(Math.ceil(150 / text.length));
      const spoken = seconds((await made.speak(long, undefined, NEVER)).wav);
      expect(speakingSeconds(long) / spoken, text).to.be.within(0.6, 1.6);
    }
  });

  it("one caller's speeches do not fill the queue for another", async () => {
    const made = speaker({ threads: 1, maxWaiting: 2 });
    const leave = new AbortController();
    const greedy = [1, 2, 3].map(() =>
      made.speak(LONG, undefined, leave.signal, 'greedy').catch(() => 'left'),
    );
    const refused = await failureOf(made.speak('Hello.', undefined, NEVER, 'greedy'));
    expect(refused.kind).to.equal('unavailable');
    const honest = made.speak('Hello.', undefined, NEVER, 'honest');
    setTimeout(() => leave.abort(), 300);
    expect(seconds((await honest).wav)).to.be.below(3);
    expect(await Promise.all(greedy)).to.deep.equal(['left', 'left', 'left']);
  });

  it('stops a speech that becomes too long, instead of finishing it', async () => {
    const failure = await failureOf(speaker({ maxSeconds: 5 }).speak(LONG, undefined, NEVER));
    expect(failure).to.include({ kind: 'invalid' });
    expect(failure.message).to.match(/shorten/);
  });

  it('refuses a call when the queue is full, and says when to come back', async () => {
    const made = speaker({ threads: 1, maxWaiting: 2 });
    const leave = new AbortController();
    const accepted = [1, 2, 3].map(() => made.speak(LONG, undefined, leave.signal).catch(() => 'left'));
    const failure = await failureOf(made.speak('Hello.', undefined, NEVER));
    expect(failure.kind).to.equal('unavailable');
    expect(failure.retryAfterSeconds).to.be.within(1, 30);
    expect((await made.health()).status).to.equal('degraded');
    leave.abort();
    expect(await Promise.all(accepted)).to.deep.equal(['left', 'left', 'left']);
  });

  it('frees the queue when callers leave, waiting or being served, and continues to work', async () => {
    const made = speaker({ threads: 1, maxWaiting: 2 });
    seconds((await made.speak('Warm up.', undefined, NEVER)).wav);
    for (let round = 0; round < 3; round++) {
      const leave = new AbortController();
      const reason = new Error('the caller hung up');
      // The first call may still be waiting for the phrase that is being made for a caller who left.
      const jobs = [1, 2].map(() =>
        made.speak(LONG, undefined, leave.signal).catch((error: unknown) => error),
      );
      await new Promise(resolve => setTimeout(resolve, 100));
      leave.abort(reason);
      expect(await Promise.all(jobs)).to.deep.equal([reason, reason]);
    }
    // If the old jobs were still on the only thread, this would have to wait for six long speeches.
    const began = performance.now();
    seconds((await made.speak('Hello again.', undefined, NEVER)).wav);
    expect(performance.now() - began).to.be.below(10_000);
  });

  it('starts a waiting call when the running one is cancelled', async () => {
    const made = speaker({ threads: 1 });
    const leave = new AbortController();
    const first = made.speak(LONG, undefined, leave.signal).catch(() => 'left');
    const second = made.speak('I come next.', undefined, NEVER);
    setTimeout(() => leave.abort(), 100);
    expect(await first).to.equal('left');
    expect(seconds((await second).wav)).to.be.below(5);
  });

  it('starts no speech for a caller who has already left', async () => {
    const left = AbortSignal.abort(new Error('gone'));
    expect(
      await speaker()
        .speak('Hello.', undefined, left)
        .catch((error: Error) => error.message),
    ).to.equal('gone');
  });

  it('gives up at its deadline, and works afterwards', async () => {
    const made = speaker({ threads: 1, deadlineMs: 150 });
    const failure = await failureOf(made.speak(LONG, undefined, NEVER));
    expect(failure.kind).to.equal('unavailable');
    await until(async () =>
      made.speak('Hi.', undefined, NEVER).then(
        ({ wav }) => seconds(wav) > 0,
        () => false,
      ),
    );
  });

  it('fails running and waiting calls when it is closed', async () => {
    const made = speaker({ threads: 1 });
    const jobs = [1, 2].map(() => failureOf(made.speak(LONG, undefined, NEVER)));
    await until(async () => (await made.health()).status === 'ok');
    await made.close();
    for (const failure of await Promise.all(jobs)) expect(failure.kind).to.equal('unavailable');
  });

  it('keeps the event loop free while six long speeches are made', async () => {
    const made = speaker({ maxWaiting: 8 });
    await made.speak('Warm up.', undefined, NEVER);
    const delay = monitorEventLoopDelay({ resolution: 5 });
    const began = performance.now();
    delay.enable();
    const made6 = await Promise.all(
      [...Array(6).keys()].map(n => made.speak(LONG.slice(n, 1_000), undefined, NEVER)),
    );
    delay.disable();
    const took = performance.now() - began;
    for (const { wav } of made6) expect(wav.length).to.be.above(1_500_000);
    expect(delay.max / 1e6).to.be.below(took / 10);
  });
});
