import type { Json } from '../../src/contract/json.js';
import addFormatsModule from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parsePaymentRequired } from '@x402/core/schemas';
import type { Contract, PricedOperation } from '../../src/contract/contract.js';
import { MAX_HEADER_BYTES } from '../../src/methods/header-bytes.js';
import type { Terms } from '../../src/methods/x402/requirements.js';

/** An answer of a server as its caller sees it. */
export type Seen = { status: number; headers: Headers; body: Buffer };

const objectOf = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};

function createAjv(): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormatsModule as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addFormat('binary', true);
  return ajv;
}

const escaped = (key: string): string => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'));

function lead(document: Json, pointer: string): { node: Json; pointer: string } {
  const parts = pointer.split('/').slice(1);
  const node = objectOf(
    parts.reduce<unknown>(
      (parent, part) =>
        objectOf(parent)[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')],
      document,
    ),
  );
  return typeof node['$ref'] === 'string' ? lead(document, node['$ref'].slice(1)) : { node, pointer };
}

/**
 * Everything in an answer to a paid operation that violates the contract: an undeclared status, a body that does not
 * match its schema, a missing required header.
 */
export function contractFaults({ document }: Contract, { path }: PricedOperation, seen: Seen): string[] {
  const { status, headers, body } = seen;
  const response = lead(document, `/paths/${escaped(path)}/post/responses/${status}`);
  if (Object.keys(response.node).length === 0) return [`status ${status} is not declared`];
  const faults: string[] = [];
  for (const [name, header] of Object.entries(objectOf(response.node['headers']))) {
    const reference = objectOf(header)['$ref'];
    const declared =
      typeof reference === 'string' ? lead(document, reference.slice(1)).node : objectOf(header);
    if (declared['required'] && !headers.has(name)) faults.push(`header ${name} is missing`);
  }
  const type = (headers.get('content-type') ?? '').split(';', 1)[0] ?? '';
  if (!(type in objectOf(response.node['content'])))
    return [...faults, `content type '${type}' is not declared`];
  if (type !== 'application/json') return faults;
  const ajv = createAjv().addSchema(document, 'contract');
  const validate = ajv.compile({ $ref: `contract#${response.pointer}/content/application~1json/schema` });
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    return [...faults, 'the body is not JSON'];
  }
  return validate(value) ? faults : [...faults, ajv.errorsText(validate.errors)];
}

/** What is wrong with a challenge beyond its schema: header and body differ, or the offer belongs to another operation. */
export function challengeFaults(operation: PricedOperation, terms: Terms, seen: Seen): string[] {
  if (seen.status !== 402) return [];
  const faults: string[] = [];
  const header = seen.headers.get('payment-required') ?? '';
  const body = seen.body.toString('utf8');
  const inHeader = (JSON.parse(body) as Json)['x402Version'] === 1 ? '' : seen.body.toString('base64');
  if (header !== inHeader) faults.push('the header is not the base64 of the body');
  if (header.length > MAX_HEADER_BYTES)
    faults.push(`the header has ${header.length} bytes, which is too long`);
  const { x402Version, accepts } = JSON.parse(body) as {
    x402Version: number;
    accepts: Json[];
  };
  const wanted = {
    scheme: 'exact',
    network: x402Version === 2 ? terms.network : terms.v1Network,
    amount: operation.price.atomic.toString(),
    maxAmountRequired: operation.price.atomic.toString(),
    asset: terms.asset,
    payTo: terms.payTo,
    resource: terms.publicUrl + operation.path,
  };
  for (const [index, option] of accepts.entries()) {
    for (const [key, value] of Object.entries(wanted)) {
      if (option[key] !== value)
        faults.push(
          `accepts.${index}.${key} is ${JSON.stringify(option[key])}, not ${JSON.stringify(value)}`,
        );
    }
  }
  return faults;
}

/** The errors that the x402 project's own schemas find in a challenge. */
export function x402Faults(seen: Seen): string[] {
  if (seen.status !== 402) return [];
  const parsed = parsePaymentRequired(JSON.parse(seen.body.toString('utf8')));
  return parsed.success ? [] : [parsed.error.message];
}

/** Examples in a document that don't validate against the schema next to them. */
export function exampleFaults(document: Json): string[] {
  const ajv = createAjv().addSchema(document, 'contract');
  const faults: string[] = [];
  const visit = (node: unknown, pointer: string): void => {
    if (typeof node !== 'object' || node === null) return;
    if ('schema' in node && 'example' in node) {
      const validate = ajv.compile({ $ref: `contract#${pointer}/schema` });
      if (!validate(node.example)) faults.push(`${pointer}: ${ajv.errorsText(validate.errors)}`);
    }
    for (const [key, value] of Object.entries(node))
      if (key !== 'example') visit(value, `${pointer}/${escaped(key)}`);
  };
  visit(document, '');
  return faults;
}

/** JSON pointers to the objects of an answer that don't allow additional fields. */
export function closedAnswers(document: Json): string[] {
  const { components, paths } = document as { components: Json; paths: Record<string, Record<string, Json>> };
  const closed = [...closedObjects(components['schemas'], '#/components/schemas')];
  closed.push(...closedObjects(components['responses'], '#/components/responses'));
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, { responses }] of Object.entries(item))
      closed.push(...closedObjects(responses, `#/paths/${path}/${method}/responses`));
  }
  return closed;
}

function* closedObjects(node: unknown, pointer: string): Generator<string> {
  if (typeof node !== 'object' || node === null) return;
  const { type, additionalProperties } = node as Json;
  if (type === 'object' && !additionalProperties) yield pointer;
  for (const [key, value] of Object.entries(node))
    if (key !== 'example' || pointer.endsWith('/properties'))
      yield* closedObjects(value, `${pointer}/${key}`);
}
