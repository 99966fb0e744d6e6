import { randomBytes } from 'node:crypto';
import type { Ledger } from '../ledger/store.js';

/** Keys of answers are made with it from `from` on, and taken until `until`; null: for good. In ms since 1970. */
export type AnswerSecret = { secret: string; from: number; until: number | null };

type Notes = Pick<Ledger, 'getMeta' | 'setMeta' | 'keepMeta'>;

/** The one of a ledger whose secret was never changed, and the newest for servers of 1.1.0, which know no other note. */
const SINGLE = 'answer keys';
const ALL = 'answer secrets';
const SECRET_BYTES = 32;
/** How often servers read the secrets. */
export const SECRETS_READ_EVERY_MS = 10_000;
/** A new secret is used once every server has read it. */
const STARTS_AFTER_MS = 3 * SECRETS_READ_EVERY_MS;
/** As long as an order may be picked up by the key that its buyer has. */
const FORMER_KEPT_MS = 30 * 24 * 60 * 60 * 1_000;

const made = (): string => randomBytes(SECRET_BYTES).toString('hex');

/** The secrets of a ledger that count or will, the oldest first. The first server makes one. */
export async function readSecrets(notes: Notes, now: number): Promise<AnswerSecret[]> {
  const text = await notes.getMeta(ALL);
  if (text !== undefined)
    return (JSON.parse(text) as AnswerSecret[]).filter(({ until }) => until === null || until > now);
  const single = (await notes.getMeta(SINGLE)) ?? (await notes.keepMeta(SINGLE, made()));
  return [{ secret: single, from: 0, until: null }];
}

/**
 * Gives a ledger another secret, beside running servers: all give keys of it from the same moment on.
 * @param leaked whether the former secrets count no longer than until then
 * @returns that moment, and until when keys that were given before are taken, in ms since 1970
 */
export async function changeSecret(
  notes: Notes,
  { leaked, now }: { leaked: boolean; now: number },
): Promise<{ from: number; formerUntil: number }> {
  const from = now + STARTS_AFTER_MS;
  const formerUntil = leaked ? from : from + FORMER_KEPT_MS;
  const former = (await readSecrets(notes, now)).map(each => ({
    ...each,
    until: Math.min(each.until ?? Infinity, formerUntil),
  }));
  const secret = made();
  await notes.setMeta(ALL, JSON.stringify([...former, { secret, from, until: null }]));
  await notes.setMeta(SINGLE, secret);
  return { from, formerUntil };
}
