import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { examine } from './examine.js';

await examine(async ({ url, command, args }) => {
  const payments = {};
  // The hook can set headers, but not metadata.
  const beforeToolCall = ({ name }) =>
    payments[name] && {
      headers: { 'PAYMENT-SIGNATURE': Buffer.from(JSON.stringify(payments[name])).toString('base64') },
    };
  // Without this hook, a result with a single text is passed on as JSON, with its structured content and its metadata.
  const afterToolCall = ({ result: [content] }) => ({ result: content.map(({ text }) => text).join('\n') });
  const shop = url ? { transport: 'http', url } : { transport: 'stdio', command, args };
  const client = new MultiServerMCPClient({ mcpServers: { shop }, beforeToolCall, afterToolCall });
  const tools = await client.getTools();
  return {
    tools: tools.map(({ name }) => name),
    call: async (name, asked, payment) => {
      payments[name] = payment;
      const tool = tools.find(each => each.name === name);
      try {
        const { content } = await tool.invoke({ type: 'tool_call', id: 'call', name, args: asked });
        return [content]
          .flat()
          .map(part => part.text ?? (typeof part === 'string' ? part : JSON.stringify(part)));
      } catch (error) {
        // An agent's tool node passes the error's message to the model.
        return [error.message];
      }
    },
    close: () => client.close(),
  };
});
