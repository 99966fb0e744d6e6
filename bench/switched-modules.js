/** Replacements for the modules that log, count and trace, by the end of their URL. Each calls the real module only in turns that are observed. */
const STANDINS = {
  '/dist/src/observe/create-observer.js': `
    import { createObserver as create } from './create-observer.js?itself';
    import { UNOBSERVED } from './observer.js';
    const { turn } = globalThis;
    export function createObserver(...how) {
      const observer = create(...how);
      const now = () => (turn.observed ? observer : UNOBSERVED);
      return {
        tell(event) {
          if (event.kind === 'answered') turn.calls += 1;
          now().tell(event);
        },
        unpaid(operation) {
          turn.calls += 1;
          now().unpaid(operation);
        },
        committed: ms => now().committed(ms),
        step: (step, call, work) => now().step(step, call, work),
        call: (call, work) => now().call(call, work),
      };
    }`,
  '/dist/src/ledger/watched-engine.js': `
    import { watched as watch } from './watched-engine.js?itself';
    const { turn } = globalThis;
    export function watched(engine, told) {
      const observed = watch(engine, told);
      const now = () => (turn.observed ? observed : engine);
      return {
        dialect: engine.dialect,
        owner: engine.owner,
        show: (kind, use) => engine.show(kind, use),
        read: operation => now().read(operation),
        write: (operation, bytes) => now().write(operation, bytes),
        transact: work => now().transact(work),
        close: () => engine.close(),
      };
    }`,
  '/dist/src/net/trace.js': `
    import * as itself from './trace.js?itself';
    const { turn } = globalThis;
    export const traced = (name, attributes, work) => (turn.observed ? itself.traced(name, attributes, work) : work());
    export const tracedFrom = (headers, name, attributes, work) =>
      turn.observed ? itself.tracedFrom(headers, name, attributes, work) : work();
    export const tracedRequest = (method, service, work) =>
      turn.observed ? itself.tracedRequest(method, service, work) : work();
    export const passTraceOn = headers => (turn.observed ? itself.passTraceOn(headers) : headers);`,
};

/** Replaces these modules while they are loaded (https://nodejs.org/docs/latest-v20.x/api/module.html#customization-hooks). */
export function load(url, context, next) {
  const found = Object.entries(STANDINS).find(([end]) => url.endsWith(end));
  return found ? { format: 'module', source: found[1], shortCircuit: true } : next(url, context);
}
