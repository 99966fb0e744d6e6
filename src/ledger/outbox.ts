import { createHash } from 'node:crypto';
import type { Now } from './clock.js';
import { execute } from './engine.js';
import type { Engine, TransactionBody } from './engine.js';
import * as queries from './queries/outbox.js';

const DAY_MS = 86_400_000;
/** How long delivery of an event is tried. */
const TRIED_MS = 3 * DAY_MS;
/** How long a finished event is kept, so that it can be viewed and sent again. */
const KEPT_MS = 7 * DAY_MS;
/** Of all targets together. About 100 MB. */
const MAX_KEPT = 200_000;
/** Longer than an attempt may take. */
const LEASE_MS = 30_000;
const MAX_ANSWER_CHARACTERS = 300;

/**
 * An event for the operator. `subject` is the id of its payment, if it has one: events of a subject stay in order. `once` distinguishes
 * two events of the same kind and subject; the same event is written once, even by several servers.
 */
export type LedgerEvent = {
  kind: string;
  subject?: string;
  once: string;
  facts: Readonly<Record<string, string | number | boolean | null>>;
};

/** An event on its way to one target. `seq` orders them. Times are milliseconds since 1970. */
export type OutboxEvent = Readonly<ReturnType<typeof eventOf>>;

/** How an attempt went. `againMs`: when the next one is, from now; absent if the target has the event. */
export type Attempted = { seq: number; attempt: number; answer: string; againMs?: number };

/** Whether there are any targets: without targets nothing is written. `onTold` is called before the commit of written events. */
export type Audience = { listens: boolean; onTold: () => void };

/** The parts needed to write an event. */
export type Telling = { readonly audience: Audience; readonly now: Now };

/** Writes an event in the transaction of the change that it tells of. */
export function* tell(
  { audience, now }: Telling,
  { kind, subject = '', once, facts }: LedgerEvent,
): TransactionBody<void> {
  if (!audience.listens) return;
  const id = `msg_${createHash('sha256').update(`${kind}\n${subject}\n${once}`).digest('hex').slice(0, 32)}`;
  // Events without a payment need no order among themselves, so each is its own subject.
  const event = { id, kind, subject: subject || id, facts: JSON.stringify(facts) };
  yield* execute(queries.tell({ ...event, lastMs: TRIED_MS, now: now() }));
  audience.onTold();
}

/** Writes an event about a payment, with the data of its row. */
export function* tellOf(
  telling: Telling,
  { kind, id, once = '' }: { kind: string; id: string; once?: string },
  more: LedgerEvent['facts'] = {},
): TransactionBody<void> {
  if (!telling.audience.listens) return;
  const [row] = yield* execute(queries.paymentFacts({ id }));
  if (!row) return;
  const { operation, payer, amount, network, settlement } = row;
  const facts = { payment: id, operation, payer, amount, network, settlement, ...more };
  yield* tell(telling, { kind, subject: id, once, facts });
}

/** Whether the money of a payment is known to have moved. Read before a transition, because that may create an event. */
export function* wasSettled({ audience }: Telling, id: string): TransactionBody<boolean> {
  if (!audience.listens) return false;
  const [row] = yield* execute(queries.paymentFacts({ id }));
  return row?.state === 'owed' || row?.state === 'delivered';
}

/** The events that wait for delivery, and their targets. All functions reject with a LedgerFault if the database fails. */
export function outboxOf({ engine, now, audience }: Telling & { readonly engine: Engine }) {
  return {
    /** Writes an event that is not about a payment, such as a fee payer that runs low. */
    tell: async (event: LedgerEvent): Promise<void> => {
      if (audience.listens) await engine.write(() => tell({ audience, now }, event));
    },
    /** Replaces the lasting targets by those of this server's settings. `kinds`: the events that each gets; empty: all. */
    setTargets: (targets: readonly { name: string; kinds: readonly string[] }[]): Promise<void> =>
      engine.write(() => setTargets(targets)),
    /** Adds a target for a while, or keeps it for longer. @param until ms since 1970 */
    holdTarget: async (name: string, kinds: readonly string[], until: number): Promise<void> => {
      await engine.write(() => execute(queries.keepTarget({ name, kinds: kindsText(kinds), until })));
      audience.listens = true;
    },
    /** Removes a target and its waiting events. */
    dropTarget: async (target: string): Promise<void> => {
      await engine.write(() => dropTarget(target));
    },
    /** Rereads the targets, which other servers may have changed. */
    refreshTargets: async (): Promise<void> => {
      audience.listens = (await engine.read(() => execute(queries.targets({ now: now() })))).length > 0;
    },
    /** Called whenever something was written for a target. */
    onTold: (listener: () => void): void => void (audience.onTold = listener),
    /** Takes events that are due, the oldest first, of each payment only the first that the target does not have. */
    takeEvents: async (target: string, limit: number): Promise<OutboxEvent[]> => {
      const waiting = await engine.read(() => execute(queries.waits({ target, now: now() })));
      if (waiting.length === 0) return [];
      const taken = { target, limit, leaseMs: LEASE_MS };
      const rows = await engine.write(() => execute(queries.takeEvents({ ...taken, now: now() })));
      return rows.map(eventOf).sort((a, b) => a.seq - b.seq);
    },
    /** Records attempts, of this server's own events only. */
    attempted: (attempts: readonly Attempted[]): Promise<void> => engine.write(() => record(attempts, now)),
    /** Has an event sent again. @returns false if it is no longer stored */
    resendEvent: async (seq: number): Promise<boolean> => {
      const [row] = await engine.write(() =>
        execute(queries.resendEvent({ seq, lastMs: TRIED_MS, now: now() })),
      );
      audience.onTold();
      return row !== undefined;
    },
    /** Ends and deletes old events. @returns how many events were given up, and how many were dropped for lack of space */
    sweepEvents: (): Promise<{ givenUp: number; dropped: number }> => engine.write(() => sweep(now)),
    /** At most 1 000: the newest first, or those that wait, oldest first. */
    events: async (limit: number, { waiting = false } = {}): Promise<OutboxEvent[]> => {
      const page = { limit: Math.min(limit, 1_000), waitingFirst: waiting };
      return (await engine.read(() => execute(queries.newestEvents(page)))).map(eventOf);
    },
    /** How many events wait for each target, and since when. */
    eventsWaiting: async (): Promise<{ target: string; events: number; since: number }[]> => {
      const rows = await engine.read(() => execute(queries.countWaiting()));
      return rows.map(({ target, events, since }) => ({
        target,
        events: Number(events),
        since: Number(since),
      }));
    },
  };
}

function* setTargets(targets: readonly { name: string; kinds: readonly string[] }[]): TransactionBody<void> {
  yield* execute(queries.dropTargets());
  for (const { name, kinds } of targets)
    yield* execute(queries.keepTarget({ name, kinds: kindsText(kinds), until: null }));
}

function* dropTarget(target: string): TransactionBody<void> {
  yield* execute(queries.dropTarget({ target }));
  yield* execute(queries.dropEventsOf({ target }));
}

function* record(attempts: readonly Attempted[], now: Now): TransactionBody<void> {
  for (const { seq, attempt, answer, againMs } of attempts) {
    const row = { seq, attempt, answer: answer.slice(0, MAX_ANSWER_CHARACTERS), now: now() };
    yield* execute(
      againMs === undefined
        ? queries.toldEvent(row)
        : queries.untoldEvent({ ...row, againMs: Math.round(againMs) }),
    );
  }
}

function* sweep(now: Now): TransactionBody<{ givenUp: number; dropped: number }> {
  const ended = yield* execute(queries.endEvents({ now: now() }));
  yield* execute(queries.forgetEvents({ keptMs: KEPT_MS, now: now() }));
  const oldest = yield* execute(queries.dropOldest({ most: MAX_KEPT }));
  return { givenUp: ended.length, dropped: oldest.filter(({ done_at }) => done_at === null).length };
}

function kindsText(kinds: readonly string[]): string {
  return kinds.length === 0 ? '' : ` ${kinds.join(' ')} `;
}

function eventOf(row: queries.EventRow) {
  return {
    seq: Number(row.seq),
    /** The same for every target and every attempt. */
    id: row.id,
    target: row.target,
    kind: row.kind,
    /** The id of its payment, or its own. */
    subject: row.subject,
    facts: JSON.parse(row.facts) as LedgerEvent['facts'],
    createdAt: row.created_at,
    /** The number of delivery attempts. */
    attempts: Number(row.attempts),
    nextAttemptAt: row.next_attempt_at,
    /** When it was delivered or given up; null while it waits. */
    doneAt: row.done_at,
    outcome: row.outcome as 'told' | 'given up' | null,
    /** The target's last answer. */
    answer: row.answer,
  };
}
