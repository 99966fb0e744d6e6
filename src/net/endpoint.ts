/** The address of an HTTP service, with its credentials separated from what may be shown. */
export type Endpoint = {
  origin: string;
  path: string;
  /** Query with its question mark, or `''`. */
  search: string;
  /** Basic authorization, if the URL has a user or a password. */
  headers: Record<string, string>;
  /** The URL for logs and messages: without user, password, query and key-like parts of the path. */
  name: string;
  /** Removes the URL's credentials from a text, such as an error page that repeats the URL. */
  conceal: (text: string) => string;
};

const HIDDEN = '…';
/** Matches keys, which several providers put into the path. */
const KEY_LIKE = /^[\w-]{20,}$/;
/** Shorter values are not removed, because they are words such as `1` or `true`, which are common in text. */
const MIN_SECRET_LENGTH = 4;

/**
 * Reads an http(s) URL that may hold credentials.
 * @throws TypeError if it is not a URL
 */
export function endpointOf(url: string): Endpoint {
  const { origin, pathname, search, username, password } = new URL(url);
  const user = decoded(username);
  const secret = decoded(password);
  const basic = Buffer.from(`${user}:${secret}`).toString('base64');
  const secrets = secretsOf(url);
  return {
    origin,
    path: pathname,
    search,
    headers: user || secret ? { authorization: `Basic ${basic}` } : {},
    name: shownUrl(url),
    conceal: text => secrets.reduce((shown, each) => shown.replaceAll(each, HIDDEN), text),
  };
}

/** Whether a part of a path looks like a key. */
export function isKeyLike(part: string): boolean {
  return KEY_LIKE.test(part);
}

/** A URL, even an invalid one, without anything that may be a credential. */
export function shownUrl(text: string): string {
  if (!URL.canParse(text)) return /[@?]/.test(text) ? `${text.split('//', 1)[0]}//${HIDDEN}` : text;
  const { protocol, host, pathname, search } = new URL(text);
  const parts = pathname.split('/').map(part => (isKeyLike(part) ? HIDDEN : part));
  const path = parts.join('/').replace(/(?<!\/)\/+$/, '');
  return `${protocol}//${host}${path}${search ? `?${HIDDEN}` : ''}`;
}

function secretsOf(url: string): string[] {
  const { pathname, searchParams, search, username, password } = new URL(url);
  const written = search.slice(1).split('&').map(valueOf);
  const plain = [username, password, ...written, ...pathname.split('/').filter(isKeyLike)];
  const all = new Set([
    ...plain,
    ...plain.map(decoded),
    ...searchParams.values(),
    Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64'),
  ]);
  return [...all].filter(each => each.length >= MIN_SECRET_LENGTH).sort((a, b) => b.length - a.length);
}

/** `name=value` → `value`; a parameter without `=` is a value itself. */
function valueOf(parameter: string): string {
  return parameter.slice(parameter.indexOf('=') + 1);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
