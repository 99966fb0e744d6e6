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
export function* samplesOf(document: Json, schema: Json, side: Side): Generator<unknown> {
  const fewestFirst = side === 'request' && requiresFields(document, schema);
  // Some schemas require what they call read-only.
  for (const skipsOneSided of [true, false])
    for (const skipNonRequired of [fewestFirst, !fewestFirst]) {
      const made = sampleOf(document, schema, { skipNonRequired, ...(skipsOneSided ? SKIPPED[side] : {}) });
      if (made !== undefined && JSON.stringify(made).length <= MAX_LENGTH[side]) yield made;
    }
}

const SKIPPED = { request: { skipReadOnly: true }, answer: { skipWriteOnly: true } };

type Chosen = { skipNonRequired: boolean; skipReadOnly?: boolean; skipWriteOnly?: boolean };

function sampleOf(document: Json, schema: Json, chosen: Chosen): unknown {
  const options = {
    ...chosen,
    maxSampleDepth: MAX_DEPTH,
    // Made by repair-sample.ts: this package's own way may take as long as a pattern likes.
    enablePatterns: false,
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
