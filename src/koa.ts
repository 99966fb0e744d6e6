import type * as RouterPackage from '@koa/router';
import type Application from 'koa';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Koa and its router as CommonJS: an `import` would read their modules twice at every start. */
export const Koa = require('koa') as typeof Application;
export const Router = require('@koa/router') as typeof RouterPackage.default;

export type Koa = Application;
export type Router = RouterPackage.default;
