import type { Contract } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { objectOf } from '../contract/references.js';
import { MCP_PATH } from '../contract/reserved-names.js';
import type { Selling } from './discovery.js';
import { serviceOf } from '../methods/x402/service.js';

/** The path of this service's entry for an MCP registry. */
export const SERVER_JSON_PATH = '/.well-known/mcp/server.json';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
/** The member for publishers' own data. */
const PUBLISHER = 'io.modelcontextprotocol.registry/publisher-provided';
const MAX_TEXT = 100;

/**
 * The entry of this service for the MCP registry (its `server.json`), which `mcp-publisher` publishes. Its name consists of the host name
 * in reverse order and the title, such as `com.example.shop/petstore`. The publisher must prove that the host is theirs.
 */
export function serverJson(contract: Contract, selling: Selling): Json {
  const { publicUrl } = selling;
  const { title, version, summary, description } = objectOf(contract.document.info);
  const { name } = serviceOf(contract, publicUrl);
  const [about] = [summary, description, title].filter(text => typeof text === 'string' && text !== '');
  return {
    $schema: SCHEMA,
    name: `${namespaceOf(publicUrl)}/${slugOf(name)}`,
    title: String(title).slice(0, MAX_TEXT),
    description: shortened(String(about)),
    version: String(version),
    websiteUrl: publicUrl,
    remotes: [{ type: 'streamable-http', url: `${publicUrl}${MCP_PATH}` }],
    _meta: {
      [PUBLISHER]: {
        payment: selling.methods.first.documents().terms,
        prices: Object.fromEntries(contract.paid.map(({ id, price }) => [id, price.shown])),
      },
    },
  };
}

function namespaceOf(publicUrl: string): string {
  const { hostname } = new URL(publicUrl);
  const address = /^[\d.]+$|^\[/.test(hostname);
  const labels = hostname.replace(/[[\]]/g, '').replaceAll(':', '.').split('.');
  return (address ? labels : labels.reverse()).filter(label => label !== '').join('.');
}

function slugOf(name: string): string {
  const slug = name.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  return slug.replace(/^-|-$/g, '') || 'shop';
}

/** The text, cut after a whole word if necessary. */
function shortened(text: string): string {
  const line = text.trim().replace(/\s+/g, ' ');
  if (line.length <= MAX_TEXT) return line;
  const kept = line.slice(0, MAX_TEXT - 1);
  return `${kept.slice(0, kept.lastIndexOf(' ') + 1 || undefined).trimEnd()}…`;
}
