/**
 * Preloaded into agentcash, in which Solana mainnet and a balance service are hard-coded. Makes the sandbox, which calls itself
 * devnet, look like mainnet, and answers for the balance service. All other requests fail, so no call leaves this machine.
 */
const MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const SANDBOX = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
const { COINSLOT_URL, RPC_URL } = process.env;
const { origin } = new URL(COINSLOT_URL);
const real = globalThis.fetch;

const renamed = (base64, from, to) =>
  Buffer.from(Buffer.from(base64, 'base64').toString().replaceAll(from, to)).toString('base64');

function withHeader(message, name, from, to) {
  const value = message.headers.get(name);
  if (value !== null) message.headers.set(name, renamed(value, from, to));
  return message;
}

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  const url = new URL(request.url);
  if (url.origin === origin) {
    const answer = await real(withHeader(request, 'payment-signature', MAINNET, SANDBOX));
    const copy = new Response(answer.body, answer);
    return withHeader(copy, 'payment-required', SANDBOX, MAINNET);
  }
  if (url.hostname === 'api.mainnet-beta.solana.com')
    return real(RPC_URL, { method: 'POST', headers: request.headers, body: await request.text() });
  if (url.pathname === '/api/balance') return Response.json(balance(await request.json()));
  throw new Error(`agentcash asked ${url.origin}${url.pathname}, which is not in the sandbox`);
};

function balance({ network }) {
  return { balance: 100, network: MAINNET, paymentNetwork: network, chainId: 101 };
}
