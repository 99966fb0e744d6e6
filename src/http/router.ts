import { OpenAPIBackend, type Operation } from 'openapi-backend';
import { CallParameters } from '../contract/call-parameters.js';
import type { AnswerForm, Contract, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import type { AnyAsked, AnyReply } from '../contract/operation.js';
import { PathIndex } from '../contract/paths.js';
import { isObject, objectOf } from '../contract/references.js';
import { Schemas } from '../contract/schemas.js';

/** An operation of the contract. `raw` is the text of its path parameters as sent, in order. */
export type Routed = {
  kind: 'operation';
  id: string;
  priced: PricedOperation | undefined;
  raw: string[];
};

/** `allow`: the methods that the path has; `priced`: what it sells with one of them. */
export type MethodNotAllowed = {
  kind: 'methodNotAllowed';
  allow: string;
  priced?: PricedOperation | undefined;
};

/** The result of routing. */
export type Route = Routed | MethodNotAllowed | { kind: 'notFound' };

/** What a caller asked for, validated, or what is wrong with it. */
export type AskedCheck = { ok: true; asked: AnyAsked } | { ok: false; error: string };

type Method = 'GET' | 'POST';
type Methods = Map<Method, { id: string; priced: PricedOperation | undefined }>;

/** An operation with its references resolved. */
type Declared = { responses?: Record<string, DeclaredResponse | undefined> };
type DeclaredResponse = { content?: Json; headers?: Record<string, { required?: boolean } | undefined> };

/** The router and the validators of the contract. */
export class Routes {
  readonly #paths = new PathIndex<Methods>();
  readonly #declared: ReadonlyMap<string, Declared>;
  readonly #priced: ReadonlyMap<string, PricedOperation>;
  readonly #parameters = new Map<string, CallParameters>();
  readonly #schemas: Schemas;
  readonly #contract: Contract;

  private constructor(operations: Operation[], contract: Contract) {
    this.#contract = contract;
    this.#schemas = new Schemas(contract.document);
    this.#declared = new Map(operations.map(each => [each.operationId ?? '', each as Declared]));
    this.#priced = new Map(contract.paid.map(operation => [operation.id, operation]));
    for (const operation of contract.paid)
      this.#add(operation.method, operation.path, operation.id, operation);
    for (const { path, id } of contract.free) this.#add('GET', path, id, undefined);
  }

  static async create(contract: Contract): Promise<Routes> {
    const backend = new OpenAPIBackend({
      definition: contract.document as never,
      strict: true,
      // The document is checked before a release, not at every start: openapi-backend only checks OpenAPI 3.0 and would drop all
      // operations of a 3.1 document.
      quick: true,
    });
    await backend.init();
    return new Routes(backend.router.getOperations(), contract);
  }

  #add(method: Method, path: string, id: string, priced: PricedOperation | undefined): void {
    this.#paths.at(path, () => new Map() as Methods).set(method, { id, priced });
  }

  /** Compiles all validators, one operation per turn of the event loop, so that calls are not delayed for long. */
  async warm(): Promise<void> {
    for (const operation of this.#contract.paid) {
      await new Promise(resolve => setImmediate(resolve));
      this.#parametersOf(operation);
      if (operation.request) this.#schemas.asked(operation.request.schema, 'the body');
      for (const { schema } of operation.answers) if (schema) this.#schemas.answered(schema);
    }
  }

  /** Matches method and raw path: no decoding, no trailing slash, no case folding. HEAD counts as GET. */
  match(method: string, path: string): Route {
    const found = this.#paths.find(path);
    if (!found) return { kind: 'notFound' };
    const { value: methods, raw } = found;
    const operation = methods.get((method === 'HEAD' ? 'GET' : method) as Method);
    if (!operation) {
      const priced = [...methods.values()].find(each => each.priced)?.priced;
      return { kind: 'methodNotAllowed', allow: allowed(methods), priced };
    }
    return { kind: 'operation', ...operation, raw };
  }

  /** The paid operation at a method and raw path; the same as `match`, for callers that need no more. */
  pricedAt(method: string, path: string): PricedOperation | undefined {
    return this.#paths.find(path)?.value.get((method === 'HEAD' ? 'GET' : method) as Method)?.priced;
  }

  /** The route of a paid operation by its id, for work without a request. */
  routeOf(id: string): Routed | undefined {
    const priced = this.#priced.get(id);
    return priced && { kind: 'operation', id, priced, raw: [] };
  }

  /**
   * Validates the call of a paid operation, sets defaults, and leaves out what the contract does not declare. Types of the body are
   * not coerced. @param query without its question mark; `body` undefined if none was sent
   */
  checkAsked({ id, priced, raw }: Routed, query: string, body: object | undefined): AskedCheck {
    if (!priced) throw new Error(`${id} is free`);
    const read = this.#parametersOf(priced).read(raw, query);
    if (!read.ok) return read;
    const { params, query: values } = read;
    if (!priced.request) return { ok: true, asked: { params, query: values, body: undefined } };
    const wrong =
      body === undefined ? undefined : this.#schemas.asked(priced.request.schema, 'the body')(body);
    return wrong === undefined
      ? { ok: true, asked: { params, query: values, body } }
      : { ok: false, error: wrong };
  }

  #parametersOf(operation: PricedOperation): CallParameters {
    let parameters = this.#parameters.get(operation.id);
    if (!parameters) {
      parameters = new CallParameters(this.#contract.document, operation, this.#schemas);
      this.#parameters.set(operation.id, parameters);
    }
    return parameters;
  }

  /** Checks an answer against the contract: status, body and required headers. Returns what is wrong, if anything. */
  checkReply({ id, priced }: Pick<Routed, 'id' | 'priced'>, reply: AnyReply): string | undefined {
    if (reply.status === 402) return 'status 402 is the challenge, which no handler answers';
    const declared = this.#declared.get(id)?.responses?.[reply.status];
    if (!declared) return `status ${reply.status} is not declared`;
    const forms = reply.status === 200 && priced ? priced.answers : formsOf(declared);
    const form = formOf(forms, reply);
    if (!form) return `the content type ${contentTypeOf(reply) ?? 'none'} is not declared`;
    return this.#checkBody(form, reply) ?? missingHeader(declared, reply.headers ?? {});
  }

  #checkBody({ kind, schema }: AnswerForm, { body, value }: AnyReply): string | undefined {
    if (kind === 'json') return this.#checkJson(schema, body, value);
    if (kind === 'text' && typeof body === 'string')
      return body === '' ? 'the body is empty' : schema && this.#schemas.answered(schema)(body);
    const empty = !(body instanceof Uint8Array) || body.length === 0;
    return empty ? `the body must be ${kind === 'text' ? 'a text' : 'bytes'}` : undefined;
  }

  /** JSON that is bytes already is sent as it is. */
  #checkJson(schema: Json | undefined, body: unknown, parsed: unknown): string | undefined {
    const known = body instanceof Uint8Array ? parsed : body;
    if (known !== undefined || !(body instanceof Uint8Array))
      return schema && this.#schemas.answered(schema)(known);
    try {
      const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
      return schema && this.#schemas.answered(schema)(value);
    } catch {
      return 'the body must be JSON in UTF-8';
    }
  }
}

/** The form that an answer has: the one that its content type names, or the first if it names none. */
export function formOf(forms: readonly AnswerForm[], reply: AnyReply): AnswerForm | undefined {
  return forms.find(({ mimeType }) => matches(mimeType, contentTypeOf(reply)));
}

/** Forms of an answer other than what is sold. */
function formsOf({ content }: DeclaredResponse): AnswerForm[] {
  const { schema } = objectOf(objectOf(content)['application/json']);
  return [{ mimeType: 'application/json', kind: 'json', ...(isObject(schema) ? { schema } : {}) }];
}

function contentTypeOf({ headers = {} }: AnyReply): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
}

/** Whether an answer has this form. Parameters of the content type, such as charset, don't count; no content type means the first. */
function matches(mimeType: string, contentType: string | undefined): boolean {
  const bare = (type: string): string => (type.split(';', 1)[0] ?? '').trim().toLowerCase();
  return contentType === undefined || bare(contentType) === bare(mimeType);
}

function allowed(methods: Methods): string {
  return [methods.has('GET') ? 'GET, HEAD' : [], methods.has('POST') ? 'POST' : [], 'OPTIONS']
    .flat()
    .join(', ');
}

function missingHeader(declared: DeclaredResponse, headers: Record<string, string>): string | undefined {
  const present = new Set(Object.keys(headers).map(name => name.toLowerCase()));
  for (const [name, header] of Object.entries(declared.headers ?? {})) {
    if (header?.required && !present.has(name.toLowerCase())) return `header ${name} is missing`;
  }
  return undefined;
}
