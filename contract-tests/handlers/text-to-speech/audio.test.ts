import { expect } from 'chai';
import { resample } from '../../../handlers/text-to-speech/resample.js';
import { loudness, masterWav, readWav, WavFault } from '../../../handlers/text-to-speech/wav.js';

function tone(hz: number, rateHz: number, seconds: number, amplitude = 0.5): Float32Array {
  return Float32Array.from(
    { length: Math.round(rateHz * seconds) },
    (_, n) => amplitude * Math.sin((2 * Math.PI * hz * n) / rateHz),
  );
}

/** Amplitude at one frequency: a Hann-windowed DFT bin over the middle half of the sound. */
function amplitudeAt(hz: number, samples: Float32Array, rateHz: number): number {
  const middle = samples.subarray(samples.length / 4, (samples.length * 3) / 4);
  let re = 0;
  let im = 0;
  for (const [n, sample] of middle.entries()) {
    const windowed = sample * (1 - Math.cos((2 * Math.PI * n) / middle.length));
    re += windowed * Math.cos((2 * Math.PI * hz * n) / rateHz);
    im -= windowed * Math.sin((2 * Math.PI * hz * n) / rateHz);
  }
  return (2 * Math.hypot(re, im)) / middle.length;
}

type Shape = {
  format?: number;
  channels?: number;
  rateHz?: number;
  bits?: number;
  dataSize?: number;
  before?: Buffer;
};

function wavFile(data: Buffer, shape: Shape = {}): Buffer {
  const { format = 1, channels = 1, rateHz = 22_050, bits = 16, dataSize = data.length } = shape;
  const fmt = Buffer.alloc(24);
  fmt.write('fmt ', 0);
  fmt.writeUInt32LE(16, 4);
  fmt.writeUInt16LE(format, 8);
  fmt.writeUInt16LE(channels, 10);
  fmt.writeUInt32LE(rateHz, 12);
  fmt.writeUInt32LE((rateHz * channels * bits) / 8, 16);
  fmt.writeUInt16LE((channels * bits) / 8, 20);
  fmt.writeUInt16LE(bits, 22);
  const head = Buffer.alloc(8);
  head.write('data', 0);
  head.writeUInt32LE(dataSize, 4);
  const riff = Buffer.from('RIFF\xff\xff\xff\xffWAVE', 'latin1');
  return Buffer.concat([riff, shape.before ?? Buffer.alloc(0), fmt, head, data]);
}

function encode(samples: Float32Array, bits: number, float = false): Buffer {
  const data = Buffer.alloc((samples.length * bits) / 8);
  for (const [n, sample] of samples.entries()) {
    const at = (n * bits) / 8;
    if (float) {
      if (bits === 64) data.writeDoubleLE(sample, at);
      else data.writeFloatLE(sample, at);
    } else if (bits === 8) data.writeUInt8(Math.round(sample * 127) + 128, at);
    else data.writeIntLE(Math.round(sample * (2 ** (bits - 1) - 1)), at, bits / 8);
  }
  return data;
}

describe('voices: resampling', () => {
  for (const [from, to] of [
    [16_000, 22_050],
    [8_000, 22_050],
    [24_000, 22_050],
    [44_100, 22_050],
    [48_000, 22_050],
  ] as const) {
    it(`${from} Hz to ${to} Hz keeps a 1 kHz tone's length, pitch and loudness, and adds no images`, () => {
      const output = resample(tone(1_000, from, 1), from, to);
      expect(output.length).to.equal(to);
      expect(amplitudeAt(1_000, output, to)).to.be.closeTo(0.5, 0.0005);
      // Where images of the tone would fold to, around multiples of the input rate.
      for (const image of [from - 1_000, from + 1_000, 2 * from - 1_000].map(hz =>
        Math.abs(hz - to * Math.round(hz / to)),
      ))
        if (image !== 1_000)
          expect(amplitudeAt(image, output, to), `image at ${image} Hz`).to.be.below(0.5e-4);
      const expected = tone(1_000, to, 1);
      for (let n = 4_000; n < 4_100; n++) expect(output[n]).to.be.closeTo(expected[n] as number, 0.0005);
    });
  }

  it('keeps the band up to 6.5 kHz of a 16 kHz voice within 0.1 dB', () => {
    for (const hz of [100, 3_000, 5_000, 6_500])
      expect(amplitudeAt(hz, resample(tone(hz, 16_000, 1), 16_000, 22_050), 22_050)).to.be.closeTo(
        0.5,
        0.006,
      );
  });

  it("removes what the lower rate can't represent instead of folding it down", () => {
    const output = resample(tone(15_000, 48_000, 1), 48_000, 22_050);
    expect(loudness(output.subarray(2_000, 20_000)).peak).to.be.below(0.5e-4);
  });

  it('passes a constant unchanged in every phase', () => {
    const output = resample(new Float32Array(2_000).fill(0.25), 16_000, 22_050);
    for (const sample of output.subarray(200, 2_500)) expect(sample).to.be.closeTo(0.25, 1e-6);
  });

  it('refuses rates that would need an unbounded filter', () => {
    expect(() => resample(new Float32Array(10), 191_999, 22_050)).to.throw(RangeError);
  });
});

describe('voices: reading and writing WAV', () => {
  const samples = tone(440, 22_050, 0.2);

  for (const [bits, float] of [
    [8, false],
    [16, false],
    [24, false],
    [32, false],
    [32, true],
    [64, true],
  ] as const) {
    it(`reads ${bits} bit ${float ? 'float' : 'PCM'}`, () => {
      const sound = readWav(wavFile(encode(samples, bits, float), { bits, format: float ? 3 : 1 }));
      expect(sound.samples.length).to.equal(samples.length);
      for (let n = 0; n < 200; n++)
        expect(sound.samples[n]).to.be.closeTo(samples[n] as number, bits === 8 ? 0.02 : 1e-4);
    });
  }

  it('mixes stereo down to the mean of both channels', () => {
    const both = new Float32Array(samples.length * 2);
    for (const [n, sample] of samples.entries()) both[2 * n] = sample;
    const sound = readWav(wavFile(encode(both, 16), { channels: 2 }));
    expect(sound.samples.length).to.equal(samples.length);
    expect(loudness(sound.samples).peak).to.be.closeTo(0.25, 0.001);
  });

  it('recognizes placeholder sizes', () => {
    for (const dataSize of [0, 0xffffffff, 0x7fffffff, 0xffffffff - 36])
      expect(readWav(wavFile(encode(samples, 16), { dataSize })).samples.length).to.equal(samples.length);
  });

  it('skips unknown chunks and ignores what follows the data', () => {
    const list = Buffer.from('LIST\x03\x00\x00\x00abc\x00', 'latin1');
    const file = Buffer.concat([wavFile(encode(samples, 16), { before: list }), list]);
    expect(readWav(file).samples.length).to.equal(samples.length);
  });

  it('rejects a file that is cut off, is not WAV, or declares absurd sizes', () => {
    const whole = wavFile(encode(samples, 16));
    const faulty = [
      whole.subarray(0, 1_000),
      whole.subarray(0, 30),
      whole.subarray(0, 12),
      Buffer.from('<html><body>502</body></html>'),
      Buffer.alloc(0),
      wavFile(encode(samples, 16), { channels: 0 }),
      wavFile(encode(samples, 16), { rateHz: 0 }),
      wavFile(encode(samples, 16), { format: 85 }),
      wavFile(encode(samples, 16), { bits: 12 }),
    ];
    for (const file of faulty) expect(() => readWav(file)).to.throw(WavFault);
  });

  it('attenuates a sound that is too loud instead of clipping it', () => {
    const loud = tone(440, 22_050, 0.2, 3);
    const { samples: written } = readWav(masterWav({ samples: loud, rateHz: 22_050 }));
    expect(loudness(written).peak).to.be.closeTo(0.97, 0.001);
    expect(amplitudeAt(440, written, 22_050)).to.be.closeTo(0.97, 0.01);
  });

  it('writes what it read without changing a sample if nothing needs converting', () => {
    const data = encode(samples, 16);
    expect(
      Buffer.from(masterWav(readWav(wavFile(data))))
        .subarray(44)
        .equals(data),
    ).to.equal(true);
  });

  it('refuses silence', () => {
    expect(() => masterWav({ samples: new Float32Array(22_050), rateHz: 22_050 })).to.throw(
      WavFault,
      'silence',
    );
    expect(() => masterWav({ samples: new Float32Array(0), rateHz: 22_050 })).to.throw(WavFault, 'silence');
  });
});
