import { createHash } from 'node:crypto';
import type { Now } from './clock.js';
import { execute } from './engine.js';
import type { Engine, TransactionBody } from './engine.js';
import * as queries from './queries/outbox.js';

const DAY_MS = 86_400_000;
/** How long the server tries to deliver an event. */
const TRIED_MS = 3 * DAY_MS;
/** How long an event is kept after it was delivered or given up, so that the operator can view it and send it again. */
const KEPT_MS = 7 * DAY_MS;
/** The maximum number of events stored for all targets together: about 100 MB. */
const MAX_KEPT = 200_000;
/** Longer than a delivery attempt can take. */
const LEASE_MS = 30_000;
const MAX_ANSWER_CHARACTERS = 300;

/**
 * An event for the operator. `subject` is the id of its payment, if it is about one; the events of a subject are delivered in order. `once`
 * distinguishes two events of the same kind and subject. An event that several servers write is stored once.
 */
export type LedgerEvent = {
  kind: string;
  subject?: string;
  once: string;
  facts: Readonly<Record<string, string | number | boolean | null>>;
};

/** An event to be delivered to one target. Events are ordered by `seq`. Times are milliseconds since 1970. */
export type OutboxEvent = Readonly<ReturnType<typeof eventOf>>;

/** The result of a delivery attempt. `againMs`: milliseconds until the next one; absent if the event was delivered. */
export type Attempted = { seq: number; attempt: number; answer: string; againMs?: number };

/** `listens`: whether there are targets; without any, no event is written. `onTold`: called when an event is written, before its commit. */
export type Audience = { listens: boolean; onTold: () => void };

/** The parts of a connection that are needed to write an event. */
export type Telling = { readonly audience: Audience; readonly now: Now };

/** Writes an event, in the same transaction as the change that it reports. */
export function* tell(
  { audience, now }: Telling,
  { kind, subject = '', once, facts }: LedgerEvent,
): TransactionBody<void> {
  if (!audience.listens) return;
  const id = `msg_${createHash('sha256').update(`${kind}\n${subject}\n${once}`).digest('hex').slice(0, 32)}`;
  // Events that are not about a payment may be delivered in any order, so each has its own id as its subject.
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

/** Whether the payment was already known to be paid before a transition. If not, the transition writes the event `sale.paid`. */
export function* wasSettled({ audience }: Telling, id: string): TransactionBody<boolean> {
  if (!audience.listens) return false;
  const [row] = yield* execute(queries.paymentFacts({ id }));
  return row?.state === 'owed' || row?.state === 'delivered';
}

/** The events to be delivered, and their targets. All functions reject with a LedgerFault if the database fails. */
export function outboxOf({ engine, now, audience }: Telling & { readonly engine: Engine }) {
  return {
    /** Writes an event that is not about a payment, such as a fee payer running low. */
    tell: async (event: LedgerEvent): Promise<void> => {
      if (audience.listens) await engine.write(() => tell({ audience, now }, event));
    },
    /** Replaces the permanent targets with those of this server's settings. `kinds`: the kinds of events each target gets; empty: all. */
    setTargets: (targets: readonly { name: string; kinds: readonly string[] }[]): Promise<void> =>
      engine.write(() => setTargets(targets)),
    /** Adds a temporary target, or extends its time. @param until ms since 1970 */
    holdTarget: async (name: string, kinds: readonly string[], until: number): Promise<void> => {
      await engine.write(() => execute(queries.keepTarget({ name, kinds: kindsText(kinds), until })));
      audience.listens = true;
    },
    /** Removes a target and its events. */
    dropTarget: async (target: string): Promise<void> => {
      await engine.write(() => dropTarget(target));
    },
    /** Reads the targets again, because other servers may have changed them. */
    refreshTargets: async (): Promise<void> => {
      audience.listens = (await engine.read(() => execute(queries.targets({ now: now() })))).length > 0;
    },
    /** Sets the function that is called whenever an event is written. */
    onTold: (listener: () => void): void => void (audience.onTold = listener),
    /**
     * Leases events that are due, oldest first. Only the first undelivered event of each payment is leased,
     * so that its events arrive in order.
     */
    takeEvents: async (target: string, limit: number): Promise<OutboxEvent[]> => {
      const waiting = await engine.read(() => execute(queries.waits({ target, now: now() })));
      if (waiting.length === 0) return [];
      const taken = { target, limit, leaseMs: LEASE_MS };
      const rows = await engine.write(() => execute(queries.takeEvents({ ...taken, now: now() })));
      return rows.map(eventOf).sort((a, b) => a.seq - b.seq);
    },
    /** Records the results of attempts. Ignores an attempt if another server has leased its event in the meantime. */
    attempted: (attempts: readonly Attempted[]): Promise<void> => engine.write(() => record(attempts, now)),
    /** Marks an event to be sent again. @returns false if it is no longer stored */
    resendEvent: async (seq: number): Promise<boolean> => {
      const [row] = await engine.write(() =>
        execute(queries.resendEvent({ seq, lastMs: TRIED_MS, now: now() })),
      );
      audience.onTold();
      return row !== undefined;
    },
    /**
     * Gives up on old events, and deletes older ones.
     * @returns how many were given up, and how many undelivered ones were deleted because too many were stored
     */
    sweepEvents: (): Promise<{ givenUp: number; dropped: number }> => engine.write(() => sweep(now)),
    /** At most 1 000 events, newest first; with `waiting`, only the undelivered ones, oldest first. */
    events: async (limit: number, { waiting = false } = {}): Promise<OutboxEvent[]> => {
      const page = { limit: Math.min(limit, 1_000), waitingFirst: waiting };
      return (await engine.read(() => execute(queries.newestEvents(page)))).map(eventOf);
    },
    /** For each target: the number of undelivered events, and when the oldest was created. */
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
    /** The event's id, the same for all targets and attempts so that a receiver can detect duplicates. */
    id: row.id,
    target: row.target,
    kind: row.kind,
    /** The id of the event's payment, or the event's own id if it is not about a payment. */
    subject: row.subject,
    facts: JSON.parse(row.facts) as LedgerEvent['facts'],
    createdAt: row.created_at,
    /** The number of delivery attempts. */
    attempts: Number(row.attempts),
    nextAttemptAt: row.next_attempt_at,
    /** When the event was delivered, or delivery was given up; null before that. */
    doneAt: row.done_at,
    outcome: row.outcome as 'told' | 'given up' | null,
    /** The target's last answer. */
    answer: row.answer,
  };
}
