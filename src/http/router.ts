import { _, str, type KeywordDefinition } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { OpenAPIBackend, type Operation } from 'openapi-backend';
import type { Contract, PricedOperation } from '../contract/contract.js';
import type { OperationId } from '../contract/operation.js';

type Routed = Operation & { operationId: OperationId };

/** The result of routing. `allow` lists the methods of an existing path. */
export type Route =
  | { kind: 'operation'; id: OperationId; operation: Routed; priced: PricedOperation | undefined }
  | { kind: 'methodNotAllowed'; allow: string }
  | { kind: 'notFound' };

export type BodyCheck = { ok: true } | { ok: false; error: string };

/** The router and validators of the contract: openapi-backend, with ajv in the 2020 dialect that OpenAPI 3.1 uses. */
export class Routes {
  readonly #backend: OpenAPIBackend;
  readonly #priced: Map<string, PricedOperation>;
  readonly #allow: Map<string, string>;

  private constructor(backend: OpenAPIBackend, contract: Contract) {
    this.#backend = backend;
    this.#priced = new Map(contract.paid.map(operation => [operation.id, operation]));
    this.#allow = new Map([
      ...contract.paid.map(operation => [operation.path, 'POST, OPTIONS'] as const),
      ...contract.free.map(operation => [operation.path, 'GET, HEAD, OPTIONS'] as const),
    ]);
  }

  static async create(contract: Contract): Promise<Routes> {
    const instances = new Map<string, Ajv2020>();
    const backend = new OpenAPIBackend({
      definition: contract.document as never,
      strict: true,
      // The document is checked before a release, not at every start: openapi-backend only checks OpenAPI 3.0 and would drop all
      // operations of a 3.1 document. Validators are compiled on first use, or by `warm`.
      quick: true,
      ignoreTrailingSlashes: false,
      ajvOpts: { strict: false, allErrors: false },
      customizeAjv: (_original, _options, context) => {
        const name = String(context);
        let ajv = instances.get(name);
        if (!ajv) {
          ajv = createAjv(name === 'requestBodyValidator');
          instances.set(name, ajv);
        }
        return ajv;
      },
    });
    await backend.init();
    // openapi-backend would rebuild its list of operations for every match.
    const operations = backend.router.getOperations();
    backend.router.getOperations = () => operations;
    return new Routes(backend, contract);
  }

  /** Compiles all validators, one operation per turn of the event loop, so that calls are not delayed for long. */
  async warm(): Promise<void> {
    for (const { operationId } of this.#backend.router.getOperations()) {
      if (operationId === undefined) continue;
      await new Promise(resolve => setImmediate(resolve));
      this.#backend.validator.getRequestValidatorsForOperation(operationId);
      this.#backend.validator.getStatusBasedResponseValidatorForOperation(operationId);
    }
  }

  /** Matches method and raw path exactly: no decoding, no trailing slash, no case folding. HEAD counts as GET. */
  match(method: string, path: string): Route {
    const allow = this.#allow.get(path);
    if (allow === undefined) return { kind: 'notFound' };
    const request = { method: method === 'HEAD' ? 'GET' : method, path, headers: {} };
    const operation = this.#backend.router.matchOperation(request) as Routed | undefined;
    if (!operation) return { kind: 'methodNotAllowed', allow };
    const id = operation.operationId;
    return { kind: 'operation', id, operation, priced: this.#priced.get(id) };
  }

  /** Validates a parsed JSON body and sets defaults in place. Types are not coerced. */
  checkBody(operation: Routed, body: object): BodyCheck {
    // validateRequest would parse query, cookies and path again, which takes half of a paid call's time in the router and is not
    // needed to validate the body.
    const [validate] = this.#backend.validator.getRequestValidatorsForOperation(operation.operationId) ?? [];
    if (!validate) throw new Error(`${operation.operationId} takes no body`);
    if (validate({ requestBody: body })) return { ok: true };
    return { ok: false, error: describe(validate.errors?.[0], '/requestBody') };
  }

  /** Checks an answer against the contract: status, body and required headers. Returns what is wrong, if anything. */
  checkReply(
    operation: Routed,
    reply: { status: number; body: unknown; headers?: Record<string, string> },
  ): string | undefined {
    const declared = (operation.responses as Record<string, { content?: object } | undefined>)[reply.status];
    if (!declared) return `status ${reply.status} is not declared`;
    const json = declared.content && 'application/json' in declared.content;
    if (!json) {
      const empty = !(reply.body instanceof Uint8Array) || reply.body.length === 0;
      if (empty) return 'the body must be bytes';
    } else {
      const { errors } = this.#backend.validator.validateResponse(reply.body, operation, reply.status);
      if (errors?.length) return describe(errors[0], '');
    }
    return missingHeader(declared as Declared, reply.headers ?? {});
  }
}

type Declared = { headers?: Record<string, { required?: boolean } | undefined> };

function missingHeader(declared: Declared, headers: Record<string, string>): string | undefined {
  const present = new Set(Object.keys(headers).map(name => name.toLowerCase()));
  for (const [name, header] of Object.entries(declared.headers ?? {})) {
    if (header?.required && !present.has(name.toLowerCase())) return `header ${name} is missing`;
  }
  return undefined;
}

type AjvError = { instancePath: string; message?: string; keyword: string; params: Record<string, unknown> };

function describe(error: unknown, prefix: string): string {
  const { instancePath, message, keyword, params } = error as AjvError;
  const path = instancePath.startsWith(prefix) ? instancePath.slice(prefix.length) : instancePath;
  const place = path.replace(/^\//, '').replaceAll('/', '.');
  const says = (WORDS[keyword]?.(params) ?? message ?? keyword).slice(0, 300);
  return keyword === 'required' || keyword === 'additionalProperties'
    ? `${place && `${place}: `}${says}`
    : `${place || 'the body'}: ${says}`;
}

const BASE58 = '[1-9A-HJ-NP-Za-km-z]';

/** Plain messages for common ajv errors; other errors keep ajv's message. */
const WORDS: Record<string, ((params: Record<string, unknown>) => string) | undefined> = {
  required: ({ missingProperty }) => `${String(missingProperty)} is missing`,
  additionalProperties: ({ additionalProperty }) =>
    `unknown field '${String(additionalProperty).slice(0, 60)}'`,
  type: ({ type }) => `must be ${String(type) === 'integer' ? 'a whole number' : `of type ${String(type)}`}`,
  minLength: ({ limit }) =>
    limit === 1 ? 'must not be empty' : `must have at least ${String(limit)} characters`,
  maxLength: ({ limit }) => `must have at most ${String(limit)} characters`,
  minimum: ({ limit }) => `must be at least ${String(limit)}`,
  maximum: ({ limit }) => `must be at most ${String(limit)}`,
  pattern: ({ pattern }) =>
    String(pattern).includes(BASE58)
      ? 'must be a base58 address'
      : `must match the pattern ${String(pattern)}`,
};

function createAjv(useDefaults: boolean): Ajv2020 {
  // strictNumbers: otherwise NaN and Infinity would pass as numbers and be sent as null.
  // The schemas are checked against the dialect before a release; checking them here would take a quarter of the start-up time.
  const ajv = new Ajv2020({
    strict: false,
    strictNumbers: true,
    useDefaults,
    allErrors: false,
    meta: false,
    validateSchema: false,
  });
  formats.default(ajv);
  ajv.addFormat('binary', true);
  for (const fast of [minLength, maxLength]) {
    ajv.removeKeyword(fast.keyword as string);
    ajv.addKeyword(fast);
  }
  return ajv;
}

const LIMIT: NonNullable<KeywordDefinition['error']> = {
  message: ({ schemaCode }) => str`must keep within the limit of ${schemaCode} characters`,
  params: ({ schemaCode }) => _`{limit: ${schemaCode}}`,
};

/**
 * ajv's own minLength and maxLength count every code point of every string. A string has at most `length` code points and at
 * least half as many, so most strings need no counting, and for the others it can end early.
 */
const minLength: KeywordDefinition = {
  keyword: 'minLength',
  type: 'string',
  schemaType: 'number',
  validate: (limit: number, text: string) =>
    text.length >= 2 * limit || (text.length >= limit && !codePointsWithin(text, limit - 1)),
  error: LIMIT,
};

const maxLength: KeywordDefinition = {
  keyword: 'maxLength',
  type: 'string',
  schemaType: 'number',
  validate: (limit: number, text: string) => text.length <= limit || codePointsWithin(text, limit),
  error: LIMIT,
};

function codePointsWithin(text: string, limit: number): boolean {
  if (text.length > 2 * limit) return false;
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    const pair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00;
    if (pair) index += 1;
    count += 1;
    if (count > limit) return false;
  }
  return true;
}
