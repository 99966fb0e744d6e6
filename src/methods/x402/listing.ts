import type { PricedOperation } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import { MCP_PATH } from '../../contract/reserved-names.js';
import type { ToolShape } from '../method.js';
import { resourceOf } from './challenge.js';
import { bazaarOf } from './describe-call.js';
import type { Terms } from './requirements.js';
import { bazaarOfTool } from './tool-challenge.js';

/** An operation's entry in the directory of a facilitator (members of an x402 v2 PaymentPayload). */
export type ListingParts = { resource: Json; extensions: { bazaar: Json } };

/** A listing is not sent in a header, but facilitators limit the size of requests. */
const MAX_BYTES = 16 * 1024;

/**
 * The listing of an operation that was called over HTTP, or as an MCP tool with this shape. It comes from the contract, with nothing from
 * the buyer. If it is too long, the example of the answer is left out, then the schemas.
 */
export function listingOf(operation: PricedOperation, terms: Terms, tool?: ToolShape): ListingParts {
  const resource = resourceOf(operation, terms);
  // Directories read the URL of the MCP server from `resource`, and the name of the tool from `bazaar`.
  const url = terms.publicUrl + MCP_PATH;
  if (tool) return { resource: { ...resource, url }, extensions: { bazaar: bazaarOfTool(operation, tool) } };
  const whole = bazaarOf(operation, true);
  const shortest = { resource, extensions: { bazaar: bazaarOf(operation, false) } };
  const longer = [withAnswer(whole, operation), whole].map(bazaar => ({ resource, extensions: { bazaar } }));
  return longer.find(each => Buffer.byteLength(JSON.stringify(each)) <= MAX_BYTES) ?? shortest;
}

/** Adds the example of a JSON answer. */
function withAnswer(bazaar: Json, { answers: [{ kind, example }] }: PricedOperation): Json {
  const { info } = bazaar as { info: { output: Json } };
  if (kind !== 'json' || example === undefined) return bazaar;
  return { ...bazaar, info: { ...info, output: { ...info.output, example } } };
}
