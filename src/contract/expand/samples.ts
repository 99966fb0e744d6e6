import { sample } from 'openapi-sampler';
import type { Json } from '../json.js';
import { fieldsOf, ReferenceFault } from '../references.js';

/** Where the example is used: in a buyer's request, or in the sold answer. */
export type Side = 'request' | 'answer';

/** Limits the size of a sample: a schema may contain itself or have many parts. */
const MAX_DEPTH = 6;
/** The maximum length of an example. Longer ones explain no more, and the example of a request is sent in the header of the challenge. */
const MAX_LENGTH = { request: 1_000, answer: 4_000 };

/**
 * Values made from a schema, the better ones first: for a request, those with only the required members; for an answer, those with all.
 * The schema may still refuse them. Empty if none has a readable size.
 */
export function* samplesOf(document: Json, schema: Json, side: Side): Generator<unknown> {
  const fewestFirst = side === 'request' && requiresFields(document, schema);
  // Some schemas require members that they mark as read-only.
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
    // Strings for patterns are made by repair-sample.ts: the package's own code may take unbounded time on a
    // pattern.
    enablePatterns: false,
    quiet: true,
  };
  try {
    return sample(schema, options, document);
  } catch {
    // A schema that the package can't read gets no example. Faults of the schema are reported elsewhere.
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
