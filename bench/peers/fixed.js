import { readFileSync } from 'node:fs';
import process from 'node:process';

/**
 * Fixed answers, byte for byte those of our server. A server that only sends these shows the best possible figure.
 * @typedef {{ method: string, path: string, status: number, headers: string[], body: string }} Fixed `headers`: names and values, alternating;
 * `body`: base64
 */

export const port = Number(process.env.PORT);
/** @type {Fixed[]} */
const listed = JSON.parse(readFileSync(process.env.FIXED_FILE, 'utf8'));

export const fixed = listed.map(({ body, ...rest }) => ({ ...rest, body: Buffer.from(body, 'base64') }));
