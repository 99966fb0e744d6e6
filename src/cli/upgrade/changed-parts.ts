import type { Json } from '../../contract/json.js';
import { isObject } from '../../contract/references.js';

/** Members that only human readers use; no client depends on them. */
const TEXTS = ['description', 'summary', 'example', 'examples', 'title'];

/**
 * The places of a document that were added, removed or changed, as `paths./v1/words.get.responses.409`,
 * without descriptions and examples.
 */
export type ChangedParts = { added: string[]; removed: string[]; changed: string[] };

/** Compares two versions of a document. A new part counts as one place, whatever it contains. */
export function changedParts(old: Json, now: Json): ChangedParts {
  const parts: ChangedParts = { added: [], removed: [], changed: [] };
  compare(old, now, [], parts);
  return parts;
}

function compare(old: unknown, now: unknown, at: readonly string[], parts: ChangedParts): void {
  if (!isObject(old) || !isObject(now)) {
    if (JSON.stringify(old) !== JSON.stringify(now)) parts.changed.push(at.join('.'));
    return;
  }
  for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
    // A property of a schema may have one of these names, too.
    if (TEXTS.includes(key) && at.at(-1) !== 'properties') continue;
    const place = [...at, key];
    if (!(key in now)) parts.removed.push(place.join('.'));
    else if (!(key in old)) parts.added.push(place.join('.'));
    else compare(old[key], now[key], place, parts);
  }
}
