import { compilerOf } from '../ajv.js';
import { bareType, bodyKindOf, requestTypesOf, type BodyKind } from '../body-types.js';
import type { Json } from '../json.js';
import { PatternFault } from '../pattern.js';
import { kindOf } from '../read-answers.js';
import { exampleOf, isOfEveryOperation } from '../read-parameters.js';
import { isObject, keysOf, MAX_HOPS, objectOf, ReferenceFault, resolved, targetOf } from '../references.js';
import { givenOf, pricedOf, type Draft, type DraftOperation } from './draft.js';
import { soldOf } from './payment-parts.js';
import { repaired } from './repair-sample.js';
import { samplesOf, type Side } from './samples.js';

const GENERATED = 'generated from its schema';
/** Marks a schema whose example was generated. */
const MARK = 'x-generated-example';

/** The parameter or media type that has an example, and its place. `fits`: whether a value can be sent, whatever the schema allows. */
type Holder = { holder: Json; at: string[]; side: Side; fits: (value: unknown) => boolean };

/** A sample that the schema allows, made from one that it may reject; or undefined. */
type Repair = (schema: Json, sample: unknown) => unknown;

/** Generates the examples that paid operations lack: of required parameters, of the body, and of the answer. */
export function addExamples(draft: Draft): void {
  const lacking = [...pricedOf(draft), ...givenOf(draft)].flatMap(priced =>
    holdersOf(draft, priced).filter(each => lacks(draft, each)),
  );
  if (lacking.length === 0) return;
  const repair = repairOf(draft);
  for (const each of lacking) addExample(draft, each, repair);
}

function addExample({ document, added }: Draft, { holder, at, side, fits }: Holder, repair: Repair): void {
  // One component may be the parameter of many operations.
  if ('example' in holder) return;
  const schema = holder.schema as Json;
  for (const made of samplesOf(document, schema, side)) {
    const sample = repair(schema, made);
    if (sample === undefined || !fits(sample)) continue;
    holder.example = sample;
    holder[MARK] = true;
    added.push({ path: [...at, 'example'], why: GENERATED });
    return;
  }
}

/** Replaces values that the schema refuses. A schema that can't be compiled gets no example; its fault is reported elsewhere. */
function repairOf({ document }: Draft): Repair {
  const compiled = compilerOf(document);
  return (schema, sample) => {
    const validate = compiled(schema);
    // The faulty pattern is reported, rather than the missing example.
    if (validate instanceof PatternFault) return sample;
    return validate instanceof Error ? undefined : repaired(sample, validate);
  };
}

function lacks({ document }: Draft, { holder }: Holder): boolean {
  if (!isObject(holder.schema)) return false;
  try {
    return exampleOf(document, holder) === undefined;
  } catch (error) {
    if (error instanceof ReferenceFault) return false;
    throw error;
  }
}

function holdersOf(draft: Draft, priced: DraftOperation): Holder[] {
  const { at, operation } = priced;
  const { content: taken } = objectOf(operation.requestBody);
  const bodies = requestTypesOf(taken).flatMap((type): Holder[] => {
    const kind = bodyKindOf(bareType(type));
    // Examples of binary data are created where they are needed.
    if (kind === 'binary') return [];
    const body = objectOf(objectOf(taken)[type]);
    const place = [...at, 'requestBody', 'content', type];
    return [{ holder: body, at: place, side: 'request', fits: FITS[kind] }];
  });
  const answers = soldOf(operation).flatMap(([status, answer]) =>
    Object.entries(objectOf(resolved(draft.document, answer).content)).map(
      ([type, media]) => [status, type, media] as const,
    ),
  );
  return [
    ...parametersOf(draft, priced),
    ...bodies,
    ...answers
      .filter(([, type]) => kindOf(type) !== 'binary')
      .map(([status, type, media]): Holder => ({
        holder: objectOf(media),
        at: [...at, 'responses', status, 'content', type],
        side: 'answer',
        fits: value => value !== null,
      })),
  ];
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const FITS: Record<BodyKind, (value: unknown) => boolean> = {
  json: value => value !== undefined && value !== null,
  ...{ form: isObject, multipart: isObject },
  ...{ text: isText, binary: isText },
};

/** The parameters that a call must have. */
function parametersOf({ document }: Draft, { path, at, item, operation }: DraftOperation): Holder[] {
  const lists: [string[], unknown][] = [
    [['paths', path, 'parameters'], item.parameters],
    [[...at, 'parameters'], operation.parameters],
  ];
  return lists.flatMap(([place, list]) =>
    (Array.isArray(list) ? (list as unknown[]) : []).flatMap((each, index): Holder[] => {
      const { holder, at: own } = holderOf(document, each, [...place, String(index)]);
      const called = holder.in !== 'cookie' && !isOfEveryOperation(holder) && holder.required === true;
      return called ? [{ holder, at: own, side: 'request', fits: isSent }] : [];
    }),
  );
}

/** Whether a string in a path or a query can be read as this value. */
function isSent(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : typeof value !== 'object' && value !== '';
}

/** The object itself, not a copy, if references lead to it; undefined for a broken reference, which is reported elsewhere. */
function holderOf(document: Json, value: unknown, at: string[]): { holder: Json; at: string[] } {
  let found = { holder: objectOf(value), at };
  try {
    for (let hops = 0; typeof found.holder.$ref === 'string' && hops < MAX_HOPS; hops++)
      found = { holder: targetOf(document, found.holder.$ref), at: keysOf(found.holder.$ref) };
    return found;
  } catch (error) {
    if (error instanceof ReferenceFault) return { holder: {}, at };
    throw error;
  }
}
