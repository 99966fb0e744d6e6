/**
 * This module is preloaded into mcpay. It sends mcpay's requests for devnet to the sandbox, which calls itself devnet. All other
 * requests fail, so no call leaves this machine.
 */
const { COINSLOT_URL, RPC_URL } = process.env;
const real = globalThis.fetch;

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  const { origin, hostname } = new URL(request.url);
  if (origin === new URL(COINSLOT_URL).origin) return real(request);
  if (hostname === 'api.devnet.solana.com')
    return real(RPC_URL, { method: 'POST', headers: request.headers, body: await request.text() });
  throw new Error(`mcpay asked ${origin}, which is not in the sandbox`);
};
