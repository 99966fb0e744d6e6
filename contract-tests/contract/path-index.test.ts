import { expect } from 'chai';
import fc from 'fast-check';
import { OpenAPIRouter } from 'openapi-backend';
import type { Contract, PricedOperation } from '../../src/contract/contract.js';
import { parameterNames, PathIndex, rawParameters } from '../../src/contract/paths.js';
import { Routes } from '../../src/contract/routes.js';

const segment = fc.constantFrom('a', 'b', 'a.b', '{x}', '{y}.b', 'a{z}', 'a.{w}.b', '');
const template = fc
  .array(segment, { minLength: 1, maxLength: 4 })
  .map(segments => `/${segments.join('/')}`)
  .filter(path => new Set(parameterNames(path)).size === parameterNames(path).length);
const operation = fc.record({ path: template, method: fc.constantFrom('get', 'post') });
const unnamed = (path: string): string => path.replace(/\{[^}]*\}/g, '{}');
const operations = fc.uniqueArray(operation, {
  maxLength: 12,
  selector: ({ path, method }) => `${method} ${unnamed(path)}`,
});
const sent = fc
  .array(fc.constantFrom('a', 'b', 'a.b', 'a.b.b', 'ab', 'c', '', '.b', '%61', '{x}'), { maxLength: 5 })
  .map(segments => `/${segments.join('/')}`);

type Declared = { path: string; method: string };

/** The operation that openapi-backend finds among all operations. */
function matchOf(all: readonly Declared[], method: string, path: string): string | undefined {
  const paths: Record<string, Record<string, object>> = {};
  for (const each of all)
    (paths[each.path] ??= {})[each.method] = { operationId: `${each.method} ${each.path}`, responses: {} };
  const definition = { openapi: '3.1.0', info: { title: '', version: '' }, paths };
  const router = new OpenAPIRouter({ definition, ignoreTrailingSlashes: false });
  return router.matchOperation({ method, path, headers: {} })?.operationId;
}

function contractOf(all: readonly Declared[]): Contract {
  const paid = all.map(
    ({ path, method }) =>
      ({
        id: `${method} ${path}`,
        method: method.toUpperCase(),
        path,
        parameters: [],
        answers: [{ mimeType: 'application/json', kind: 'json' }],
      }) as unknown as PricedOperation,
  );
  return { document: { openapi: '3.1.0', info: {}, paths: {} }, paid, given: [], free: [] };
}

describe('The path index', () => {
  it('gives openapi-backend fewer operations to search, and never changes the one that is found', async () => {
    await fc.assert(
      fc.asyncProperty(operations, fc.array(sent, { minLength: 5, maxLength: 20 }), async (all, paths) => {
        const routes = await Routes.create(contractOf(all));
        for (const path of [...paths, ...all.map(each => each.path)])
          for (const method of ['get', 'post']) {
            const route = routes.match(method.toUpperCase(), path);
            const found = route.kind === 'operation' ? route.id : undefined;
            expect(found, `${method} ${path}`).to.equal(matchOf(all, method, path));
          }
      }),
      { numRuns: 30, endOnFailure: true },
    );
  });

  it('narrows a thousand operations to the few candidates, in the order of the contract', () => {
    const all = Array.from({ length: 1_000 }, (_, index) => ({ path: `/v1/s${index}/{id}` }));
    const index = new PathIndex([...all, { path: '/v1/{any}/one' }, { path: '/v1/s7/one' }]);
    expect(index.candidates('/v1/s7/one').map(({ path }) => path)).to.deep.equal([
      '/v1/s7/{id}',
      '/v1/{any}/one',
      '/v1/s7/one',
    ]);
    expect(index.candidates('/v1/s7/two')).to.deep.equal([{ path: '/v1/s7/{id}' }]);
    expect(index.candidates('/v1/s7')).to.deep.equal([]);
    expect(index.candidates(`/v1${'/s'.repeat(5_000)}`)).to.deep.equal([]);
  });

  it('reads parameters as they were sent', () => {
    expect(rawParameters('/a/{id}.json/{name}', '/a/1%2F2.json/x.y')).to.deep.equal({
      id: '1%2F2',
      name: 'x.y',
    });
    expect(rawParameters('/a/b', '/a/b')).to.deep.equal({});
  });
});
