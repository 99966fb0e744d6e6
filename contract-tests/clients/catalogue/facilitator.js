import { once } from 'node:events';
import { createServer } from 'node:http';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { x402Facilitator } from '@x402/core/facilitator';
import { extractDiscoveryInfo } from '@x402/extensions/bazaar';
import { SettlementCache, toFacilitatorSvmSigner } from '@x402/svm';
import { ExactSvmScheme } from '@x402/svm/exact/facilitator';

/** The network of the sales: Solana's devnet, because the sandbox calls itself that. */
const NETWORK = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';

/**
 * A facilitator built from the official packages, with a directory like that of public facilitators: it lists what a
 * settled payment describes.
 * @param {{ key: Uint8Array, rpcUrl: string }} what
 */
export async function openFacilitator({ key, rpcUrl }) {
  const signer = await createKeyPairSignerFromBytes(key);
  const scheme = new ExactSvmScheme(
    toFacilitatorSvmSigner(signer, { defaultRpcUrl: rpcUrl }),
    new SettlementCache(),
  );
  const facilitator = new x402Facilitator().register(NETWORK, scheme);
  /** Each key has the URL, with the names of its path parameters instead of values, and the method or the tool's name. */
  const items = new Map();

  function list(paymentPayload, paymentRequirements) {
    let found;
    try {
      found = extractDiscoveryInfo(paymentPayload, paymentRequirements);
    } catch (error) {
      return { status: 'rejected', rejectedReason: error.message };
    }
    if (!found) return { status: 'rejected', rejectedReason: 'nothing to list' };
    const { resourceUrl, toolName, method, discoveryInfo, x402Version, routeTemplate, ...about } = found;
    items.set(`${resourceUrl} ${toolName ?? method}`, {
      resource: resourceUrl,
      type: discoveryInfo.input.type,
      x402Version,
      accepts: [paymentRequirements],
      lastUpdated: new Date().toISOString(),
      routeTemplate,
      ...about,
    });
    return { status: 'success' };
  }

  async function answer(method, url, body) {
    if (method === 'GET' && url.pathname === '/supported') return { body: facilitator.getSupported() };
    if (method === 'GET' && url.pathname === '/discovery/resources') {
      const all = [...items.values()];
      const pagination = { limit: all.length, offset: 0, total: all.length };
      return { body: { x402Version: 2, items: all, pagination } };
    }
    const { paymentPayload, paymentRequirements } = JSON.parse(body);
    if (url.pathname === '/verify')
      return { body: await facilitator.verify(paymentPayload, paymentRequirements) };
    const settled = await facilitator.settle(paymentPayload, paymentRequirements);
    const bazaar = settled.success ? list(paymentPayload, paymentRequirements) : undefined;
    return { body: settled, said: bazaar && { bazaar } };
  }

  const server = createServer(async (request, response) => {
    try {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const url = new URL(request.url, 'http://facilitator');
      const { body, said } = await answer(request.method, url, Buffer.concat(chunks).toString());
      const verdict = said && {
        'EXTENSION-RESPONSES': Buffer.from(JSON.stringify(said)).toString('base64'),
      };
      response.writeHead(200, { 'content-type': 'application/json', ...verdict });
      response.end(JSON.stringify(body));
    } catch (error) {
      response.writeHead(500, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: String(error) }));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}`, address: signer.address, items, server };
}
