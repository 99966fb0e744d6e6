import { validateHeaderName, validateHeaderValue } from 'node:http';
import { CALLED_METHODS, type CalledMethod } from './called-methods.js';
import { OF_THE_CONNECTION } from './header-names.js';
import type { Json } from './json.js';
import type { Fault } from './read-parameters.js';
import { isObject, objectOf } from './references.js';

const CHECKS = ['schema', 'type', 'none'] as const;

/**
 * What an upstream's answer must conform to before it is sold: the schema for its content type, only the declared content type, or only the
 * limits on its size.
 */
export type AnswerCheck = (typeof CHECKS)[number];

/** `x-upstream`: the HTTP API that serves an operation. Strings are as written; `piecesOf` parses them. */
export type Upstream = {
  url: string;
  method: CalledMethod;
  /** Headers by name in lower case. */
  headers: Record<string, string>;
  timeoutMs: number;
  /** The maximum number of members in a JSON answer. */
  maxMembers: number;
  check: AnswerCheck;
};

/** A part of a string: fixed, an environment variable (`${NAME}`) or a path parameter (`{name}`). */
export type Piece = { text: string } | { variable: string } | { parameter: string };

type Flow = 'authorization' | 'upfront';

/** The operation that the upstream serves. */
type Operation = {
  method: string;
  flow: Flow;
  parameters: readonly { name: string; in: 'path' | 'query' | 'header' }[];
  request?: unknown;
};

const KEYS = ['url', 'method', 'headers', 'timeoutMs', 'maxMembers', 'check'];
const MIN_TIMEOUT_MS = 100;
/**
 * The longest deadlines of an upstream. The work of an `authorization` call may take 20 s, including the
 * check of the answer; no caller waits for an `upfront` one.
 */
const MAX_TIMEOUT_MS = { authorization: 19_000, upfront: 600_000 };
const DEFAULT_TIMEOUT_MS = { authorization: 15_000, upfront: 60_000 };
/** The server is blocked while JSON is parsed and checked: about 20 ms for 20 000 members. */
const DEFAULT_MEMBERS = 20_000;
const MOST_MEMBERS = 1_000_000;
const PIECE = /\$\{(?<variable>[^{}]*)\}|\{(?<parameter>[^{}]*)\}/g;
const VARIABLE_NAME = /^[A-Za-z_]\w*$/;

/** How the answers of an operation are checked. Those of a handler are always checked against the schema. */
export function checkOf({ 'x-upstream': upstream }: Json): AnswerCheck {
  const { check } = objectOf(upstream);
  return CHECKS.find(each => each === check) ?? 'schema';
}

/** Reads `x-upstream`, or reports everything that is wrong with it. `at` is its place. */
export function readUpstream(
  value: unknown,
  operation: Operation,
  at: string[],
  report: Fault,
): Upstream | undefined {
  if (!isObject(value)) return void report(at, 'must be an object');
  let sound = true;
  const fault: Fault = (path, message) => {
    sound = false;
    report(path, message);
  };
  for (const key of Object.keys(value)) if (!KEYS.includes(key)) fault(at, unknownKey(key));
  const { url, method = operation.method, headers = {}, timeoutMs, maxMembers, check = 'schema' } = value;
  if (typeof url === 'string') checkUrl(url, operation, message => fault([...at, 'url'], message));
  else fault([...at, 'url'], 'must be a string, such as https://api.example.com/path');
  if (!CALLED_METHODS.some(each => each === method))
    fault([...at, 'method'], `must be one of ${CALLED_METHODS.join(', ')}`);
  if (method === 'GET' && operation.request !== undefined)
    fault([...at, 'method'], 'must not be GET, because calls of this operation have a body');
  if (!CHECKS.some(each => each === check)) fault([...at, 'check'], `must be one of ${CHECKS.join(', ')}`);
  const read: Upstream = {
    url: String(url),
    method: method as Upstream['method'],
    headers: readHeaders(headers, operation, [...at, 'headers'], fault),
    timeoutMs: readTimeout(timeoutMs, operation.flow, [...at, 'timeoutMs'], fault),
    maxMembers: readMembers(maxMembers, [...at, 'maxMembers'], fault),
    check: check as AnswerCheck,
  };
  return sound ? read : undefined;
}

function unknownKey(key: string): string {
  const meant = KEYS.find(each => each.toLowerCase().startsWith(key.toLowerCase()));
  const hint = meant === undefined ? '' : `. Is it ${meant}?`;
  return `unknown key '${key}': an x-upstream has ${KEYS.join(', ')} only${hint}`;
}

function readTimeout(value: unknown, flow: Flow, at: string[], fault: Fault): number {
  if (value === undefined) return DEFAULT_TIMEOUT_MS[flow];
  const most = MAX_TIMEOUT_MS[flow];
  if (typeof value === 'number' && Number.isInteger(value) && value >= MIN_TIMEOUT_MS && value <= most)
    return value;
  const limit = `a whole number of milliseconds from ${MIN_TIMEOUT_MS} to ${most}`;
  fault(
    at,
    `must be ${limit}${flow === 'authorization' ? ', because the work of a call may take 20 s' : ''}`,
  );
  return DEFAULT_TIMEOUT_MS[flow];
}

function readMembers(value: unknown, at: string[], fault: Fault): number {
  if (value === undefined) return DEFAULT_MEMBERS;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MOST_MEMBERS)
    return value;
  fault(at, `must be a whole number of members from 1 to ${MOST_MEMBERS}`);
  return DEFAULT_MEMBERS;
}

function readHeaders(
  value: unknown,
  { parameters }: Operation,
  at: string[],
  fault: Fault,
): Upstream['headers'] {
  const declared = parameters.filter(each => each.in === 'header').map(each => each.name.toLowerCase());
  const read: Upstream['headers'] = {};
  if (!isObject(value)) {
    fault(at, 'must be an object');
    return read;
  }
  for (const [written, text] of Object.entries(value)) {
    const name = written.toLowerCase();
    const wrong = (message: string): void => fault([...at, written], message);
    if (!isHeaderName(name)) wrong('is not a valid header name');
    if (OF_THE_CONNECTION.test(name)) wrong('is set by the server itself');
    if (declared.includes(name)) wrong('is a header that the operation declares as its own');
    if (name in read) wrong('is present twice');
    if (typeof text !== 'string') wrong('must be a string');
    else if (!isHeaderValue(text)) wrong('has characters that a header cannot have');
    else for (const message of variableFaults(text)) wrong(message);
    read[name] = String(text);
  }
  return read;
}

function isHeaderName(name: string): boolean {
  try {
    validateHeaderName(name);
    return true;
  } catch {
    return false;
  }
}

export function isHeaderValue(value: string): boolean {
  try {
    validateHeaderValue('x', value);
    return true;
  } catch {
    return false;
  }
}

/** In a header a brace is literal; only `${` starts a variable. */
function variableFaults(text: string): string[] {
  const names = variablesOf(text);
  const faults = names.filter(name => !VARIABLE_NAME.test(name)).map(notAVariable);
  const rest = text.replace(PIECE, piece => (piece.startsWith('$') ? '' : piece));
  return rest.includes('${') ? [...faults, "has '${' without '}'"] : faults;
}

function notAVariable(name: string): string {
  return `\${${name}} is not the name of an environment variable`;
}

/** The names of the environment variables in a string, in order. */
export function variablesOf(text: string): string[] {
  return piecesOf(text).flatMap(piece => ('variable' in piece ? [piece.variable] : []));
}

export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const { index, 0: whole, groups } of text.matchAll(PIECE)) {
    if (index > end) pieces.push({ text: text.slice(end, index) });
    end = index + whole.length;
    const { variable, parameter = '' } = groups ?? {};
    pieces.push(variable === undefined ? { parameter } : { variable });
  }
  if (end < text.length) pieces.push({ text: text.slice(end) });
  return pieces;
}

function checkUrl(written: string, operation: Operation, fault: (message: string) => void): void {
  const pieces = piecesOf(written);
  // An address in a variable is checked when its value is known.
  const sample = pieces
    .map((piece, index) => ('text' in piece ? piece.text : index === 0 ? 'https://variable.example' : 'x'))
    .join('');
  if (/[{}]/.test(sample)) return fault("has a '{' or '}' that belongs to no parameter");
  if (/^wss?:/i.test(sample))
    return fault("is a websocket, which can't be sold as one call: an upstream is an http(s) URL");
  if (!/^https?:\/\/[^/?#]/i.test(sample) || !URL.canParse(sample))
    return fault('must be an http(s) URL, such as https://api.example.com/v1/items/{id}');
  checkAddress(sample, fault);
  checkVariables(pieces, fault);
  checkParameters(pieces, operation, new URL(sample).searchParams, fault);
}

function checkAddress(sample: string, fault: (message: string) => void): void {
  const { username, password, pathname, search } = new URL(sample);
  if (username || password)
    fault('must not contain a user name or a password: send them as a header, from the environment');
  if (sample.includes('#')) return fault('must have no fragment');
  const path = sample.slice(sample.indexOf('//') + 2).replace(/^[^/?]*/, '');
  if (path !== '' && path !== pathname + search)
    fault(`must be written as a URL is sent: percent-encoded, without . and .. (not ${path})`);
}

function checkVariables(pieces: readonly Piece[], fault: (message: string) => void): void {
  let inQuery = false;
  for (const [index, piece] of pieces.entries()) {
    if ('text' in piece) inQuery ||= piece.text.includes('?');
    if (!('variable' in piece)) continue;
    const { variable } = piece;
    if (!VARIABLE_NAME.test(variable)) fault(notAVariable(variable));
    if (index > 0 && !inQuery) fault(`may have \${${variable}} only at its very beginning or in its query`);
  }
}

function checkParameters(
  pieces: readonly Piece[],
  { parameters }: Operation,
  own: URLSearchParams,
  fault: (message: string) => void,
): void {
  checkHost(pieces, fault);
  const declared = parameters.filter(each => each.in === 'path').map(({ name }) => name);
  const used = pieces.flatMap(piece => ('parameter' in piece ? [piece.parameter] : []));
  for (const name of new Set(used.filter(each => !declared.includes(each))))
    fault(`has {${name}}, which is not a path parameter of the operation`);
  for (const name of declared.filter(each => !used.includes(each)))
    fault(`does not use the path parameter {${name}}: different calls would get the same answer`);
  for (const { name } of parameters.filter(each => each.in === 'query'))
    if (own.has(name)) fault(`has the query parameter ${name}, which the operation declares as its own`);
}

/** Input from a caller must not decide which server is called. */
function checkHost(pieces: readonly Piece[], fault: (message: string) => void): void {
  const [first, second] = pieces;
  if (first && 'variable' in first) {
    if (second && !('text' in second && /^[/?]/.test(second.text)))
      fault(`must continue with / or ? after \${${first.variable}}`);
    return;
  }
  const at = pieces.findIndex(piece => 'parameter' in piece);
  const parameter = pieces[at];
  const before = pieces.slice(0, Math.max(at, 0)).map(piece => ('text' in piece ? piece.text : 'x'));
  if (parameter && 'parameter' in parameter && !/^https?:\/\/[^/?]+[/?]/i.test(before.join('')))
    fault(`must not have {${parameter.parameter}} in its host`);
}
