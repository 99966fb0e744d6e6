import { randomBytes } from 'node:crypto';
import type { Ledger } from '../ledger/store.js';

/** Answer keys are made with this secret from `from` on, and accepted until `until`; null means forever. In ms since 1970. */
export type AnswerSecret = { secret: string; from: number; until: number | null };

type Notes = Pick<Ledger, 'getMeta' | 'setMeta' | 'keepMeta'>;

/**
 * The note that holds the secret of a ledger until it is first changed. After that, it holds the newest
 * secret, for servers of version 1.1.0, which read no other note.
 */
const SINGLE = 'answer keys';
const ALL = 'answer secrets';
const SECRET_BYTES = 32;
/** How often servers reload the secrets. */
export const SECRETS_READ_EVERY_MS = 10_000;
/** A new secret is used once every server has read it. */
const STARTS_AFTER_MS = 3 * SECRETS_READ_EVERY_MS;
/** How long keys made with a former secret are accepted: as long as a buyer can fetch an order with a key. */
const FORMER_KEPT_MS = 30 * 24 * 60 * 60 * 1_000;

const made = (): string => randomBytes(SECRET_BYTES).toString('hex');

/** A ledger's current and upcoming secrets, oldest first. The first server to call this creates one. */
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
 * @returns that moment, and the time until which earlier keys are accepted, both in ms since 1970
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
