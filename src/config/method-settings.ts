import { randomBytes } from 'node:crypto';
import type { SettingReader } from './setting-reader.js';

const METHODS = ['x402', 'mpp'];
const MIN_SECRET = 32;
const SECRET_BYTES = 32;

/** The secrets of MPP's challenges: the first signs them, all verify them. */
export type MppConfig = { secrets: readonly [string, ...string[]] };

/** `METHODS` and `MPP_SECRET`. @returns undefined if the shop does not accept MPP */
export function readMpp(read: SettingReader, isSandbox: boolean): MppConfig | undefined {
  const names = (read.text('METHODS') ?? 'x402').split(',').map(name => name.trim());
  for (const name of names)
    if (!METHODS.includes(name)) read.fault(`METHODS: '${name}' is not one of ${METHODS.join(', ')}`);
  if (names[0] !== 'x402') read.fault('METHODS: must begin with x402, which every shop accepts');
  const text = read.text('MPP_SECRET') ?? '';
  if (!names.includes('mpp')) return undefined;
  const [first, ...others] = text.split(/[\s,]+/).filter(each => each !== '');
  for (const secret of [first, ...others])
    if (secret !== undefined && secret.length < MIN_SECRET)
      read.fault(`MPP_SECRET: each secret must have at least ${MIN_SECRET} characters`);
  if (first !== undefined) return { secrets: [first, ...others] };
  if (!isSandbox)
    read.demand(
      undefined,
      'MPP_SECRET',
      'the secret that signs the challenges of mpp, which METHODS names; create one with openssl rand -hex 32',
    );
  return { secrets: [randomBytes(SECRET_BYTES).toString('hex')] };
}
