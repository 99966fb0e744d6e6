import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const READY_MS = 60_000;

/**
 * Starts a second shop on the chain of the one in STATE_DIR.
 * @param {string} facilitatorUrl
 * @param {Record<string, string>} settings of its own
 */
export async function openShop(facilitatorUrl, settings = {}) {
  const stateDir = mkdtempSync(join(tmpdir(), 'coinslot-catalogue-'));
  const { root = '', SERVER = 'dist/src/main.js', RPC_URL = '', STATE_DIR = '' } = process.env;
  const file = join(STATE_DIR, 'sandbox.json');
  const { payTo } = JSON.parse(readFileSync(file, 'utf8'));
  // The shop reads the address of the sandbox's market from this file.
  copyFileSync(file, join(stateDir, 'sandbox.json'));
  const child = spawn(process.execPath, [SERVER], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      NETWORK: 'sandbox',
      STATE_DIR: stateDir,
      PORT: '0',
      PAY_TO: payTo,
      SOLANA_RPC_URL: RPC_URL,
      FACILITATOR_URL: facilitatorUrl,
      LOG_LEVEL: 'info',
      ...settings,
    },
  });
  let log = '';
  const hear = chunk => (log += chunk);
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const close = async () => {
    if (child.exitCode === null) {
      child.kill();
      await once(child, 'exit');
    }
    rmSync(stateDir, { recursive: true, force: true });
  };
  await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`the shop does not start: ${log}`)), READY_MS);
    const look = () => {
      if (!log.includes('ready to be paid')) return;
      clearTimeout(late);
      resolve();
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('exit', () => reject(new Error(`the shop has ended: ${log}`)));
  });
  const [, url] = /ready to be paid at (http:[^\s"]+)/.exec(log) ?? [];
  return { url, log: () => log, close };
}
