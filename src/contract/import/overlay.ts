import type { Json } from '../json.js';
import { isObject, objectOf } from '../references.js';
import { ImportFault } from './source-document.js';

/** An overlay of the OpenAPI Overlay Specification 1.0: a document, and the changes to it. */
export type Overlay = { extends: string; actions: Action[] };
type Action = { target: string; update?: unknown; remove: boolean };

/** One step of a target path: a name or a list index; undefined for all members. */
type Step = string | number | undefined;
type Place = { parent: Json | unknown[]; key: string | number };

const MAX_ACTIONS = 20_000;
const MAX_SELECTED = 100_000;
/** The supported beginning of an RFC 9535 path. */
const STEP =
  /^(?:\.(?<word>[A-Za-z_][\w-]*)|\[(?<number>\d{1,6})\]|\['(?<single>(?:[^'\\]|\\.)*)'\]|\["(?<double>(?:[^"\\]|\\.)*)"\]|(?<all>\.\*|\[\*\]))/;

export function isOverlay(document: unknown): document is Json {
  return isObject(document) && 'overlay' in document;
}

/** @throws ImportFault */
export function readOverlay({ overlay, extends: extended, actions }: Json): Overlay {
  if (typeof overlay !== 'string' || !/^1\.\d/.test(overlay))
    throw new ImportFault("overlay must be the version of the specification, in quotes: overlay: '1.0.0'");
  if (typeof extended !== 'string' || extended.trim() === '')
    throw new ImportFault('extends must name the OpenAPI document: extends: ./api.json');
  if (!Array.isArray(actions) || actions.length > MAX_ACTIONS)
    throw new ImportFault(
      `actions must be a list of at most ${MAX_ACTIONS}: - { target: $.info, update: { title: … } }`,
    );
  return { extends: extended, actions: actions.map(readAction) };
}

function readAction(action: unknown, index: number): Action {
  const { target, update, remove } = objectOf(action);
  if (typeof target !== 'string')
    throw new ImportFault(`actions.${index} must have a target: - { target: $.info, update: { title: … } }`);
  if (remove !== true && update === undefined)
    throw new ImportFault(`actions.${index} (${target}) must have an update, or remove: true`);
  return { target, update, remove: remove === true };
}

/**
 * Applies an overlay to a document.
 * @returns the changed document
 * @throws ImportFault for a target that is not supported or not in the document, so that a price can't disappear together with a path
 */
export function applyOverlay(document: Json, { actions }: Overlay): Json {
  const root = { $: document };
  for (const { target, update, remove } of actions) {
    const places = selected(root, stepsOf(target), target);
    if (places.length === 0)
      throw new ImportFault(
        `${target}: the document has nothing there. If it was removed on purpose, remove this action too.`,
      );
    if (remove) for (const place of places.reverse()) removeAt(place);
    else for (const { parent, key } of places) setAt(parent, key, merged(valueAt(parent, key), update));
  }
  return root.$;
}

function stepsOf(target: string): Step[] {
  const steps: Step[] = ['$'];
  let rest = target.trim();
  if (!rest.startsWith('$')) throw new ImportFault(`${target}: a target begins with $, as $.info does`);
  for (rest = rest.slice(1); rest !== '';) {
    const found = STEP.exec(rest);
    if (!found)
      throw new ImportFault(
        `${target}: the supported JSONPath is $.name, $['name'], [number] and *, not ${rest.slice(0, 40)}. Write an action for each place.`,
      );
    const { word, number, single, double } = found.groups ?? {};
    const name = word ?? single?.replace(/\\(.)/g, '$1') ?? double?.replace(/\\(.)/g, '$1');
    steps.push(number === undefined ? name : Number(number));
    rest = rest.slice(found[0].length);
  }
  return steps;
}

function selected(root: Json, steps: readonly Step[], target: string): Place[] {
  let places: Place[] = [{ parent: root, key: '$' }];
  for (const step of steps.slice(1)) {
    places = places.flatMap(({ parent, key }) => membersOf(valueAt(parent, key), step));
    if (places.length > MAX_SELECTED)
      throw new ImportFault(`${target}: selects more than ${MAX_SELECTED} places`);
  }
  return places;
}

function membersOf(node: unknown, step: Step): Place[] {
  if (Array.isArray(node)) {
    const keys =
      step === undefined ? [...node.keys()] : typeof step === 'number' && step in node ? [step] : [];
    return keys.map(key => ({ parent: node as unknown[], key }));
  }
  if (!isObject(node)) return [];
  const keys = step === undefined ? Object.keys(node) : Object.hasOwn(node, step) ? [String(step)] : [];
  return keys.map(key => ({ parent: node, key }));
}

function valueAt(parent: Json | unknown[], key: string | number): unknown {
  return (parent as Record<string | number, unknown>)[key];
}

function setAt(parent: Json | unknown[], key: string | number, value: unknown): void {
  Object.defineProperty(parent, key, { value, enumerable: true, configurable: true, writable: true });
}

function removeAt({ parent, key }: Place): void {
  if (Array.isArray(parent)) parent.splice(Number(key), 1);
  else delete parent[key];
}

/** Objects are merged, lists are extended, anything else is replaced. */
function merged(known: unknown, update: unknown): unknown {
  if (Array.isArray(known))
    return [...(known as unknown[]), ...(Array.isArray(update) ? (update as unknown[]) : [update])];
  if (!isObject(known) || !isObject(update)) return structuredClone(update);
  const made = { ...known };
  for (const [key, value] of Object.entries(update))
    setAt(made, key, Object.hasOwn(known, key) ? merged(known[key], value) : structuredClone(value));
  return made;
}
