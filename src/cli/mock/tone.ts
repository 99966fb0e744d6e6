const RATE_HZ = 22_050;
const SECONDS = 0.5;
const PITCH_HZ = 440;
const VOLUME = 0.2;
const BYTES_PER_SAMPLE = 2;
const HEADER_BYTES = 44;

/** A tone of half a second as a WAV file: mono, 22.05 kHz, 16 bits. */
export function tone(): Buffer {
  const samples = Math.round(RATE_HZ * SECONDS);
  const bytes = samples * BYTES_PER_SAMPLE;
  const wav = Buffer.alloc(HEADER_BYTES + bytes);
  wav.write('RIFF', 0, 'latin1');
  wav.writeUInt32LE(HEADER_BYTES - 8 + bytes, 4);
  wav.write('WAVEfmt ', 8, 'latin1');
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(RATE_HZ, 24);
  wav.writeUInt32LE(RATE_HZ * BYTES_PER_SAMPLE, 28);
  wav.writeUInt16LE(BYTES_PER_SAMPLE, 32);
  wav.writeUInt16LE(8 * BYTES_PER_SAMPLE, 34);
  wav.write('data', 36, 'latin1');
  wav.writeUInt32LE(bytes, 40);
  for (let at = 0; at < samples; at++) {
    const height = Math.sin((2 * Math.PI * PITCH_HZ * at) / RATE_HZ) * VOLUME * 32_767;
    wav.writeInt16LE(Math.round(height), HEADER_BYTES + BYTES_PER_SAMPLE * at);
  }
  return wav;
}
