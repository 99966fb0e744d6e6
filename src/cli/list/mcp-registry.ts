import ajv from 'ajv';
import formats from 'ajv-formats';
import type { Json } from '../../contract/json.js';
import { SERVER_JSON_PATH } from '../../documents/mcp-server-json.js';
import { must, type Findings } from '../conformance/findings.js';
import { isObject, textOf } from '../conformance/http-call.js';
import { askDirectory, type Standing } from './directory.js';
import type { ReadShop } from './read-shop.js';
import { SERVER_JSON_SCHEMA } from './server-json-schema.js';

/** The URL of the MCP registry. */
export const MCP_REGISTRY = 'https://registry.modelcontextprotocol.io';

const DIRECTORY = 'MCP registry';
const MAX_ERRORS = 3;

/**
 * Checks the shop's entry for the registry against the schema that the registry publishes, and asks the registry whether it has the entry.
 * @param registry undefined: the registry is not asked
 */
export async function askMcpRegistry(
  { catalogue: { base } }: ReadShop,
  registry: string | undefined,
  findings: Findings,
): Promise<Standing> {
  const next = stepsOf(base);
  const heard = await askDirectory(base + SERVER_JSON_PATH);
  if ('why' in heard || heard.status !== 200) {
    const found = `the shop has no ${SERVER_JSON_PATH}, so it sells no tools over MCP`;
    return { directory: DIRECTORY, state: 'not listed', found, next: [] };
  }
  const entry = heard.json;
  await findings.must(`${SERVER_JSON_PATH} conforms to the schema of the MCP registry`, () =>
    lookAtEntry(entry),
  );
  const name = textOf(entry['name']);
  if (registry === undefined)
    return { directory: DIRECTORY, state: 'unknown', found: 'it was not asked', next };
  const answer = await askDirectory(`${registry}/v0.1/servers/${encodeURIComponent(name)}/versions/latest`);
  if ('why' in answer) return { directory: DIRECTORY, state: 'unknown', found: `it ${answer.why}`, next };
  if (answer.status === 404)
    return { directory: DIRECTORY, state: 'not listed', found: `it has no entry named ${name}`, next };
  const { server } = answer.json;
  if (answer.status !== 200 || !isObject(server))
    return {
      directory: DIRECTORY,
      state: 'unknown',
      found: `it answered ${answer.status} without an entry`,
      next,
    };
  const [there, here] = [textOf(server['version']), textOf(entry['version'])];
  if (there === here)
    return {
      directory: DIRECTORY,
      state: 'listed',
      found: `${name} is listed there in version ${here}`,
      next: [],
    };
  const found = `${name} is listed there in version ${there}; the shop has ${here}`;
  return { directory: DIRECTORY, state: 'partly listed', found, next };
}

function lookAtEntry(entry: Json): void {
  const validator = new ajv.default({ strict: false, allErrors: true, logger: false });
  formats.default(validator);
  const validate = validator.compile(SERVER_JSON_SCHEMA);
  if (validate(entry)) return;
  const errors = (validate.errors ?? []).slice(0, MAX_ERRORS);
  must(
    false,
    `${validator.errorsText(errors, { dataVar: 'server.json' })}: it is generated from info in openapi.yaml and from PUBLIC_URL`,
  );
}

/** The name begins with the host name in reverse order, so the owner must prove that the host is theirs. */
function stepsOf(base: string): string[] {
  const { hostname } = new URL(base);
  return [
    `curl -fsS ${base}${SERVER_JSON_PATH} -o server.json`,
    `mcp-publisher login http --domain=${hostname} --private-key=<hex of an Ed25519 seed> (its help says what to serve under /.well-known)`,
    'mcp-publisher publish (again after each change of info.version)',
  ];
}
