import type { PricedOperation } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import type { Challenge, ToolPart, ToolShape } from '../method.js';
import { UNPAID } from './challenge.js';
import { discovery } from './describe-call.js';

/** The metadata key under which some clients look for the challenge, instead of in the result. */
const CHALLENGE_KEY = 'x402/error';
const MCP_RESOURCE = 'mcp://tool/';
const UNPAID_TOOL =
  'Payment required: sign one of the accepted payments and call the tool again with it in _meta["x402/payment"] (clients of x402 v1: add ' +
  '?x402Version=1 to the URL of this MCP server)';

/**
 * x402's PaymentRequired for an MCP tool, in every place where a client looks for it. Its resource is the tool, and its discovery
 * extension describes the tool instead of the HTTP call.
 */
export function toolChallenge(operation: PricedOperation, { body }: Challenge, tool: ToolShape): ToolPart {
  const challenge = JSON.parse(body.toString('utf8')) as {
    x402Version: number;
    error?: string;
    resource?: Json;
    accepts: Json[];
    extensions?: Json;
  };
  const url = `${MCP_RESOURCE}${operation.id}`;
  const { error, resource, extensions } = challenge;
  const structured = {
    ...challenge,
    ...(error === UNPAID ? { error: UNPAID_TOOL } : {}),
    accepts: challenge.accepts.map(option => ({ ...option, resource: url })),
    // v1 has no `resource` and no `extensions` at this level.
    ...(challenge.x402Version === 1
      ? {}
      : {
          resource: { ...resource, url },
          extensions: { ...extensions, bazaar: bazaarOfTool(operation, tool) },
        }),
  };
  return { structured, meta: { [CHALLENGE_KEY]: structured } };
}

/** The discovery extension in its form for MCP tools. */
export function bazaarOfTool(operation: PricedOperation, { inputSchema, example }: ToolShape): Json {
  const { id, summary } = operation;
  const input = {
    type: 'mcp',
    toolName: id,
    description: summary,
    transport: 'streamable-http',
    inputSchema,
    example,
  };
  const fixed = (value: string): Json => ({ type: 'string', const: value });
  const properties = {
    type: fixed('mcp'),
    toolName: fixed(id),
    description: { type: 'string' },
    transport: { type: 'string', enum: ['streamable-http', 'sse'] },
    inputSchema: { type: 'object' },
    example: { type: 'object' },
  };
  return discovery(operation, input, { properties, required: ['type', 'toolName', 'inputSchema'] });
}
