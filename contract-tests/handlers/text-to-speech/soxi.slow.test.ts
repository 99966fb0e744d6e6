import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFliteSpeaker } from '../../../handlers/text-to-speech/flite.js';

const TEXT =
  'The harbour bridge will close for repairs on Monday. Ferries run every ten minutes, for $2.50 a ride.';

/** Runs one of sox's tools; undefined if sox is not installed. */
function sox(tool: string, ...words: string[]): string | undefined {
  const { error, stdout, stderr } = spawnSync(tool, words, { encoding: 'utf8', timeout: 20_000 });
  return error ? undefined : `${stdout}${stderr}`;
}

describe('Speech, checked by sox', () => {
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-sox-'));
  const speaker = createFliteSpeaker();
  after(async () => {
    await speaker.close();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const voice of ['en_US-slt-medium', 'en_US-rms-medium']) {
    it(`${voice}: mono, 22050 Hz, 16 bit, of plausible length, neither silent nor clipped`, async function () {
      this.timeout(30_000);
      const file = join(folder, `${voice}.wav`);
      writeFileSync(file, (await speaker.speak(TEXT, voice, AbortSignal.timeout(20_000))).wav);
      const facts = ['-c', '-r', '-b', '-D'].map(flag => sox('soxi', flag, file)?.trim());
      if (facts.includes(undefined)) {
        process.stdout.write('  skipped: sox is not installed (Debian: apt-get install sox)\n');
        this.skip();
      }
      const [channels, rate, bits, seconds] = facts.map(Number);
      expect([channels, rate, bits]).to.deep.equal([1, 22_050, 16]);
      expect(seconds).to.be.within(4, 15);
      const stat = sox('sox', file, '-n', 'stat') ?? '';
      const peak = Number(/Maximum amplitude:\s+([\d.]+)/.exec(stat)?.[1]);
      const loudness = Number(/RMS\s+amplitude:\s+([\d.]+)/.exec(stat)?.[1]);
      expect(peak).to.be.within(0.1, 0.999);
      expect(loudness).to.be.greaterThan(0.01);
    });
  }
});
