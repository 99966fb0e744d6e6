import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Stoplight's Prism inside this process, from the packages of contract-tests/tools, which are installed on demand. */

const TOOLS = new URL('../../../contract-tests/tools/', import.meta.url);
const require = createRequire(new URL('package.json', TOOLS));

/** Why Prism can't be used here; empty if it can. */
export const noPrism = existsSync(new URL('node_modules/@stoplight/prism-http-server/', TOOLS))
  ? ''
  : 'contract-tests/tools is not installed: make lint-contract installs it';

export type Prism = { url: string; close(): Promise<void> };

type Logger = Record<string, unknown>;
type Server = { listen(port: number, host: string): Promise<string>; close(): Promise<void> };
type Modules = {
  http: { getHttpOperationsFromSpec(document: string): Promise<unknown[]> };
  server: {
    createServer(
      operations: unknown[],
      options: { cors: boolean; config: object; components: { logger: Logger } },
    ): Server;
  };
};

function modules(): Modules {
  return {
    http: require('@stoplight/prism-http') as Modules['http'],
    server: require('@stoplight/prism-http-server') as Modules['server'],
  };
}

export function prismVersion(): string {
  return (require('@stoplight/prism-cli/package.json') as { version: string }).version;
}

const silent: Logger = {
  ...Object.fromEntries(
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'start', 'success'].map(name => [name, () => {}]),
  ),
  child: () => silent,
};

/** A mock of a document, as `prism mock` serves it. */
export function startMock(file: URL): Promise<Prism> {
  return startPrism(file, { isProxy: false });
}

/**
 * A proxy that checks requests and answers, as `prism proxy` does, and names violations of the document in the
 * `sl-violations` header. `errors` is off, because otherwise Prism's own 422 would hide our 400 and 402.
 */
export function startProxy(file: URL, upstream: string): Promise<Prism> {
  return startPrism(file, { isProxy: true, upstream: new URL(upstream) });
}

async function startPrism(file: URL, mode: object): Promise<Prism> {
  const { http, server } = modules();
  const operations = await http.getHttpOperationsFromSpec(fileURLToPath(file));
  const prism = server.createServer(operations, {
    cors: true,
    config: {
      validateRequest: true,
      validateResponse: true,
      checkSecurity: true,
      errors: false,
      upstreamProxy: undefined,
      mock: { dynamic: false },
      ...mode,
    },
    components: { logger: silent },
  });
  const url = await prism.listen(0, '127.0.0.1');
  return { url, close: () => prism.close() };
}
