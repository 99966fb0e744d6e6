import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Json } from '../../contract/json.js';
import { isResourceOf, resourcesOf, serverOf, type Catalogue, type FreeDocument } from './catalogue.js';
import { must, type Findings } from './findings.js';
import { call, expectHeader, expectStatus, isObject, jsonOf } from './http-call.js';
import { follow } from './sample.js';

const DISCOVERY = '/.well-known/x402';

/** Checks that a shop's documents are consistent. */
export async function checkDocuments(catalogue: Catalogue, findings: Findings): Promise<void> {
  const { base, sold, document, discovery, index } = catalogue;
  await findings.must('something is sold here', () =>
    must(
      sold.length > 0,
      `${base} has no /openapi.json with prices, no ${DISCOVERY} with resources, and does not answer 402 itself`,
    ),
  );
  await findings.should('an agent finds what is sold: /openapi.json or /.well-known/x402', () =>
    must(document ?? discovery, 'neither of these documents exists'),
  );
  if (document) {
    await findings.must('/openapi.json names this address', () => {
      const url = serverOf(document, base);
      must(url?.startsWith(base), `servers lists ${url ?? 'nothing'}: set PUBLIC_URL to ${base}`);
    });
  }
  if (discovery) await checkDiscovery(catalogue, discovery, findings);
  if (index)
    await findings.must('/ is an index whose prices and links are correct', () =>
      checkIndex(catalogue, index),
    );
  for (const free of catalogue.free) await checkFree(catalogue, free, findings);
}

async function checkDiscovery(catalogue: Catalogue, discovery: Json, findings: Findings): Promise<void> {
  const { base, sold, document, free } = catalogue;
  const resources = resourcesOf(discovery);
  await findings.must(`${DISCOVERY} lists every paid operation once, and each answers 402`, () => {
    must(new Set(resources).size === resources.length, `it lists an operation twice: ${resources.join(' ')}`);
    for (const operation of document ? sold : []) {
      const listed = resources.some(resource => isResourceOf(operation, base, resource));
      must(listed, `it lists ${resources.join(' ') || 'nothing'}, but not ${operation.url}`);
    }
    const dead = sold.find(({ method }) => !method);
    must(!dead, `nothing at ${dead?.url} answers 402`);
  });
  if (typeof discovery['instructions'] === 'string')
    await findings.should(`the instructions in ${DISCOVERY} state every price`, () =>
      checkInstructions(catalogue, String(discovery['instructions'])),
    );
  const parts = free.filter(({ path }) => path.endsWith(DISCOVERY) && path !== DISCOVERY);
  if (parts.length)
    await findings.must('the other discovery documents list operations that are sold, each once', () =>
      checkParts(catalogue, parts),
    );
}

function checkInstructions({ sold }: Catalogue, instructions: string): void {
  const lines = instructions.split('\n');
  for (const { method, path, amount } of sold) {
    const told = lines.some(
      line => line.includes(`${method} ${path} `) && (!amount || line.includes(`${amount} USDC`)),
    );
    must(told, `they don't say that ${method} ${path} costs ${amount} USDC`);
  }
}

async function checkParts({ base, sold }: Catalogue, parts: FreeDocument[]): Promise<void> {
  const listed: string[] = [];
  for (const { path, url } of parts) {
    const resources = resourcesOf(jsonOf(await call(url)));
    must(resources.length > 0, `${path} lists nothing`);
    listed.push(...resources);
  }
  const strange = listed.find(resource => !sold.some(operation => isResourceOf(operation, base, resource)));
  must(strange === undefined, `they list ${strange}, which is not sold`);
  must(new Set(listed).size === listed.length, `they list an operation twice: ${listed.join(' ')}`);
}

async function checkIndex({ base, sold }: Catalogue, index: Json): Promise<void> {
  const told = index['endpoints'] as Json;
  for (const { method, path, amount } of sold) {
    const price = told[`${method} ${path}`];
    must(
      amount === undefined || price === `${amount} USDC`,
      `the price of ${method} ${path} is ${String(price)}`,
    );
  }
  must(Object.keys(told).length === sold.length, `it lists ${Object.keys(told).join(', ')}`);
  for (const path of [index['discovery'], index['upstreamDiscovery'], index['health']].flat()) {
    if (typeof path !== 'string') continue;
    const { status } = await call(base + path);
    must(status === 200, `${path} answers ${status}`);
  }
}

async function checkFree(catalogue: Catalogue, free: FreeDocument, findings: Findings): Promise<void> {
  const { path, url, operation } = free;
  const responses = isObject(operation['responses']) ? operation['responses'] : {};
  await findings.must(`GET ${path} answers as /openapi.json describes it`, async () => {
    const reply = await call(url);
    expectStatus(reply, 200);
    const document = catalogue.document ?? {};
    const { content } = follow(document, responses['200']);
    const media = isObject(content) ? content['application/json'] : undefined;
    if (!isObject(media)) return;
    const value = jsonOf(reply);
    const fault = offSchema(document, media['schema'], value);
    must(!fault, `the answer does not match its schema: ${fault}`);
    if (path.endsWith('/health') && 'status' in value)
      must(
        value['status'] === 'ok',
        `it says ${String(value['status'])}: ${JSON.stringify(value).slice(0, 300)}`,
      );
  });
  if ('304' in responses)
    await findings.should(
      `GET ${path} has an ETag and answers 304 to it; HEAD is the same without a body`,
      () => checkCached(url),
    );
}

async function checkCached(url: string): Promise<void> {
  const reply = await call(url);
  expectStatus(reply, 200);
  expectHeader(reply, 'etag', /^(W\/)?"[^"]+"$/);
  expectHeader(reply, 'access-control-allow-origin', /^\*$/);
  expectHeader(reply, 'access-control-expose-headers', /\bETag\b/i);
  const etag = reply.headers.get('etag') ?? '';
  const again = await call(url, { headers: { 'if-none-match': etag } });
  must(again.status === 304, `If-None-Match with its own ETag answers ${again.status} instead of 304`);
  const head = await call(url, { method: 'HEAD' });
  must(head.status === 200, `HEAD answers ${head.status}`);
  must(head.headers.get('etag') === etag, 'HEAD has a different ETag');
}

/** Why a schema of a document refuses a value; undefined if it does not, or if the schema can't be used. */
export function offSchema(document: Json, schema: unknown, value: unknown): string | undefined {
  const ajv = new Ajv2020({ strict: false, validateSchema: false, logger: false });
  formats.default(ajv);
  let validate: ValidateFunction;
  try {
    const { components } = document;
    validate = ajv.compile({ ...(isObject(schema) ? schema : {}), components });
  } catch {
    return undefined;
  }
  return validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: 'body' });
}
