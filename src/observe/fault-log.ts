import type { Log } from '../net/log.js';
import type { Event, Listener } from './observer.js';

/** In ms: how often a continuing fault is logged again, and how long a part must work without failures to count as recovered. */
const REMIND_MS = 60_000;
const QUIET_MS = 1_000;

const LEDGER = 'the ledger';

type Fault = { since: number; last: number; failures: number; mentionedAt: number };

export type FaultLog = Listener & {
  /**
   * Records that the ledger has committed a write, so it works again. A successful read does not prove this, because reads work even on a full disk.
   */
  committed: () => void;
  failing(): string[];
};

/**
 * Logs when a part of the server begins to fail, when it has recovered, and, once a minute in between, the
 * number of failures. The parts are the ledger, each facilitator and each backend; their names come from the
 * configuration and the contract, so they are few.
 */
export function faultLog(log: Log, now: () => number = Date.now): FaultLog {
  const faults = new Map<string, Fault>();

  function failed(part: string, why: string): void {
    const at = now();
    const fault = faults.get(part);
    if (!fault) {
      faults.set(part, { since: at, last: at, failures: 1, mentionedAt: at });
      return log.error({ part, why }, `${part} fails: ${why}`);
    }
    fault.last = at;
    fault.failures += 1;
    if (at - fault.mentionedAt < REMIND_MS) return;
    fault.mentionedAt = at;
    const { failures, since } = fault;
    const seconds = secondsOf(at - since);
    log.error(
      { part, why, failures, seconds },
      `${part} is still failing, ${failures} times in ${seconds} s: ${why}`,
    );
  }

  function worked(part: string): void {
    const fault = faults.get(part);
    if (!fault || now() - fault.last < QUIET_MS) return;
    faults.delete(part);
    const { failures, since } = fault;
    const seconds = secondsOf(now() - since);
    log.info({ part, failures, seconds }, `${part} is back after ${seconds} s (${failures} failures)`);
  }

  return {
    hear(event: Event) {
      const told = partOf(event);
      if (told === undefined) return;
      if (told.why !== undefined) failed(told.part, told.why);
      else if (faults.size > 0) worked(told.part);
    },
    committed: () => {
      if (faults.size > 0) worked(LEDGER);
    },
    failing: () => [...faults.keys()],
  };
}

/** The part that an event is about, and why it failed, if it did. */
function partOf(event: Event): { part: string; why?: string | undefined } | undefined {
  switch (event.kind) {
    case 'ledger':
      return { part: LEDGER, why: event.failed };
    case 'facilitator': {
      const { facilitator, result, why = 'no usable answer' } = event;
      return { part: `facilitator ${facilitator}`, why: result === 'failed' ? why : undefined };
    }
    case 'upstream': {
      const { upstream, result, why = 'no usable answer' } = event;
      if (result === 'invalid' || result === 'cancelled') return undefined;
      return { part: `backend ${upstream}`, why: result === 'failed' ? why : undefined };
    }
    default:
      return undefined;
  }
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.round(ms / 1000));
}
