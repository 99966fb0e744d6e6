import {
  Agent,
  MCPServerStdio,
  MCPServerStreamableHttp,
  Runner,
  setTracingDisabled,
  Usage,
} from '@openai/agents';
import { examine } from './examine.js';

setTracingDisabled(true);

/** Stands in for a model: requests one call, and records what it gets of the result. */
class OneCall {
  texts = [];
  constructor(name, args) {
    this.asked = { type: 'function_call', callId: 'call', name, arguments: JSON.stringify(args) };
  }
  async getResponse({ input }) {
    const result = input.find(({ type }) => type === 'function_call_result');
    const text = { type: 'output_text', text: 'done' };
    const said = { type: 'message', role: 'assistant', status: 'completed', content: [text] };
    if (result) this.texts = [result.output].flat().map(part => part.text ?? JSON.stringify(part));
    return { usage: new Usage(), output: [result ? said : { ...this.asked, status: 'completed' }] };
  }
}

await examine(async ({ url, command, args }) => {
  const payments = {};
  const toolMetaResolver = ({ toolName }) => payments[toolName] && { 'x402/payment': payments[toolName] };
  // Runs that list the tools at the same time fail without the cache.
  const options = { name: 'shop', cacheToolsList: true, clientSessionTimeoutSeconds: 60, toolMetaResolver };
  const server = url
    ? new MCPServerStreamableHttp({ ...options, url })
    : new MCPServerStdio({ ...options, command, args });
  await server.connect();
  return {
    tools: (await server.listTools()).map(({ name }) => name),
    call: async (name, asked, payment) => {
      payments[name] = payment;
      const model = new OneCall(name, asked);
      const agent = new Agent({ name: 'buyer', model, mcpServers: [server] });
      await new Runner().run(agent, 'Buy.');
      return model.texts;
    },
    close: () => server.close(),
  };
});
