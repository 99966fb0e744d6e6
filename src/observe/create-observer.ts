import { traced, tracedFrom } from '../net/trace.js';
import type { Event, Listener, Observer, Step } from './observer.js';

/** A listener of an observer. */
export type Listeners = {
  events: readonly Listener[];
  /** Called for every unpaid call; there may be thousands a second. */
  unpaid: (operation: string) => void;
  /** Called for every write to the ledger, with the time that it took, in ms. */
  committed: readonly ((ms: number) => void)[];
  /** Called with the time that a step took, in ms. */
  measured: (step: Step, operation: string, ms: number) => void;
};

/** The observer of a server. An exception in a listener is a bug, and must not cost a buyer a paid answer. */
export function createObserver(
  { events, unpaid, committed, measured }: Listeners,
  onFault: (error: unknown) => void,
): Observer {
  return {
    unpaid,
    committed(ms) {
      try {
        for (const listener of committed) listener(ms);
      } catch (error) {
        onFault(error);
      }
    },
    tell(event: Event) {
      for (const listener of events) {
        try {
          listener.hear(event);
        } catch (error) {
          onFault(error);
        }
      }
    },
    step(step, { operation: { id: operation }, requestId, spent }, work) {
      const began = performance.now();
      const done = (): void => {
        const ms = performance.now() - began;
        if (spent) spent[step] = (spent[step] ?? 0) + ms;
        measured(step, operation, ms);
      };
      const result = traced(step, () => attributesOf(operation, requestId), work);
      // Added before the caller waits for the result, so that `spent` is filled in when the caller continues.
      result.then(done, done).catch(onFault);
      return result;
    },
    call({ operation, requestId, transport, headers }, work) {
      const attributes = (): Record<string, string> => ({
        ...attributesOf(operation, requestId),
        'coinslot.transport': transport,
      });
      return tracedFrom(headers, operation, attributes, work);
    },
  };
}

function attributesOf(operation: string, requestId: string | undefined): Record<string, string> {
  return {
    'coinslot.operation': operation,
    ...(requestId === undefined ? {} : { 'coinslot.request_id': requestId }),
  };
}
