import process from 'node:process';
import { pathToFileURL, URL } from 'node:url';

/** Where the compiled code of the server is. */
const built = process.env.COINSLOT_BUILT
  ? pathToFileURL(`${process.env.COINSLOT_BUILT}/`)
  : new URL('../../dist/', import.meta.url);
const { parseContract } = await import(new URL('src/contract/parse-contract.js', built).href);
const { serviceOf } = await import(new URL('src/methods/x402/service.js', built).href);
const { MAX_HEADER_BYTES, renderChallenge } = await import(
  new URL('src/methods/x402/challenge.js', built).href
);

/** The longest values that a server adds: a URL of 60 characters, addresses of 44. */
const ADDRESS = 'z'.repeat(44);
const TERMS = {
  network: `solana:${'z'.repeat(32)}`,
  v1Network: 'solana-devnet',
  asset: ADDRESS,
  payTo: ADDRESS,
  publicUrl: `https://${'a'.repeat(52)}`,
};
const LIVE = { feePayer: ADDRESS, recentBlockhash: ADDRESS };

/** The challenge is also sent in a response header, and proxies truncate long headers. */
function challengeFitsAHeader() {
  return {
    Root: {
      leave(_root, { location, report }) {
        const contract = readContract(location.source.body, report, location);
        for (const operation of contract?.paid ?? []) {
          const terms = { ...TERMS, service: serviceOf(contract, TERMS.publicUrl) };
          const { length } = renderChallenge(operation, terms, LIVE).headers['PAYMENT-REQUIRED'];
          if (length > MAX_HEADER_BYTES) {
            report({
              message: `The challenge of ${operation.id} takes ${length} header bytes, at most ${MAX_HEADER_BYTES} pass: shorten its summary, request schema or example.`,
              location: location.child(['paths', operation.path, 'post']),
            });
          }
        }
      },
    },
  };
}

function readContract(text, report, location) {
  try {
    return parseContract(text);
  } catch (error) {
    report({ message: `The server refuses this contract. ${error.message}`, location });
    return undefined;
  }
}

export default function coinslotRules() {
  return { id: 'coinslot', rules: { oas3: { 'challenge-fits-a-header': challengeFitsAHeader } } };
}
