import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runFolder } from './processes.js';

/** An unpaid call of its first operation with a body. */
export const FIRST = { path: '/api/v1/item0s', body: '{"name":"a","price":1}' };

/** The schemas that FastAPI adds to each document. */
const ERRORS = {
  ValidationError: {
    type: 'object',
    required: ['loc', 'msg', 'type'],
    properties: {
      loc: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
      msg: { type: 'string' },
      type: { type: 'string' },
    },
  },
  HTTPValidationError: {
    type: 'object',
    properties: { detail: { type: 'array', items: { $ref: '#/components/schemas/ValidationError' } } },
  },
};

/** The three operations of one resource. @param {string} name */
function schemasOf(name) {
  const fields = {
    name: { type: 'string', title: 'Name' },
    price: { type: 'number', minimum: 0, title: 'Price' },
    tags: { type: 'array', items: { type: 'string' }, default: [], title: 'Tags' },
    note: { anyOf: [{ type: 'string' }, { type: 'null' }], title: 'Note' },
    kind: { type: 'string', enum: ['a', 'b'], default: 'a', title: 'Kind' },
  };
  const own = {
    id: { type: 'integer', title: 'Id' },
    created_at: { type: 'string', format: 'date-time', title: 'Created At' },
    owner: { anyOf: [{ $ref: `#/components/schemas/${name}Owner` }, { type: 'null' }] },
  };
  return {
    [`${name}Create`]: { type: 'object', required: ['name', 'price'], properties: fields },
    [name]: { type: 'object', required: ['name', 'price', 'id'], properties: { ...fields, ...own } },
    [`${name}Owner`]: {
      type: 'object',
      required: ['id', 'name'],
      properties: {
        id: { type: 'string', format: 'uuid' },
        name: { type: 'string' },
        email: { type: 'string' },
      },
    },
  };
}

/** @param {object} schema */
const jsonOf = schema => ({ content: { 'application/json': { schema } } });

/** @param {object} schema */
const answers = schema => ({
  200: { description: 'Successful Response', ...jsonOf(schema) },
  422: { description: 'Validation Error', ...jsonOf({ $ref: '#/components/schemas/HTTPValidationError' }) },
});

/**
 * Writes a contract like the one that `coinslot import` makes from a FastAPI app: each resource can be listed, created and read.
 * @param {number} count of operations @returns {string} a folder that is not built yet
 */
export function fastapiShop(count) {
  /** @type {Record<string, object>} */
  const paths = {};
  const schemas = { ...ERRORS };
  for (let number = 0; number < count; number++) {
    const resource = Math.floor(number / 3);
    const name = `Item${resource}`;
    const item = { $ref: `#/components/schemas/${name}` };
    Object.assign(schemas, schemasOf(name));
    const path = `/api/v1/item${resource}s${number % 3 === 2 ? '/{item_id}' : ''}`;
    const sold = {
      tags: [`part ${resource % 20}`],
      'x-price': { mode: 'fixed', currency: 'USD', amount: '0.01', flow: 'authorization' },
      'x-upstream': { url: `https://api.example.com${path}` },
    };
    const kinds = [
      {
        post: {
          operationId: `create_item${resource}`,
          ...sold,
          requestBody: { required: true, ...jsonOf({ $ref: `#/components/schemas/${name}Create` }) },
          responses: answers(item),
        },
      },
      {
        get: {
          operationId: `list_item${resource}s`,
          ...sold,
          parameters: [
            { name: 'skip', in: 'query', schema: { type: 'integer', default: 0, minimum: 0 } },
            { name: 'limit', in: 'query', schema: { type: 'integer', default: 100, maximum: 1_000 } },
            { name: 'q', in: 'query', schema: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
          ],
          responses: answers({ type: 'array', items: item }),
        },
      },
      {
        get: {
          operationId: `read_item${resource}`,
          ...sold,
          parameters: [{ name: 'item_id', in: 'path', required: true, schema: { type: 'integer' } }],
          responses: answers(item),
        },
      },
    ];
    paths[path] = { ...paths[path], ...kinds[number % 3] };
  }
  const folder = runFolder(`fastapi-${count}`);
  mkdirSync(folder, { recursive: true });
  const document = {
    openapi: '3.1.0',
    info: { title: 'FastAPI', version: '0.1.0' },
    paths,
    components: { schemas },
  };
  writeFileSync(join(folder, 'openapi.yaml'), JSON.stringify(document, undefined, 1));
  return folder;
}
