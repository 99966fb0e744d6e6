import { randomBytes } from 'node:crypto';
import type { Ledger } from '../ledger/store.js';

/**
 * Keys of answers are made with this secret from `from` on, and accepted until `until`; null means without
 * end. In ms since 1970.
 */
export type AnswerSecret = { secret: string; from: number; until: number | null };

type Notes = Pick<Ledger, 'getMeta' | 'setMeta' | 'keepMeta'>;

/**
 * The secret of a ledger where it was never changed, and the newest one for servers of 1.1.0, which read no
 * other note.
 */
const SINGLE = 'answer keys';
const ALL = 'answer secrets';
const SECRET_BYTES = 32;
/** How often servers reload the secrets. */
export const SECRETS_READ_EVERY_MS = 10_000;
/** A new secret is used once every server has read it. */
const STARTS_AFTER_MS = 3 * SECRETS_READ_EVERY_MS;
/** How long a buyer's key can fetch an order. */
const FORMER_KEPT_MS = 30 * 24 * 60 * 60 * 1_000;

const made = (): string => randomBytes(SECRET_BYTES).toString('hex');

/** The present and coming secrets of a ledger, oldest first. The first server makes one. */
export async function readSecrets(notes: Notes, now: number): Promise<AnswerSecret[]> {
  const text = await notes.getMeta(ALL);
  if (text !== undefined)
    return (JSON.parse(text) as AnswerSecret[]).filter(({ until }) => until === null || until > now);
  const single = (await notes.getMeta(SINGLE)) ?? (await notes.keepMeta(SINGLE, made()));
  return [{ secret: single, from: 0, until: null }];
}

/**
 * Adds a secret to a ledger while servers run. All of them use it for new keys from the same moment on.
 * @param leaked whether the former secrets are void from that moment on
 * @returns that moment, and how long earlier keys are accepted, both in ms since 1970
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
