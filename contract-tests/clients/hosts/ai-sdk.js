import { examine } from './examine.js';

/** Calls a tool and converts its result to a message, as generateText does. */
async function handed(tool, args) {
  const output = await tool.execute(args, { toolCallId: 'call', messages: [] });
  const { type, value } = await tool.toModelOutput({ toolCallId: 'call', input: args, output });
  return type === 'content' ? value.map(({ text }) => text) : [JSON.stringify(value)];
}

/**
 * In neither version of the library can a call carry metadata, so each payment is a header of a client that makes only
 * that call. The arguments are the exports of one version: its client and its transport for commands.
 */
export function examineAiSdk({ createMCPClient }, { Experimental_StdioMCPTransport: Stdio }) {
  async function connected(transport) {
    const client = await createMCPClient({ transport });
    return { client, tools: await client.tools() };
  }
  return examine(async ({ url, command, args }) => {
    const { client, tools } = await connected(url ? { type: 'http', url } : new Stdio({ command, args }));
    return {
      tools: Object.keys(tools),
      call: async (name, asked, payment) => {
        if (!payment) return await handed(tools[name], asked);
        const header = Buffer.from(JSON.stringify(payment)).toString('base64');
        const paying = await connected({ type: 'http', url, headers: { 'PAYMENT-SIGNATURE': header } });
        const texts = await handed(paying.tools[name], asked);
        await paying.client.close();
        return texts;
      },
      close: () => client.close(),
    };
  });
}
