import { messageOf } from '../../ledger/fault.js';
import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
} from '@modelcontextprotocol/server';
import type { Tool } from '@modelcontextprotocol/client';
import { objectOf } from '../../contract/references.js';
import { toDecimal } from '../../price/amount.js';
import type { ToolResult } from '../../wallet/tool-result.js';
import type { Limits } from '../../wallet/purchase.js';
import { statementOf, type Wallet } from '../../wallet/open-wallet.js';
import { PurseFault } from '../../wallet/purse.js';
import type { PaidTools } from '../../wallet/paid-tools.js';
import { errorResult } from '../../wallet/results.js';
import { lostBecause, type Progress, type Shop } from '../../wallet/shop-connection.js';

export type WalletParts = {
  shop: Shop;
  paid: PaidTools;
  version: string;
} & Wallet;

const STATEMENT = 'wallet_statement';
const LINES = 20;
/** The maximum size of a statement in bytes. It is small, because a model has to read it. */
const MAX_BYTES = 4_096;

/** The MCP server that a host starts. It offers the shop's tools, for which it pays, and a tool of its own. */
export function walletServer(parts: WalletParts): Server {
  const { shop, limits, version } = parts;
  const info = { name: 'coinslot-wallet', title: `Wallet for ${shop.endpoint}`, version };
  const server = new Server(info, {
    capabilities: { tools: {}, resources: {} },
    instructions: `The tools of ${shop.endpoint}. ${rulesOf(limits)} Results say what was paid. If a call ends without an answer, call the same tool with the same arguments: it continues with the same payment and does not pay twice. ${STATEMENT} shows what was spent.`,
  });
  server.setRequestHandler('tools/list', async () => {
    const tools = await shop.tools().catch((error: unknown) => {
      const why = `The shop ${shop.endpoint} does not list its tools: ${lostBecause(error)}.`;
      throw new ProtocolError(ProtocolErrorCode.InternalError, why);
    });
    return { tools: [...tools.filter(({ name }) => name !== STATEMENT).map(listed), statementTool(limits)] };
  });
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const { progressToken } = objectOf(mcpReq._meta);
    const onProgress = (progress: Progress): void => {
      if (typeof progressToken !== 'string' && typeof progressToken !== 'number') return;
      const notified = { method: 'notifications/progress', params: { ...progress, progressToken } } as const;
      void mcpReq.notify(notified).catch(() => {});
    };
    const { name, arguments: args } = params;
    const asked = { tool: name, args: objectOf(args), signal: mcpReq.signal, onProgress };
    const result = name === STATEMENT ? statement(parts) : parts.paid.call(asked);
    return (await result.catch(faultResult)) as { content: [] };
  });
  // Resources are answers that are too long for a result. None are listed, because only the buyer of an answer gets its link.
  server.setRequestHandler('resources/list', () => ({ resources: [] }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const read = await shop.read(uri).catch(() => undefined);
    if (!read) throw new ResourceNotFoundError(uri);
    return read as { contents: [] };
  });
  return server;
}

/** A tool of the shop. Its output schema is left out, since hosts would apply it to the wallet's errors, too. */
function listed({ outputSchema: _, ...tool }: Tool): Tool {
  return tool;
}

function rulesOf({ maxPrice, budget }: Limits): string {
  return `This wallet pays for paid tools without asking, at most ${toDecimal(maxPrice)} USDC a call and ${toDecimal(budget)} USDC a day (UTC).`;
}

function statementTool(limits: Limits): Tool {
  const title = 'What this wallet has spent';
  return {
    name: STATEMENT,
    title,
    description: `Shows what is left of today's budget, the payments whose answer is missing, and the newest lines of the statement (at most ${LINES}). The link in a line leads to an answer, which can be read as a resource, or with pick_up, while the shop keeps it. ${rulesOf(limits)} Free.`,
    inputSchema: { type: 'object', properties: {} },
    annotations: { title, readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  };
}

async function statement({ paid, ...wallet }: WalletParts): Promise<ToolResult> {
  await paid.sweep();
  for (let lines = LINES; ; lines -= 1) {
    const value = statementOf(wallet, lines);
    const text = JSON.stringify(value);
    if (lines === 1 || Buffer.byteLength(text) <= MAX_BYTES)
      return { content: [{ type: 'text', text }], structuredContent: value };
  }
}

function faultResult(error: unknown): ToolResult {
  if (error instanceof PurseFault) return errorResult(error.message);
  return errorResult(
    `The wallet failed: ${messageOf(error).slice(0, 300)}. wallet_statement shows what was paid.`,
  );
}
