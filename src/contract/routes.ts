import type { Options, ValidateFunction } from 'ajv';
import type { IncomingHttpHeaders } from 'node:http';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import { OpenAPIBackend, type Operation, type ParsedRequest } from 'openapi-backend';
import { absolute, createAjv } from './ajv.js';
import { CALLED_METHODS } from './called-methods.js';
import type { Contract, Form, GivenOperation, Parameter, PricedOperation } from './contract.js';
import { contentTypeOf, formOf, formsOf, missingHeader } from './answer-forms.js';
import { definitionOf, jsonSchemaOf, responsesOf, type DeclaredResponse } from './definition.js';
import { requestFault, valueFault } from './fault-words.js';
import type { Json } from './json.js';
import type { AnyAsked, AnyCall, AnyReply } from './operation.js';
import { copied, headerTexts, misreadParameter, pathFault, queryTexts } from './parameter-texts.js';
import { BodyCheck } from './body-check.js';
import { PathIndex, rawParameters } from './paths.js';
import { preferredType } from './preferred-type.js';
import type { SentBody } from './sent-body.js';
import { isSoldStatus } from './sold-status.js';

/** The operation of the contract that a request calls, found by its raw path. */
export type Routed = {
  kind: 'operation';
  id: string;
  priced: PricedOperation | undefined;
  given: GivenOperation | undefined;
  /** The operation in the form that openapi-backend uses. */
  operation: Operation;
  path: string;
};

/** `allow`: the methods of the path; `priced`: a paid operation among them; `headers`: their header parameters, if any. */
export type MethodNotAllowed = {
  kind: 'methodNotAllowed';
  allow: string;
  priced?: PricedOperation | undefined;
  headers?: string[];
};

/** The result of routing. */
export type Route = Routed | MethodNotAllowed | { kind: 'notFound' };

/** The validated input of a call, or its fault. */
export type AskedCheck = { ok: true; asked: AnyAsked } | { ok: false; error: string };

/** A call as it is sent, except for its body. */
type SentCall = {
  operation: Operation;
  path: string;
  parameters: readonly Parameter[];
  search: string;
  headers: IncomingHttpHeaders;
};

type ParametersCheck = { ok: true; asked: Omit<AnyAsked, 'body' | 'type'> } | { ok: false; error: string };

/** A function that serves an operation. For a free one, it is called without an argument. */
export type OperationHandler = { call(call?: AnyCall): Promise<AnyReply> };

/** Methods as written in a document. HEAD counts as GET. A contract has no other methods. */
const METHODS = new Map([
  ['HEAD', 'get'],
  ...CALLED_METHODS.map(each => [each, each.toLowerCase()] as const),
]);
const NOT_FOUND = { kind: 'notFound' } as const;
/** The maximum number of openapi-backend's routing results to cache. */
const MAX_MATCHES = 2_000;

/**
 * The operations of the contract. openapi-backend finds the operation of a request, validates input and answers, and holds the handlers.
 * Its `handleRequest` is not used, because payment is read before the body: a call without payment gets 402 whatever its body.
 */
export class Routes {
  readonly #contract: Contract;
  readonly #api: OpenAPIBackend;
  readonly #index: PathIndex<Operation>;
  readonly #priced: ReadonlyMap<string, PricedOperation>;
  readonly #given: ReadonlyMap<string, GivenOperation>;
  readonly #operations: ReadonlyMap<string, Operation>;
  /** Cached results of openapi-backend by method and candidate operations; null if none matched. */
  readonly #matches = new Map<string, Operation | null>();
  readonly #declared: ReadonlyMap<string, Record<string, DeclaredResponse>>;
  readonly #answered: Ajv2020;
  readonly #bodies: BodyCheck;
  readonly #alone = new WeakMap<Json, ValidateFunction>();
  readonly #all: Operation[];
  /** The list of operations that openapi-backend sees. */
  #candidates: Operation[];

  private constructor(contract: Contract, api: OpenAPIBackend, answered: Ajv2020, bodies: BodyCheck) {
    const all = api.router.getOperations();
    this.#contract = contract;
    this.#api = api;
    this.#index = new PathIndex(all);
    this.#priced = new Map(contract.paid.map(operation => [operation.id, operation]));
    this.#given = new Map(contract.given.map(operation => [operation.id, operation]));
    this.#operations = new Map(all.map(operation => [operation.operationId ?? '', operation]));
    this.#declared = new Map(
      all.map(operation => [operation.operationId ?? '', responsesOf(contract, operation)]),
    );
    this.#answered = answered;
    this.#bodies = bodies;
    this.#all = all;
    this.#candidates = all;
    // Replaces a method of openapi-backend that would, for every request, rebuild the list, compile the path's pattern and parse cookies.
    api.router.getOperations = () => this.#candidates;
    api.router.parseRequest = request => request as ParsedRequest<never>;
  }

  /** @param made options for compiling validators; by default, for fast validators */
  static async create(contract: Contract, made: Pick<Options, 'code'> = {}): Promise<Routes> {
    const { document } = contract;
    const ofBodies = createAjv(document, { ...made, useDefaults: true });
    const ajvs = {
      requestBodyValidator: ofBodies,
      paramsValidator: createAjv(document, { ...made, useDefaults: true, coerceTypes: true }),
      responseValidator: createAjv(document, made),
    };
    const api = new OpenAPIBackend({
      definition: { openapi: '3.1.0', info: { title: '', version: '' }, paths: {} },
      strict: true,
      // With `quick`, openapi-backend does not check the document, because that is done before a release, and
      // compiles the schemas later.
      quick: true,
      ignoreTrailingSlashes: false,
      coerceTypes: true,
      ajvOpts: { meta: false, validateSchema: false },
      customizeAjv: (_own, _options, context) => ajvs[context as keyof typeof ajvs],
    });
    await api.init();
    // The definition is set after `init`, which would resolve the references in the schemas (see
    // `definitionOf`).
    api.router.definition = definitionOf(contract) as never;
    return new Routes(contract, api, ajvs.responseValidator, new BodyCheck(ofBodies, ajvs.paramsValidator));
  }

  /** Compiles all validators, one operation per turn of the event loop, so that calls are not delayed for long. */
  async warm(): Promise<void> {
    for (const { id, request } of [...this.#contract.paid, ...this.#contract.given]) {
      await new Promise(resolve => setImmediate(resolve));
      if (request) this.#bodies.warm(request);
      this.#api.validator.getRequestValidatorsForOperation(id);
      this.#api.validator.getStatusBasedResponseValidatorForOperation(id);
    }
  }

  /** Registers handlers by operationId. @throws Error for an unknown operationId */
  register(handlers: Readonly<Record<string, OperationHandler>>): void {
    for (const [id, served] of Object.entries(handlers))
      this.#api.register(id, (_context: unknown, call?: AnyCall) => served.call(call));
  }

  /** Calls the handler of an operation. */
  async handle(id: string, call?: AnyCall): Promise<AnyReply> {
    const handler = Object.hasOwn(this.#api.handlers, id) ? this.#api.handlers[id] : undefined;
    if (!handler) throw new Error(`${id} has no handler`);
    return (await handler({ api: this.#api } as never, call)) as AnyReply;
  }

  /** Matches method and raw path: no decoding, no trailing slash, no case folding. HEAD counts as GET. */
  match(method: string, path: string): Route {
    // openapi-backend would accept other spellings of a path (trailing slashes, spaces, a query), but a paid path has only one.
    if (!path.startsWith('/') || path.includes('?') || path.trim() !== path) return NOT_FOUND;
    const candidates = this.#index.candidates(path);
    if (candidates.length === 0) return NOT_FOUND;
    const verb = METHODS.get(method);
    const found = verb && this.#find(verb, path, candidates);
    if (found) return found;
    const verbs = CALLED_METHODS.map(each => each.toLowerCase());
    const others = verbs.flatMap(other => this.#find(other, path, candidates) ?? []);
    if (others.length === 0) return NOT_FOUND;
    const priced = others.find(each => each.priced)?.priced;
    const headers = headersOf(others);
    return {
      kind: 'methodNotAllowed',
      allow: allowed(others),
      priced,
      ...(headers.length > 0 ? { headers } : {}),
    };
  }

  /**
   * openapi-backend chooses between the operations whose templates match. Its choice does not depend on the parameter values. It is cached,
   * because openapi-backend rebuilds its patterns for every match.
   */
  #find(verb: string, path: string, candidates: Operation[]): Routed | undefined {
    const key = candidates.reduce((ids, { operationId }) => `${ids} ${operationId}`, verb);
    let operation = this.#matches.get(key);
    if (operation === undefined) {
      this.#candidates = candidates;
      operation = this.#api.router.matchOperation({ method: verb, path, headers: {} }) ?? null;
      this.#candidates = this.#all;
      if (this.#matches.size >= MAX_MATCHES) this.#matches.clear();
      this.#matches.set(key, operation);
    }
    return operation ? this.#routed(operation, path) : undefined;
  }

  #routed(operation: Operation, path: string): Routed {
    const id = operation.operationId ?? '';
    return {
      kind: 'operation',
      id,
      priced: this.#priced.get(id),
      given: this.#given.get(id),
      operation,
      path,
    };
  }

  /** The route of an operation by its id, for work without a request. */
  routeOf(id: string): Routed | undefined {
    const operation = this.#operations.get(id);
    return operation && this.#routed(operation, operation.path);
  }

  /**
   * Validates the call of a paid or free operation, sets defaults, and drops what the contract does not declare.
   * @param search the query without its question mark; `body` undefined if none was sent; `headers` as Node has them
   */
  checkAsked(
    { id, priced, given, operation, path }: Routed,
    search: string,
    body: SentBody | undefined,
    headers: IncomingHttpHeaders = {},
  ): AskedCheck {
    const called = priced ?? given;
    if (!called) throw new Error(`${id} takes no input`);
    const { parameters, request } = called;
    const checked = this.#checkParameters({ operation, path, parameters, search, headers });
    if (!checked.ok) return checked;
    const read = request && this.#bodies.read(request, body);
    if (read?.ok === false) return read;
    const accept = preferredType(called, headers.accept);
    return {
      ok: true,
      asked: {
        ...checked.asked,
        body: read?.value,
        ...(read?.type === undefined ? {} : { type: read.type }),
        ...(accept === undefined ? {} : { accept }),
      },
    };
  }

  /** Validates the parameters of a call. */
  #checkParameters({ operation, path, parameters, search, headers }: SentCall): ParametersCheck {
    const raw = rawParameters(operation.path, path);
    const wrongPath = pathFault(raw);
    if (wrongPath !== undefined) return { ok: false, error: wrongPath };
    const inQuery = queryTexts(parameters, search);
    if (!inQuery.ok) return inQuery;
    const inHeaders = headerTexts(parameters, headers);
    if (!inHeaders.ok) return inHeaders;
    const sent = {
      params: decoded(raw),
      // openapi-backend also checks objects, although its types do not say so.
      query: copied(inQuery.texts) as Record<string, string>,
      headers: copied(inHeaders.texts),
      cookies: {},
      requestBody: undefined,
    };
    const request = { method: operation.method, path, body: undefined, ...sent };
    const { valid, errors, coerced } = this.#api.validator.validateRequest(request, operation);
    if (!valid) return { ok: false, error: requestFault(errors ?? []) };
    const { params, query } = coerced as Pick<AnyAsked, 'params' | 'query'>;
    const misread =
      misreadParameter(raw, params) ??
      misreadParameter(inQuery.texts, query) ??
      // openapi-backend has coerced the header values in place.
      misreadParameter(inHeaders.texts, sent.headers);
    if (misread !== undefined) return { ok: false, error: misread };
    const named = headersNamed(parameters, sent.headers);
    return { ok: true, asked: { params, query, ...(named ? { headers: named } : {}) } };
  }

  /** Checks an answer against the contract: status, body and required headers. Returns what is wrong, if anything. */
  checkReply(route: Routed, reply: AnyReply): string | undefined {
    const { id, priced = route.given } = route;
    if (reply.status === 402) return 'status 402 is for the challenge; a handler must not answer with it';
    const declared = this.#declared.get(id)?.[reply.status];
    if (!declared) return `status ${reply.status} is not declared`;
    const sold = isSoldStatus(reply.status) ? priced : undefined;
    const check = sold?.upstream?.check ?? 'schema';
    if (check === 'none') return undefined;
    const forms = sold?.answers.filter(({ status }) => status === reply.status);
    const form = formOf(forms ?? formsOf(declared), reply);
    if (!form) return `the content type ${contentTypeOf(reply) ?? 'none'} is not declared`;
    // The reader of the answer has already checked that it is JSON.
    return check === 'type' ? undefined : this.#checkForm(route, declared, form, reply);
  }

  #checkForm(route: Routed, declared: DeclaredResponse, form: Form, reply: AnyReply): string | undefined {
    return this.#checkBody(route, form, reply) ?? missingHeader(declared, reply.headers ?? {});
  }

  #checkBody(route: Routed, form: Form, reply: AnyReply): string | undefined {
    const { body } = reply;
    if (form.kind === 'json') return this.#checkJson(route, form, reply);
    if (form.kind === 'none')
      return isEmpty(body) ? undefined : `the body must be empty: ${reply.status} has no content`;
    if (form.kind === 'text' && typeof body === 'string')
      return body === '' ? 'the body is empty' : form.schema && this.#checkAlone(form.schema, body);
    const empty = !(body instanceof Uint8Array) || body.length === 0;
    return empty ? `the body must be ${form.kind === 'text' ? 'text' : 'bytes'}` : undefined;
  }

  /** JSON that is already encoded is sent as it is. */
  #checkJson(route: Routed, form: Form, { status, body, value: parsed }: AnyReply): string | undefined {
    let value = body instanceof Uint8Array ? parsed : body;
    if (value === undefined && body instanceof Uint8Array)
      try {
        value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
      } catch {
        return 'the body must be JSON in UTF-8';
      }
    if (!form.schema) return undefined;
    const called = route.priced ?? route.given;
    if (called && form.schema !== jsonSchemaOf(called, status)) return this.#checkAlone(form.schema, value);
    const { valid, errors } = this.#api.validator.validateResponse(value, route.operation, status);
    return valid ? undefined : valueFault(errors);
  }

  /** Checks what openapi-backend does not: text answers, JSON of a second content type, and errors. */
  #checkAlone(schema: Json, value: unknown): string | undefined {
    const check = this.#alone.get(schema) ?? this.#answered.compile(absolute(schema));
    this.#alone.set(schema, check);
    return check(value) ? undefined : valueFault(check.errors);
  }
}

/** Whether an answer has no body. */
function isEmpty(body: unknown): boolean {
  if (body instanceof Uint8Array) return body.length === 0;
  return body === undefined || body === null || body === '';
}

/** The values of path parameters, which can be decoded (see `pathFault`). */
function decoded(raw: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(raw).map(([name, text]) => [name, decodeURIComponent(text)]));
}

/** Header parameters by their names as the contract writes them; undefined if the operation has none. */
function headersNamed(parameters: readonly Parameter[], values: Json): Json | undefined {
  const declared = parameters.filter(each => each.in === 'header');
  if (declared.length === 0) return undefined;
  return Object.fromEntries(
    declared.flatMap(({ name }) => {
      const value = values[name.toLowerCase()];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

function allowed(routes: readonly Routed[]): string {
  const own = CALLED_METHODS.filter(each =>
    routes.some(({ operation }) => operation.method === each.toLowerCase()),
  );
  return [...own.flatMap(each => (each === 'GET' ? ['GET', 'HEAD'] : each)), 'OPTIONS'].join(', ');
}

/** The names of the header parameters of operations, in lower case. */
function headersOf(routes: readonly Routed[]): string[] {
  const declared = routes
    .flatMap(({ priced, given }) => (priced ?? given)?.parameters ?? [])
    .filter(each => each.in === 'header');
  return [...new Set(declared.map(({ name }) => name.toLowerCase()))];
}
