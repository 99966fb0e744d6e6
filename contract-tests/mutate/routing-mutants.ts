import type { Mutant } from './mutants.js';

type Change = Omit<Mutant, 'test' | 'file'>;

function of(module: string, test: string, changes: readonly Change[]): Mutant[] {
  return changes.map(change => ({ ...change, file: `src/${module}.js`, test }));
}

/** Routing, validation and handlers, by openapi-backend or, for what it can't do, by our own code. */
export const routingMutants: readonly Mutant[] = [
  ...of('contract/routes', 'contract/routes', [
    {
      name: 'openapi-backend returns no operations',
      find: 'const all = api.router.getOperations();',
      replace: 'const all = [];',
      grep: 'finds every operation of the contract',
    },
    {
      name: 'openapi-backend sees no operations when it matches',
      find: 'api.router.getOperations = () => this.#candidates;',
      replace: 'api.router.getOperations = () => [];',
      grep: 'finds every operation of the contract',
    },
    {
      name: 'openapi-backend matches nothing',
      find: 'this.#api.router.matchOperation({ method: verb, path, headers: {} })',
      replace: 'undefined',
      grep: 'finds every operation of the contract',
    },
    {
      name: 'openapi-backend validates no answer',
      find: 'this.#api.validator.validateResponse(value, route.operation, status)',
      replace: '{ valid: true, errors: null }',
      grep: 'rejects a body that violates the contract',
    },
    {
      name: 'openapi-backend has no handlers',
      find: 'this.#api.register(id, (_context, call) => served.call(call));',
      replace: ';',
      grep: 'accepts handlers for its own operations only',
    },
  ]),
  ...of('contract/routes', 'contract/path-index', [
    {
      name: 'openapi-backend sees all operations but the last',
      find: 'this.#candidates = candidates;',
      replace: 'this.#candidates = this.#all.slice(0, -1);',
      grep: 'never changes the one that is found',
    },
  ]),
  ...of('contract/routes', 'http/any-contract', [
    {
      name: 'openapi-backend validates no parameters',
      find: 'this.#api.validator.validateRequest(request, operation)',
      replace: '{ valid: true, errors: null, coerced: { ...request, params: {} } }',
      grep: 'refuses /quotes/SOL?days=0',
    },
    {
      name: 'a path is normalized before it is matched',
      find: ' || path.trim() !== path',
      replace: '',
      grep: 'finds path templates by method',
    },
    {
      name: 'a number may be spelled in any way that JavaScript reads',
      find: 'misreadParameter(inQuery.texts, query) ??',
      replace: '',
      grep: 'limit=0x10',
    },
    {
      name: 'a path parameter may be a dot',
      find: 'const wrongPath = pathFault(raw);',
      replace: 'const wrongPath = undefined;',
      grep: 'refuses /quotes/%2e%2E',
    },
  ]),
  ...of('mcp/call-tool', 'mcp/tool-routes', [
    {
      name: 'the arguments of a tool are not routed',
      find: 'route.id === id',
      replace: 'true',
      grep: 'sells what the same path sells over HTTP',
    },
  ]),
];
