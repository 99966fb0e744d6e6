import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Contract, FreeOperation, PricedOperation, RequestBody } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import { queryPairs } from '../../contract/query-styles.js';
import { follow, objectOf } from '../../contract/references.js';
import { writtenExample } from '../../contract/sent-body.js';

/** Where the collection is, in the folder of a shop. */
export const COLLECTION = join('generated', 'bruno');

type Call = {
  method: string;
  path: string;
  query: [name: string, value: string][];
  body?: unknown;
  form?: [string, string][];
  text?: string;
};
/** One request of the collection, and the assertions on its answer. */
type Request = Call & { name: string; headers: Record<string, string>; status: number; receipt?: string };

/** The address of `coinslot mock`, and a payment that a mock accepts. */
const ENVIRONMENT = 'vars {\n  url: http://127.0.0.1:4010\n  payment: mock\n}\n';

/**
 * A Bruno collection of a contract, file by file: a folder for each operation, with a request without payment, one with a payment, and one
 * for every declared status, which a mock answers (`Prefer: code=N`).
 */
export function brunoCollection(contract: Contract): Record<string, string> {
  const title = String(objectOf(contract.document.info).title);
  const files: Record<string, string> = {
    'bruno.json': `${JSON.stringify({ version: '1', name: title, type: 'collection' }, undefined, 2)}\n`,
    [join('environments', 'mock.bru')]: ENVIRONMENT,
  };
  const folders = [
    ...contract.paid.map(each => [each.id, paidRequests(contract, each)] as const),
    ...contract.free.map(each => [each.id, freeRequests(contract, each)] as const),
  ];
  for (const [id, requests] of folders)
    requests.forEach((request, n) => {
      files[join(id, `${request.name}.bru`)] = written(request, n + 1);
    });
  return files;
}

/** Replaces the collection in the folder of a shop. */
export function writeCollection(shop: string, contract: Contract): void {
  const folder = join(shop, COLLECTION);
  rmSync(folder, { recursive: true, force: true });
  for (const [name, text] of Object.entries(brunoCollection(contract))) {
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

function paidRequests(contract: Contract, operation: PricedOperation): Request[] {
  const { method, path, examplePath, parameters, request, answers } = operation;
  const query = parameters
    .filter(each => each.in === 'query' && each.required)
    .flatMap(each => queryPairs(each, each.example));
  const sent = request && bodyOf(request);
  const call: Call = {
    method,
    path: examplePath,
    query,
    ...sent,
  };
  const own = Object.fromEntries(
    parameters
      .filter(each => each.in === 'header' && each.required)
      .map(({ name, example }) => [name, [example].flat().join(', ')]),
  );
  const payment = { ...own, 'PAYMENT-SIGNATURE': '{{payment}}' };
  return [
    { ...call, name: 'unpaid', headers: own, status: 402, receipt: 'payment-required' },
    { ...call, name: 'paid', headers: payment, status: answers[0].status, receipt: 'payment-response' },
    ...statusesOf(contract, path, method).map(status => ({
      ...call,
      name: `status-${status}`,
      headers: { ...payment, Prefer: `code=${status}` },
      status,
    })),
  ];
}

/** The body of a request. Left out if it is binary or has files, because a collection contains only text. */
function bodyOf(request: RequestBody): Pick<Call, 'body' | 'form' | 'text'> {
  const { kind, example } = request;
  if (kind === 'json') return { body: example };
  if (kind === 'form') return { form: [...new URLSearchParams(String(writtenExample(request).body))] };
  return kind === 'text' ? { text: String(example) } : {};
}

function freeRequests(contract: Contract, { path }: FreeOperation): Request[] {
  const { document } = contract;
  const item = objectOf(objectOf(document.paths)[path]);
  const declared = [item.parameters, objectOf(item.get).parameters].flatMap(list =>
    Array.isArray(list) ? list.map(each => follow(document, each)) : [],
  );
  const call: Call = {
    method: 'GET',
    path: path.replace(/\{([^{}]+)\}/g, (_braces, name: string) => exampleOf(declared, name)),
    query: [],
  };
  return [
    { ...call, name: 'free', headers: {}, status: 200 },
    ...statusesOf(contract, path, 'GET')
      .filter(status => status !== 200)
      .map(status => ({ ...call, name: `status-${status}`, headers: { Prefer: `code=${status}` }, status })),
  ];
}

function exampleOf(parameters: Json[], name: string): string {
  const example: unknown = parameters.find(each => each.in === 'path' && each.name === name)?.example ?? name;
  return encodeURIComponent(typeof example === 'string' ? example : JSON.stringify(example));
}

function statusesOf({ document }: Contract, path: string, method: string): number[] {
  const operation = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
  return Object.keys(objectOf(operation.responses)).map(Number);
}

/** Blocks in Bruno's file format, with text indented by two spaces. */
function written(
  { name, method, path, query, headers, body, form, text, status, receipt }: Request,
  seq: number,
): string {
  const search = query.map(each => each.map(encodeURIComponent).join('=')).join('&');
  const url = `{{url}}${path}${search ? `?${search}` : ''}`;
  const kind = form ? 'form-urlencoded' : text !== undefined ? 'text' : body === undefined ? 'none' : 'json';
  return [
    block('meta', [`name: ${name}`, 'type: http', `seq: ${seq}`]),
    block(method.toLowerCase(), [`url: ${url}`, `body: ${kind}`, 'auth: none']),
    ...(query.length
      ? [
          block(
            'params:query',
            query.map(each => each.join(': ')),
          ),
        ]
      : []),
    ...(Object.keys(headers).length
      ? [
          block(
            'headers',
            Object.entries(headers).map(each => each.join(': ')),
          ),
        ]
      : []),
    ...(form
      ? [
          block(
            'body:form-urlencoded',
            form.map(each => each.join(': ')),
          ),
        ]
      : []),
    ...(text === undefined ? [] : [block('body:text', text.split('\n'))]),
    ...(body === undefined ? [] : [block('body:json', JSON.stringify(body, undefined, 2).split('\n'))]),
    block('assert', [
      `res.status: eq ${status}`,
      ...(receipt ? [`res.headers['${receipt}']: isDefined`] : []),
    ]),
  ].join('\n');
}

function block(name: string, lines: string[]): string {
  return `${name} {\n${lines.map(line => `  ${line}\n`).join('')}}\n`;
}
