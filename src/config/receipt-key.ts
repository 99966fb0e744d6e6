import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigFault, type SettingReader } from './setting-reader.js';

/** The file of the key, in the state folder. */
const FILE = 'receipt-key.pem';
const WANTED =
  'is not an Ed25519 private key in PEM (PKCS #8): create one with openssl genpkey -algorithm ed25519';

/** `RECEIPT_KEY`: the key that signs receipts. @returns undefined if the server is to use that of its state folder */
export function readReceiptKey(read: SettingReader): KeyObject | undefined {
  const pem = read.text('RECEIPT_KEY');
  if (pem === undefined) return undefined;
  const key = parsed(pem);
  if (!key) read.fault(`RECEIPT_KEY: it ${WANTED}`);
  return key;
}

/** The key in the state folder. The server creates it when it first starts. @throws ConfigFault */
export function keptReceiptKey(stateDir: string): KeyObject {
  const file = join(stateDir, FILE);
  const key = parsed(read(file) ?? made(stateDir, file));
  if (key) return key;
  throw new ConfigFault(
    `STATE_DIR: ${file} ${WANTED} > ${file}, or remove it; the server then creates a new key at startup`,
  );
}

function parsed(pem: string): KeyObject | undefined {
  try {
    const key = createPrivateKey(pem);
    return key.asymmetricKeyType === 'ed25519' ? key : undefined;
  } catch {
    return undefined;
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ConfigFault(`STATE_DIR: ${file} cannot be read: ${(error as Error).message}`);
  }
}

/**
 * Reads the key in the file, which is always complete. If two processes create the file at the same time, the
 * key of the first one wins.
 */
function made(stateDir: string, file: string): string {
  const draft = `${file}.${process.pid}`;
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    const { privateKey } = generateKeyPairSync('ed25519');
    writeFileSync(draft, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flush: true });
    try {
      linkSync(draft, file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigFault(`STATE_DIR: ${file} cannot be written: ${(error as Error).message}`);
  } finally {
    rmSync(draft, { force: true });
  }
}
