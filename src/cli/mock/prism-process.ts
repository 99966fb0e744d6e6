import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { installedProgram } from '../installed-program.js';

export const PRISM_PACKAGE = '@stoplight/prism-cli';
const START_DEADLINE_MS = 60_000;
const MAX_OUTPUT = 64 * 1024;

/** Prism can't be started. `message` says why, and what to do. */
export class PrismFault extends Error {}

export type PrismProcess = { url: string; ended: Promise<string>; stop(): void };

/** The path of Prism: installed in the folder of a shop or one above it, or among the tools of Coinslot's own repository. */
export function findPrism(folder: string): string | undefined {
  return (
    installedProgram(folder, PRISM_PACKAGE, 'prism') ??
    installedProgram(join(folder, 'contract-tests', 'tools'), PRISM_PACKAGE, 'prism')
  );
}

/**
 * Starts `prism mock` on a free port of this machine.
 * @param document the path of the OpenAPI document
 * @throws PrismFault
 */
export async function startPrism(program: string, document: string): Promise<PrismProcess> {
  const where = ['--host', '127.0.0.1', '--port', '0', '--multiprocess', 'false'];
  const child = spawn(process.execPath, [program, 'mock', document, ...where], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stop = (): void => void child.kill('SIGKILL');
  let output = '';
  const ended = new Promise<string>(resolve => {
    child.once('error', error => resolve(error.message));
    child.once('exit', () => resolve(output.trim()));
  });
  const listening = urlOf(child, text => (output = (output + text).slice(-MAX_OUTPUT)));
  const late = sleep(START_DEADLINE_MS, undefined, { ref: false });
  const url = await Promise.race([listening, ended.then(() => undefined), late]);
  if (url !== undefined) return { url, ended, stop };
  stop();
  throw new PrismFault(`Prism did not start: ${output.trim() || 'it printed nothing'}`);
}

/** Waits for the URL in the output. Keeps reading afterwards, because a full pipe would block Prism. */
function urlOf({ stdout, stderr }: ChildProcess, read: (text: string) => void): Promise<string> {
  return new Promise(resolve => {
    let seen = '';
    const take = (chunk: Buffer): void => {
      read(chunk.toString());
      seen = (seen + chunk.toString()).slice(-MAX_OUTPUT);
      const url = /listening on (http:\/\/[\d.:]+)/.exec(seen)?.[1];
      if (url !== undefined) resolve(url);
    };
    stdout?.on('data', take);
    stderr?.on('data', take);
  });
}
