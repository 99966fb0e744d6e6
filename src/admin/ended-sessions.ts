import { LRUCache } from 'lru-cache';
import type { SharedNotes } from '../pages/session.js';

const MAX_ENDED_SESSIONS = 10_000;

/** Remembers ended sessions in memory while this listener runs, so that signing in does not need the ledger. */
export function endedSessions(): SharedNotes {
  const ended = new LRUCache<string, string>({ max: MAX_ENDED_SESSIONS });
  return { getMeta: async key => ended.get(key), setMeta: async (key, value) => void ended.set(key, value) };
}
