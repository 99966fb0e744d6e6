import type { Json } from '../json.js';
import { variablesOf } from '../read-upstream.js';
import { isObject, objectOf } from '../references.js';
import { ImportFault, LeftOut, type Source } from './source-document.js';
import { securityOfTwo, serversOfTwo } from './swagger-two.js';

/** The characters of header and cookie names. `${NAME}` does not match, because it would be read as a variable. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

/** An environment variable that the shop needs, with a description of its value. */
export type Asked = { variable: string; what: string };

/** The credentials sent to an API: headers and query parameters. */
export type Credentials = { headers: Record<string, string>; query: Record<string, string>; asked: Asked[] };

/** The API that answers the calls of a document, and the credentials for it. */
export class Api {
  readonly #source: Source;
  readonly #at: URL;
  readonly #upstream: string | undefined;
  readonly #given: Readonly<Record<string, string>>;
  readonly #schemes: Json;
  readonly #kept: boolean;

  /**
   * @param at the document's address; server addresses may be relative to it
   * @param upstream the address of the API, if it is not that of the document
   * @param secrets headers by name, with `${NAME}` for a variable
   * @param kept whether the document itself says how each operation is served
   */
  constructor(
    source: Source,
    options: { at: URL; upstream?: string; secrets: Readonly<Record<string, string>>; kept?: boolean },
  ) {
    this.#source = source;
    this.#at = options.at;
    this.#upstream = options.upstream;
    this.#given = options.secrets;
    this.#kept = options.kept ?? false;
    const { document, version } = source;
    this.#schemes =
      version === 2 ? securityOfTwo(document) : objectOf(objectOf(document.components).securitySchemes);
  }

  /** The names of the headers sent with every call, in lower case. */
  get ownHeaders(): Set<string> {
    return new Set(Object.keys(this.#given).map(name => name.toLowerCase()));
  }

  /** The base address of an operation's path. @throws ImportFault if the document has none */
  addressOf(item: Json, operation: Json): string {
    if (this.#upstream !== undefined) return withoutSlash(this.#upstream);
    const { document, version } = this.#source;
    const lists =
      version === 2 ? [serversOfTwo(document)] : [operation.servers, item.servers, document.servers];
    const list = lists.find(each => Array.isArray(each) && each.length > 0) as unknown[] | undefined;
    const urls = (list ?? [{ url: '/' }]).map(each => this.#serverUrl(objectOf(each)));
    const found = urls.find(url => url?.protocol === 'https:') ?? urls.find(url => url !== undefined);
    if (found) return withoutSlash(`${found.origin}${found.pathname}`);
    throw new ImportFault(
      'The document does not give the address of its API: add --upstream https://api.example.com',
    );
  }

  /**
   * The `x-upstream` that the document itself gives an operation; undefined if the seller gives the API's address.
   * @throws LeftOut if the document comes from the web and this `x-upstream` names environment variables
   */
  ownUpstreamOf(operation: Json): unknown {
    if (this.#upstream !== undefined && !this.#kept) return undefined;
    const { 'x-upstream': own } = operation;
    const [variable] = own === undefined ? [] : ownCredentials(operation).asked;
    if (variable !== undefined && this.#at.protocol !== 'file:')
      throw new LeftOut(
        `its x-upstream, which comes from the web, would send the variable ${variable.variable} to an address of its choice: name the API with --upstream and its headers with --secret`,
      );
    return own;
  }

  #serverUrl({ url, variables }: Json): URL | undefined {
    if (typeof url !== 'string') return undefined;
    const text = url.replace(/\{([^{}]*)\}/g, (_braces, name: string) => {
      const { default: value } = objectOf(objectOf(variables)[name]);
      return typeof value === 'string' ? value : '';
    });
    const whole = URL.canParse(text, this.#at.href) ? new URL(text, this.#at.href) : undefined;
    return whole && /^https?:$/.test(whole.protocol) ? whole : undefined;
  }

  /** The credentials of an operation: the first of the document's alternatives that can be sent. @throws LeftOut if none can */
  credentialsOf(operation: Json): Credentials {
    if (this.#kept || this.ownUpstreamOf(operation) !== undefined) return ownCredentials(operation);
    const required = operation.security ?? this.#source.document.security;
    const alternatives = Array.isArray(required) && required.length > 0 ? required.map(objectOf) : [{}];
    const read = alternatives.map(each => this.#alternative(each));
    const given = read.find(each => 'headers' in each && each.asked.length === 0);
    const found = given ?? read.find(each => 'headers' in each);
    if (found && 'headers' in found) return { ...found, headers: { ...found.headers, ...this.#given } };
    if (this.ownHeaders.size > 0) return { headers: { ...this.#given }, query: {}, asked: [] };
    const [first] = read;
    throw new LeftOut(first && 'why' in first ? first.why : 'its security cannot be read');
  }

  #alternative(requirement: Json): Credentials | { why: string } {
    const made: Credentials = { headers: {}, query: {}, asked: [] };
    for (const name of Object.keys(requirement)) {
      const why = this.#add(made, name);
      if (why !== undefined) return { why };
    }
    return made;
  }

  /** @returns why it can't be sent */
  #add(made: Credentials, name: string): string | undefined {
    const scheme = this.#schemeOf(name);
    const { type, in: where, name: key = name } = scheme;
    if (type === 'apiKey' && typeof key === 'string') return this.#addKey(made, String(where), key);
    if (type === 'oauth2' || type === 'openIdConnect')
      return this.#addHeader(
        made,
        'Authorization',
        'Bearer ',
        'API_TOKEN',
        `an access token (${name}: ${type})`,
      );
    const { scheme: http } = scheme;
    if (type === 'http' && /^bearer$/i.test(String(http)))
      return this.#addHeader(made, 'Authorization', 'Bearer ', 'API_TOKEN', `the bearer token (${name})`);
    if (type === 'http' && /^basic$/i.test(String(http))) {
      const what = `user:password in base64 (${name}: basic)`;
      return this.#addHeader(made, 'Authorization', 'Basic ', 'API_BASIC', what);
    }
    const kind = [type, http].filter(each => typeof each === 'string').join(' ');
    return kind === ''
      ? `needs ${name}, which the document does not describe: use --secret to say what to send`
      : `its security is ${kind}, which a fixed header can't satisfy`;
  }

  #schemeOf(name: string): Json {
    try {
      return this.#source.follow(this.#schemes[name]);
    } catch (error) {
      if (error instanceof LeftOut) return {};
      throw error;
    }
  }

  #addKey(made: Credentials, where: string, key: string): string | undefined {
    const variable = variableOf(key);
    const what = `the key for ${where === 'query' ? `?${key}=` : where === 'cookie' ? `the cookie ${key}` : key}`;
    if (where === 'header') return this.#addHeader(made, key, '', variable, what);
    if (where === 'cookie')
      return TOKEN.test(key)
        ? this.#addHeader(made, 'Cookie', `${key}=`, variable, what)
        : `its key is the cookie ${JSON.stringify(key)}, which is not a valid cookie name`;
    made.query[key] = `\${${variable}}`;
    made.asked.push({ variable, what });
    return undefined;
  }

  #addHeader(made: Credentials, header: string, before: string, variable: string, what: string): undefined {
    if (this.ownHeaders.has(header.toLowerCase())) return;
    made.headers[header] = `${before}\${${variable}}`;
    made.asked.push({ variable, what: `${what}, sent as ${header}` });
  }
}

/** The headers and query parameters that an operation's x-upstream sends, so that buyers are not asked for them. */
function ownCredentials(operation: Json): Credentials {
  const { url, headers } = objectOf(operation['x-upstream']);
  const texts = Object.entries(objectOf(headers)).map(([name, value]) => [name, String(value)]);
  const [, query = ''] = typeof url === 'string' ? url.split('?', 2) : [];
  return {
    headers: Object.fromEntries(texts) as Record<string, string>,
    query: Object.fromEntries(new URLSearchParams(query)),
    // The variables in these values, which the document's author chose.
    asked: [String(url), ...texts.map(([, value = '']) => value)]
      .flatMap(variablesOf)
      .map(variable => ({ variable, what: "sent by the document's x-upstream" })),
  };
}

function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}

/** X-Api-Key → X_API_KEY */
function variableOf(name: string): string {
  const words = name.toUpperCase().split(/\W/).filter(Boolean).join('_');
  return /^[A-Z]/.test(words) ? words : `API_${words}`;
}

/**
 * Reads a header that is sent to the API: `Authorization=Bearer ${API_TOKEN}`.
 * @throws ImportFault
 */
export function readSecret(text: string): [name: string, value: string] {
  const at = text.indexOf('=');
  const [name, value] = [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  if (at < 1 || !TOKEN.test(name) || value === '')
    throw new ImportFault(
      `'${text.slice(0, at < 1 ? 0 : at)}…' is not a valid secret: write a header and the variable that holds its value, such as 'Authorization=Bearer \${API_TOKEN}'.`,
    );
  if (!/\$\{[A-Za-z_]\w*\}/.test(value))
    throw new ImportFault(
      `The secret of ${name} does not name a variable, and keys don't belong in a file: write '${name}=\${API_TOKEN}', in single quotes so that the shell leaves it alone, and set API_TOKEN when the shop starts.`,
    );
  return [name, value];
}

/** The title and the contact of a document. */
export function infoOf({ info }: Json, at: URL): Json {
  const { title, version, description, summary, termsOfService, contact, license } = objectOf(info);
  const texts = { summary, description, version, termsOfService };
  const kept = Object.entries(texts).filter(([, each]) => typeof each === 'string' && each.trim() !== '');
  return {
    title: typeof title === 'string' && title.trim() !== '' ? title.trim() : `API of ${at.host || 'a file'}`,
    ...Object.fromEntries(kept),
    ...(isObject(contact) ? { contact: textsOf(contact) } : {}),
    ...(typeof objectOf(license).name === 'string' ? { license: textsOf(objectOf(license)) } : {}),
  };
}

function textsOf(value: Json): Json {
  const texts = Object.entries(value).filter(
    ([key, each]) => typeof each === 'string' && !key.startsWith('x-'),
  );
  return Object.fromEntries(texts);
}
