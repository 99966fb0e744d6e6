import type { PricedOperation } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import { MCP_PATH } from '../../contract/reserved-names.js';
import type { ToolShape } from '../method.js';
import { resourceOf } from './challenge.js';
import { bazaarOf } from './describe-call.js';
import type { Terms } from './requirements.js';
import { bazaarOfTool } from './tool-challenge.js';

/** What the directory of a facilitator keeps of an operation (members of an x402 v2 PaymentPayload). */
export type ListingParts = { resource: Json; extensions: { bazaar: Json } };

/** No header has to hold it, but facilitators limit the requests that they read. */
const MAX_BYTES = 16 * 1024;

/**
 * How an operation is listed that was called over HTTP, or as the tool of MCP that has this shape. All of it is the contract's, nothing
 * the buyer's. If it would be too long, the example of the answer is left out, and then what the values of a call must be like.
 */
export function listingOf(operation: PricedOperation, terms: Terms, tool?: ToolShape): ListingParts {
  const resource = resourceOf(operation, terms);
  // Directories read the URL of a tool's server and its name from two places.
  const url = terms.publicUrl + MCP_PATH;
  if (tool) return { resource: { ...resource, url }, extensions: { bazaar: bazaarOfTool(operation, tool) } };
  const whole = bazaarOf(operation, true);
  const shortest = { resource, extensions: { bazaar: bazaarOf(operation, false) } };
  const longer = [withAnswer(whole, operation), whole].map(bazaar => ({ resource, extensions: { bazaar } }));
  return longer.find(each => Buffer.byteLength(JSON.stringify(each)) <= MAX_BYTES) ?? shortest;
}

/** With the example of an answer in JSON. */
function withAnswer(bazaar: Json, { answers: [{ kind, example }] }: PricedOperation): Json {
  const { info } = bazaar as { info: { output: Json } };
  if (kind !== 'json' || example === undefined) return bazaar;
  return { ...bazaar, info: { ...info, output: { ...info.output, example } } };
}
