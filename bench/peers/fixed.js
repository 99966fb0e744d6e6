import { readFileSync } from 'node:fs';
import process from 'node:process';

/**
 * Answers that are known beforehand, byte for byte what our server sends: the limit of what any server can reach.
 * @typedef {{ method: string, path: string, status: number, headers: string[], body: string }} Fixed headers flat, body in base64
 */

export const port = Number(process.env.PORT);
/** @type {Fixed[]} */
const listed = JSON.parse(readFileSync(process.env.FIXED_FILE, 'utf8'));

export const fixed = listed.map(({ body, ...rest }) => ({ ...rest, body: Buffer.from(body, 'base64') }));
