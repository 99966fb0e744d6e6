import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createPiperSpeaker, type PiperOptions } from '../../../handlers/text-to-speech/piper.js';
import type { Speaker } from '../../../handlers/text-to-speech/voices.js';
import { loudness, readWav } from '../../../handlers/text-to-speech/wav.js';
import { failureOf } from '../../support/failure.js';

const NEVER = new AbortController().signal;

type Call = { method: string; path: string; type: string; body: string };
type Answering = (call: Call, response: ServerResponse, request: IncomingMessage) => void;

type Shape = { rateHz?: number; channels?: number; seconds?: number; dataSize?: number };

/** A 440 Hz tone at half scale, as a server would send it. */
function toneWav({ rateHz = 22_050, channels = 1, seconds = 0.5, dataSize }: Shape = {}): Buffer {
  const frames = Math.round(rateHz * seconds);
  const file = Buffer.alloc(44 + frames * channels * 2);
  file.write('RIFF', 0);
  file.writeUInt32LE(dataSize ?? file.length - 8, 4);
  file.write('WAVEfmt ', 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(channels, 22);
  file.writeUInt32LE(rateHz, 24);
  file.writeUInt32LE(rateHz * channels * 2, 28);
  file.writeUInt16LE(channels * 2, 32);
  file.writeUInt16LE(16, 34);
  file.write('data', 36);
  file.writeUInt32LE(dataSize ?? file.length - 44, 40);
  for (let n = 0; n < frames * channels; n++) {
    const value = 16_384 * Math.sin((2 * Math.PI * 440 * Math.floor(n / channels)) / rateHz);
    file.writeInt16LE(Math.round(value), 44 + 2 * n);
  }
  return file;
}

const VOICES = {
  'de_DE-thorsten-medium': { audio: { quality: 'medium' }, language: { code: 'de_DE' }, dataset: 'thorsten' },
  'en_US-amy-medium': { audio: { quality: 'medium' }, language: { code: 'en_US' }, dataset: 'amy' },
  'en_US-lessac-medium': { audio: { quality: 'medium' }, language: { code: 'en_US' }, dataset: 'lessac' },
};

function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function sendWav(response: ServerResponse, wav: Buffer): void {
  response.writeHead(200, { 'content-type': 'audio/wav' }).end(wav);
}

/** Answers like the current version of the Piper server: lists `voices`, and has `synthesize` answer what is posted to /synthesize. */
function current(synthesize: Answering, voices: unknown = VOICES): Answering {
  return (call, response, request) => {
    if (call.method === 'GET' && call.path === '/voices') sendJson(response, voices);
    else if (call.method === 'POST' && call.path === '/synthesize') synthesize(call, response, request);
    else response.writeHead(404).end();
  };
}

describe('voices: a Piper server', function () {
  this.timeout(30_000);
  const servers: Server[] = [];
  const speakers: Speaker[] = [];

  async function piper(
    answer: Answering,
    options: Partial<PiperOptions> = {},
  ): Promise<{ speaker: Speaker; calls: Call[] }> {
    const calls: Call[] = [];
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        const body = Buffer.concat(parts).toString();
        const type = request.headers['content-type'] ?? '';
        const call = { method: request.method ?? '', path: request.url ?? '', type, body };
        calls.push(call);
        answer(call, response, request);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const speaker = createPiperSpeaker({ url, ...options });
    speakers.push(speaker);
    return { speaker, calls };
  }

  afterEach(async () => {
    await Promise.all(speakers.splice(0).map(speaker => speaker.close()));
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  async function kindOf(synthesize: Answering, options: Partial<PiperOptions> = {}): Promise<string> {
    const { speaker } = await piper(current(synthesize), options);
    return (await failureOf(speaker.speak('Hello.', undefined, NEVER))).kind;
  }

  function expectTone(wav: Buffer, seconds: number): void {
    expect([wav.readUInt16LE(22), wav.readUInt32LE(24), wav.readUInt16LE(34)]).to.deep.equal([1, 22_050, 16]);
    expect(wav.readUInt32LE(40)).to.equal(wav.length - 44);
    expect(wav.readUInt32LE(4)).to.equal(wav.length - 8);
    const { samples } = readWav(wav);
    expect(samples.length / 22_050).to.be.closeTo(seconds, 0.001);
    expect(loudness(samples).rms).to.be.closeTo(0.5 / Math.SQRT2, 0.01);
    let crossings = 0;
    for (let n = 1; n < samples.length; n++)
      if ((samples[n - 1] as number) < 0 && (samples[n] as number) >= 0) crossings++;
    expect(crossings / seconds).to.be.closeTo(440, 5);
  }

  it('sends the server the name of the voice', async () => {
    const { speaker, calls } = await piper(current((_call, response) => sendWav(response, toneWav())));
    const { wav, voiceId } = await speaker.speak('Hello “world”.', undefined, NEVER);
    expect(voiceId).to.equal('en_US-lessac-medium');
    expectTone(wav, 0.5);
    const call = calls.find(({ path }) => path === '/synthesize');
    expect(call?.type).to.equal('application/json');
    expect(JSON.parse(call?.body ?? '')).to.deep.equal({
      text: 'Hello world.',
      voice: 'en_US-lessac-medium',
    });
  });

  it('lists the voices of the server in our format, fetched once', async () => {
    const { speaker, calls } = await piper(current((_call, response) => sendWav(response, toneWav())));
    const lists = await Promise.all([speaker.voices(), speaker.voices(), speaker.voices()]);
    expect(lists[0]?.default).to.equal('en_US-lessac-medium');
    expect(lists[0]?.voices.map(({ id, name, language, quality, sampleRateHz }) => [id, name, language, quality, sampleRateHz])).to.deep.equal([
      ['de_DE-thorsten-medium', 'thorsten', 'de-DE', 'medium', 22_050],
      ['en_US-amy-medium', 'amy', 'en-US', 'medium', 22_050],
      ['en_US-lessac-medium', 'lessac', 'en-US', 'medium', 22_050],
    ]); // prettier-ignore
    await speaker.voices();
    expect(calls.length).to.equal(1);
  });

  it("prefers the operator's default voice, then US English of medium quality, then any English", async () => {
    const cases: [string[], string | undefined, string][] = [
      [['de_DE-x-medium', 'en_US-joe-medium', 'en_US-amy-low'], undefined, 'en_US-joe-medium'],
      [['de_DE-x-medium', 'en_GB-alan-low'], undefined, 'en_GB-alan-low'],
      [['de_DE-x-medium'], undefined, 'de_DE-x-medium'],
      [['en_US-amy-medium', 'en_US-joe-medium'], 'en_US-joe-medium', 'en_US-joe-medium'],
      [['en_US-amy-medium'], 'en_US-missing-medium', 'en_US-amy-medium'],
    ];
    for (const [ids, defaultVoice, expected] of cases) {
      const list = Object.fromEntries(ids.map(id => [id, {}]));
      const { speaker } = await piper(
        current(() => {}, list),
        defaultVoice === undefined ? {} : { defaultVoice },
      );
      expect((await speaker.voices()).default).to.equal(expected);
    }
  });

  it('rejects a voice that the server lacks without calling the server, which would use another voice', async () => {
    const { speaker, calls } = await piper(current((_call, response) => sendWav(response, toneWav())));
    for (const id of ['en_US-nobody-medium', '', 'constructor'])
      expect((await failureOf(speaker.speak('Hello.', id, NEVER))).kind).to.equal('invalid');
    expect(calls.some(({ method }) => method === 'POST')).to.equal(false);
    expect((await speaker.speak('Hello.', 'en_US-amy-medium', NEVER)).voiceId).to.equal('en_US-amy-medium');
  });

  it('rejects text that contains nothing to say, and sends no request', async () => {
    const { speaker, calls } = await piper(current((_call, response) => sendWav(response, toneWav())));
    for (const text of [' ', '…'])
      expect((await failureOf(speaker.speak(text, undefined, NEVER))).kind).to.equal('invalid');
    expect(calls.length).to.equal(0);
  });

  it('rejects words in a script that the language of the voice does not use, because the server would omit or spell them', async () => {
    const list = { ...VOICES, 'ru_RU-irina-medium': { language: { code: 'ru_RU' } } };
    const { speaker, calls } = await piper(current((_call, response) => sendWav(response, toneWav()), list));
    const failure = await failureOf(speaker.speak('Hello Привет, мир', undefined, NEVER));
    expect(failure.kind).to.equal('invalid');
    expect(failure.message).to.include('"Привет", "мир"');
    expect((await failureOf(speaker.speak('Привет 你好', 'ru_RU-irina-medium', NEVER))).message).to.include(
      '"你好"',
    );
    expect(calls.some(({ method }) => method === 'POST')).to.equal(false);
    await speaker.speak('Привет, мир', 'ru_RU-irina-medium', NEVER);
    await speaker.speak('5 ₽ 🎉 A → B', undefined, NEVER);
    const sent = calls
      .filter(({ method }) => method === 'POST')
      .map(({ body }) => (JSON.parse(body) as { text: string }).text);
    expect(sent).to.deep.equal(['Привет, мир', '5 rubles party popper A to B']);
  });

  it('has 300 digits read one by one, and rejects text that would take too long to say, with the reason', async () => {
    const { speaker, calls } = await piper(current((_call, response) => sendWav(response, toneWav())));
    await speaker.speak('7'.repeat(300), undefined, NEVER);
    const sent = JSON.parse(calls.at(-1)?.body ?? '') as { text: string };
    expect(sent.text).to.equal(Array.from({ length: 300 }, () => '7').join(' '));
    const asked = calls.length;
    const failure = await failureOf(speaker.speak('7'.repeat(2_500), undefined, NEVER));
    expect(failure.kind).to.equal('invalid');
    expect(failure.message).to.contain('shorten');
    expect(calls.length).to.equal(asked);
  });

  it('reports the bandwidth of a voice, and of each speech as measured in its file', async () => {
    const voices = {
      'en_US-a-low': { audio: { sample_rate: 16_000 } },
      'en_US-b-medium': { audio: { sample_rate: 22_050 } },
      'en_US-c-high': { audio: { sample_rate: 48_000 } },
      'en_US-d-medium': {},
      'en_US-e-medium': { audio: { sample_rate: 'many' } },
    };
    const rates = [8_000, 16_000, 22_050, 44_100];
    const { speaker } = await piper(
      current((_call, response) => sendWav(response, toneWav({ rateHz: rates.shift() ?? 0 })), voices),
    );
    const list = await speaker.voices();
    expect(list.voices.map(({ bandwidthHz }) => bandwidthHz)).to.deep.equal([
      8_000,
      11_025,
      11_025,
      undefined,
      undefined,
    ]);
    const told: number[] = [];
    while (rates.length > 0) told.push((await speaker.speak('Hello.', undefined, NEVER)).bandwidthHz);
    expect(told).to.deep.equal([4_000, 8_000, 11_025, 11_025]);
  });

  it('finds the older path once and remembers it', async () => {
    for (const status of [404, 405]) {
      const { speaker, calls } = await piper((call, response) => {
        if (call.path === '/voices') sendJson(response, VOICES);
        else if (call.path === '/' && call.method === 'POST') sendWav(response, toneWav());
        else response.writeHead(status).end();
      });
      for (let n = 0; n < 3; n++) expectTone((await speaker.speak('Hello.', undefined, NEVER)).wav, 0.5);
      expect(calls.map(({ path }) => path)).to.deep.equal(['/voices', '/synthesize', '/', '/', '/']);
      expect(JSON.parse(calls.at(-1)?.body ?? '')).to.have.property('voice', 'en_US-lessac-medium');
    }
  });

  it('notices that a server with the newer path has replaced an older one', async () => {
    let older = true;
    const { speaker } = await piper((call, response) => {
      if (call.path === '/voices') sendJson(response, VOICES);
      else if (call.path === (older ? '/' : '/synthesize')) sendWav(response, toneWav());
      else response.writeHead(404).end();
    });
    await speaker.speak('Hello.', undefined, NEVER);
    older = false;
    expect((await failureOf(speaker.speak('Hello.', undefined, NEVER))).kind).to.equal('failed');
    expectTone((await speaker.speak('Hello.', undefined, NEVER)).wav, 0.5);
  });

  it('sends plain text to the oldest servers, which have no voices and would read JSON out loud', async () => {
    const { speaker, calls } = await piper((call, response) => {
      if (call.path === '/' && call.method === 'POST') sendWav(response, toneWav());
      else response.writeHead(404).end();
    });
    const { default: id, voices } = await speaker.voices();
    expect(voices.map(voice => voice.id)).to.deep.equal([id]);
    expect(id).to.match(/^en_US-.+-medium$/);
    expect((await failureOf(speaker.speak('Hello.', 'en_US-amy-medium', NEVER))).kind).to.equal('invalid');
    expect((await speaker.speak('Hello.', id, NEVER)).voiceId).to.equal(id);
    expect(calls.at(-1)).to.include({ path: '/', body: 'Hello.', type: 'text/plain; charset=utf-8' });
  });

  it('converts any sample rate, stereo and placeholder sizes to the documented format', async () => {
    const shapes: Shape[] = [
      { rateHz: 16_000 },
      { rateHz: 24_000, channels: 2 },
      { rateHz: 48_000 },
      { channels: 2 },
      { dataSize: 0 },
      { dataSize: 0xffffffff },
    ];
    for (const shape of shapes) {
      const { speaker } = await piper(current((_call, response) => sendWav(response, toneWav(shape))));
      expectTone((await speaker.speak('Hello.', undefined, NEVER)).wav, 0.5);
    }
  });

  it('fails on audio that is cut off, empty, silent, or not audio', async () => {
    const whole = toneWav();
    expect(await kindOf((_call, response) => sendWav(response, whole.subarray(0, 5_000)))).to.equal('failed');
    expect(await kindOf((_call, response) => sendWav(response, whole.subarray(0, 44)))).to.equal('failed');
    expect(await kindOf((_call, response) => sendWav(response, Buffer.alloc(0)))).to.equal('failed');
    const silent = Buffer.concat([whole.subarray(0, 44), Buffer.alloc(whole.length - 44)]);
    expect(await kindOf((_call, response) => sendWav(response, silent))).to.equal('failed');
    const html: Answering = (_call, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>It works!</html>');
    expect(await kindOf(html)).to.equal('failed');
  });

  it('fails on 500 and on a connection that breaks in the middle of the audio', async () => {
    expect(await kindOf((_call, response) => response.writeHead(500).end('Traceback'))).to.equal('failed');
    const breaking: Answering = (_call, response) => {
      const wav = toneWav();
      response.writeHead(200, { 'content-length': wav.length });
      response.write(wav.subarray(0, 5_000), () => response.destroy());
    };
    expect(await kindOf(breaking)).to.equal('failed');
  });

  it('fails on an answer that does not come in time or does not end', async () => {
    expect(await kindOf(() => {}, { deadlineMs: 300 })).to.equal('failed');
    const endless: Answering = (_call, response) => {
      response.writeHead(200).write(toneWav());
    };
    expect(await kindOf(endless, { deadlineMs: 300 })).to.equal('failed');
  });

  it('fails on an answer larger than its limit', async () => {
    const answer: Answering = (_call, response) => sendWav(response, toneWav({ seconds: 5 }));
    expect(await kindOf(answer, { maxBodyBytes: 50_000 })).to.equal('failed');
  });

  it('passes on how long a busy server asks its callers to wait', async () => {
    for (const status of [429, 503]) {
      const { speaker } = await piper(
        current((_call, response) => response.writeHead(status, { 'retry-after': '7' }).end()),
      );
      expect(await failureOf(speaker.speak('Hello.', undefined, NEVER))).to.include({
        kind: 'unavailable',
        retryAfterSeconds: 7,
      });
    }
  });

  it('is unavailable while nothing is listening, and its health reports this', async () => {
    const speaker = createPiperSpeaker({ url: 'http://127.0.0.1:1' });
    speakers.push(speaker);
    expect(await failureOf(speaker.speak('Hello.', undefined, NEVER))).to.include({ kind: 'unavailable' });
    expect((await failureOf(speaker.voices())).kind).to.equal('unavailable');
    expect((await speaker.health()).status).to.equal('degraded');
  });

  it('stops calling a server that keeps failing, and calls it again once it works', async () => {
    let broken = true;
    const { speaker, calls } = await piper(
      current((_call, response) => {
        if (broken) response.writeHead(500).end();
        else sendWav(response, toneWav());
      }),
      { breaker: { failures: 3, restMs: 400 } },
    );
    for (let n = 0; n < 3; n++)
      expect((await failureOf(speaker.speak('Hi.', undefined, NEVER))).kind).to.equal('failed');
    const asked = calls.length;
    expect(await failureOf(speaker.speak('Hi.', undefined, NEVER))).to.include({
      kind: 'unavailable',
      retryAfterSeconds: 1,
    });
    expect((await speaker.health()).status).to.equal('degraded');
    expect(calls.length).to.equal(asked);
    broken = false;
    await new Promise(resolve => setTimeout(resolve, 500));
    expectTone((await speaker.speak('Hi.', undefined, NEVER)).wav, 0.5);
    expect((await speaker.health()).status).to.equal('ok');
  });

  it('keeps offering the known voices while the server is down', async () => {
    let away = false;
    const { speaker } = await piper(
      (_call, response) => {
        if (away) response.destroy();
        else sendJson(response, VOICES);
      },
      { voicesTtlMs: 0 },
    );
    const known = await speaker.voices();
    away = true;
    expect(await speaker.voices()).to.deep.equal(known);
    expect(known.voices.length).to.equal(3);
  });

  it('closes its request when the caller leaves, and the queue continues', async () => {
    let dropped = 0;
    let hold = true;
    const { speaker } = await piper(
      current((_call, response) => {
        response.on('close', () => {
          if (!response.writableEnded) dropped += 1;
        });
        if (!hold) sendWav(response, toneWav());
      }),
      { connections: 1, maxWaiting: 1 },
    );
    await speaker.voices();
    const leave = new AbortController();
    const reason = new Error('the caller hung up');
    const jobs = [1, 2].map(() =>
      speaker.speak('Hello.', undefined, leave.signal).catch((error: unknown) => error),
    );
    await new Promise(resolve => setTimeout(resolve, 100));
    const failure = await failureOf(speaker.speak('Hello.', undefined, NEVER));
    expect(failure.kind).to.equal('unavailable');
    expect(failure.retryAfterSeconds).to.be.within(1, 30);
    leave.abort(reason);
    expect(await Promise.all(jobs)).to.deep.equal([reason, reason]);
    hold = false;
    expectTone((await speaker.speak('Hello.', undefined, NEVER)).wav, 0.5);
    expect(dropped).to.equal(1);
  });

  it('lets a caller leave while the list of voices is being fetched', async () => {
    const { speaker } = await piper(() => {});
    const leave = new AbortController();
    const job = speaker.speak('Hello.', undefined, leave.signal).catch((error: unknown) => error);
    setTimeout(() => leave.abort(new Error('gone')), 50);
    const began = performance.now();
    expect(await job).to.include({ message: 'gone' });
    expect(performance.now() - began).to.be.below(3_000);
  });

  it('never shows the address of the server to the caller', async () => {
    const speaker = createPiperSpeaker({ url: 'http://127.0.0.1:1/secret-path' });
    speakers.push(speaker);
    expect((await failureOf(speaker.speak('Hello.', undefined, NEVER))).message).not.to.match(/127|secret/);
  });
});
