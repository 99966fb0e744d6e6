import type { Parameter } from '../../contract/contract.js';
import type { AnyAsked } from '../../contract/operation.js';
import { encodedQuery } from '../../contract/query-styles.js';
import { isHeaderValue, piecesOf, variablesOf, type Upstream } from '../../contract/read-upstream.js';
import { UpstreamFailure } from '../../net/failure.js';
import { isPrivateHost } from '../../net/public-addresses.js';

/** The settings for upstreams from the environment. */
export type UpstreamSettings = {
  /** The value of an environment variable; undefined if it is not set. */
  variable: (name: string) => string | undefined;
  /** Whether upstreams may have private addresses. */
  allowPrivate: boolean;
};

/** An `x-upstream` with the values of its environment variables. */
export type UpstreamRequest = {
  /** Scheme, host and port. */
  origin: string;
  /** Path and query. A name in braces is the place of a path parameter. Braces have no other meaning. */
  target: string;
  method: Upstream['method'];
  headers: Record<string, string>;
  timeoutMs: number;
  /** The values that must never be shown. */
  secrets: string[];
};

/** Reports what is missing or wrong, with its place in `x-upstream`. No message contains a value. */
export type Report = (place: string, message: string) => void;

/** Puts the values of environment variables into an `x-upstream`, or reports everything that is wrong with them. */
export function resolveUpstream(
  upstream: Upstream,
  { variable, allowPrivate }: UpstreamSettings,
  report: Report,
): UpstreamRequest | undefined {
  let sound = true;
  const wrong: Report = (place, message) => {
    sound = false;
    report(place, message);
  };
  const valueOf = (place: string, name: string): string => {
    const value = variable(name);
    if (value === undefined) wrong(place, `the environment variable ${name} must be set`);
    else if (!isHeaderValue(value)) wrong(place, `the value of ${name} has line ends or control characters`);
    return value ?? '';
  };
  const headers: Record<string, string> = {};
  for (const [name, text] of Object.entries(upstream.headers)) {
    const pieces = piecesOf(text).map(piece => {
      if ('variable' in piece) return valueOf(`headers.${name}`, piece.variable);
      return 'text' in piece ? piece.text : `{${piece.parameter}}`;
    });
    headers[name] = pieces.join('');
  }
  const url = fillUrl(upstream.url, name => valueOf('url', name));
  if (!sound) return undefined;
  const { origin, target } = splitUrl(url) ?? {};
  if (origin === undefined || target === undefined)
    return void wrong('url', 'its variable must hold an http(s) URL without a user name, query or fragment');
  if (!allowPrivate && isPrivateHost(new URL(origin).hostname))
    return void wrong('url', 'has a private address: set ALLOW_PRIVATE_UPSTREAMS=true if that is intended');
  const { method, timeoutMs } = upstream;
  const secrets = secretNames(upstream).map(name => variable(name) ?? '');
  return { origin, target, method, headers, timeoutMs, secrets };
}

/** A variable at the beginning of the URL contains an address, which is not secret. */
function secretNames({ url, headers }: Upstream): string[] {
  const [first, ...others] = piecesOf(url);
  const inUrl = first && 'variable' in first ? others : [first, ...others];
  const names = inUrl.flatMap(piece => (piece && 'variable' in piece ? [piece.variable] : []));
  return [...names, ...Object.values(headers).flatMap(variablesOf)];
}

function fillUrl(url: string, valueOf: (name: string) => string): string {
  const pieces = piecesOf(url).map((piece, index) => {
    if ('text' in piece) return piece.text;
    if ('parameter' in piece) return `{${piece.parameter}}`;
    return index === 0 ? baseOf(valueOf(piece.variable)) : encodeURIComponent(valueOf(piece.variable));
  });
  return pieces.join('');
}

/** An address from the environment, normalized as a URL without trailing slashes; '' if it is not a URL. */
function baseOf(value: string): string {
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return '';
  const { origin, pathname, username, password } = new URL(value);
  return username || password || /[?#]/.test(value) ? '' : origin + pathname.replace(/(?<!\/)\/+$/, '');
}

function splitUrl(url: string): { origin: string; target: string } | undefined {
  const [host = ''] = /^https?:\/\/[^/?#]+/i.exec(url) ?? [];
  if (!URL.canParse(host)) return undefined;
  const rest = url.slice(host.length);
  return { origin: new URL(host).origin, target: rest.startsWith('/') ? rest : `/${rest}` };
}

/**
 * The path and query of a request: the upstream's own with the path parameters of the call in their places, and the declared query.
 * @throws UpstreamFailure (`invalid`) if a parameter would lead to another path
 */
export function targetOf(
  target: string,
  { params, query }: Pick<AnyAsked, 'params' | 'query'>,
  parameters: readonly Parameter[] = [],
): string {
  const filled = target.replace(/\{([^{}]+)\}/g, (_braces, name: string) => encoded(name, params[name]));
  const [path = '', own = ''] = filled.split('?', 2);
  for (const segment of path.split('/')) checkSegment(segment);
  const written = parameters.filter(each => each.in === 'query');
  const search = [
    own,
    ...Object.keys(query).flatMap(name =>
      pairs(written.find(each => each.name === name) ?? { name }, query[name]),
    ),
  ];
  const all = search.filter(each => each !== '').join('&');
  return all === '' ? path : `${path}?${all}`;
}

/** The declared headers of a call, by their names in lower case. */
export function headersOf({ headers = {} }: Pick<AnyAsked, 'headers'>): Record<string, string> {
  const texts = Object.entries(headers).map(([name, value]) => [
    name.toLowerCase(),
    [value].flat().join(', '),
  ]);
  return Object.fromEntries(texts) as Record<string, string>;
}

function pairs(parameter: Pick<Parameter, 'name' | 'style'>, value: unknown): string[] {
  try {
    return encodedQuery(parameter, value);
  } catch {
    throw new UpstreamFailure('invalid', `${parameter.name} is not valid Unicode text`);
  }
}

/** Percent-encodes all characters with a special meaning in URLs, including slashes. */
function encoded(name: string, value: unknown): string {
  try {
    return encodeURIComponent(String(value));
  } catch {
    throw new UpstreamFailure('invalid', `${name} is not valid Unicode text`);
  }
}

/** Some servers cut a string at a control character, and some decode a segment before they split the path. */
function checkSegment(segment: string): void {
  const text = decoded(segment);
  const sound = !/\p{Cc}/u.test(text) && !text.split(/[/\\]/).some(part => /^\.\.?$/.test(part));
  if (sound) return;
  throw new UpstreamFailure(
    'invalid',
    'a path parameter must not contain control characters, or . or .. between slashes',
  );
}

/** The upstream's own path may contain a percent sign that is not part of an encoding. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
