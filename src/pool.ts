import type * as Undici from 'undici';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * undici's connection pool alone: the rest of the package (fetch, WebSocket, mocks, proxies) took 80 of a start's milliseconds of
 * processor time, and nothing here uses it. As undici's own entry file does, `request` is put on what all dispatchers inherit.
 */
export const Pool = require('undici/lib/dispatcher/pool.js') as typeof Undici.Pool;
export const errors = require('undici/lib/core/errors.js') as typeof Undici.errors;

const dispatcher = require('undici/lib/dispatcher/dispatcher.js') as { prototype: object };
Object.assign(dispatcher.prototype, { request: require('undici/lib/api/api-request.js') as unknown });

export type Pool = Undici.Pool;
export type { Dispatcher } from 'undici';
