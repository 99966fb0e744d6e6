/** What stands in for the modules that observe, by the end of their address. */
const STANDINS = {
  '/dist/src/observe/create-observer.js': `
    import { UNOBSERVED } from './observer.js';
    export const createObserver = () => UNOBSERVED;`,
  '/dist/src/observe/ledger-watch.js': 'export const ledgerWatch = () => undefined;',
  '/dist/src/net/trace.js': `
    export const traced = (name, attributes, work) => work();
    export const tracedFrom = (headers, name, attributes, work) => work();
    export const tracedRequest = (method, service, work) => work();
    export const passTraceOn = headers => headers;`,
};

/** Replaces these modules while they are loaded (https://nodejs.org/docs/latest-v20.x/api/module.html#customization-hooks). */
export function load(url, context, next) {
  const found = Object.entries(STANDINS).find(([end]) => url.endsWith(end));
  return found ? { format: 'module', source: found[1], shortCircuit: true } : next(url, context);
}
