import { register } from 'node:module';

/** Loaded by `--import` into our server: it runs without log lines of sales, metrics, traces and reports of the ledger. */
register('./unobserved-modules.js', import.meta.url);
