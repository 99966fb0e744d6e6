import { sample } from 'openapi-sampler';
import type { Json } from '../json.js';
import { fieldsOf, ReferenceFault } from '../references.js';

/** What a value is an example of: what a buyer sends, or what is sold. */
export type Side = 'request' | 'answer';

/** A schema may contain itself, and a part of it many parts. */
const MAX_DEPTH = 6;
/** Longer examples tell nobody more; that of a request travels in the header of its challenge. */
const MAX_LENGTH = { request: 1_000, answer: 4_000 };

/**
 * Values made from a schema, the better ones first: of a request, what it must have, and of an answer, all that it can have. The schema
 * may still refuse them. No value, if there is none of a size that anybody would read.
 */
export function samplesOf(document: Json, schema: Json, side: Side): unknown[] {
  const fewest = sampleOf(document, schema, side, true);
  const all = sampleOf(document, schema, side, false);
  const found = side === 'request' && requiresFields(document, schema) ? [fewest, all] : [all, fewest];
  return found.filter(each => each !== undefined && JSON.stringify(each).length <= MAX_LENGTH[side]);
}

function sampleOf(document: Json, schema: Json, side: Side, skipNonRequired: boolean): unknown {
  const options = {
    skipNonRequired,
    skipReadOnly: side === 'request',
    skipWriteOnly: side === 'answer',
    maxSampleDepth: MAX_DEPTH,
    enablePatterns: true,
    quiet: true,
  };
  try {
    return sample(schema, options, document);
  } catch {
    // A schema that it can't read has no example, and its own fault, if it has one, is found elsewhere.
    return undefined;
  }
}

function requiresFields(document: Json, schema: Json): boolean {
  try {
    return (fieldsOf(document, schema)?.required ?? []).length > 0;
  } catch (error) {
    if (error instanceof ReferenceFault) return false;
    throw error;
  }
}
