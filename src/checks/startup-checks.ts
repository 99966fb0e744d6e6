import type { Contract } from '../contract/contract.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import type { NetworkName } from '../rails/solana/networks.js';
import { clockCheck, receiverCheck, rpcCheck } from './chain-checks.js';
import { MAX_HEADER_BYTES } from '../methods/header-bytes.js';
import { headerAdvice } from '../methods/x402/header-room.js';
import type { Challenge } from '../methods/method.js';
import type { Methods } from '../methods/methods.js';
import { facilitatorCheck } from './facilitator-checks.js';
import type { Facilitators } from '../facilitators/facilitators.js';
import type { Check, Finding } from './preflight.js';
import { mcpCheck } from './mcp-check.js';
import { hangUpCheck, publicUrlCheck, type Reach } from './public-url-check.js';
import type { Terms } from '../methods/x402/requirements.js';

const LONGEST_ADDRESS = 'z'.repeat(44);

export type StartupParts = {
  contract: Contract;
  terms: Terms;
  methods: Methods;
  network: NetworkName;
  chain: SolanaChain;
  facilitators: Facilitators;
  /** Whether the ledger knows a fee payer from an earlier run. */
  hadFeePayer: boolean;
  /** How durable the ledger's database is. */
  durability: () => Promise<Omit<Finding, 'subject'>[]>;
  reach?: Reach;
};

/** The checks that every server makes when it starts, and that `npm run check` makes. */
export function startupChecks(parts: StartupParts): Check[] {
  const { contract, terms, methods, network, chain, facilitators, hadFeePayer, durability, reach } = parts;
  return [
    rpcCheck(chain, terms),
    clockCheck(chain),
    receiverCheck(chain, terms),
    facilitatorCheck(facilitators, chain, terms, hadFeePayer),
    databaseCheck(durability),
    publicUrlCheck(terms.publicUrl, network, reach),
    ...(reach ? [hangUpCheck(terms.publicUrl), mcpCheck(terms.publicUrl)] : []),
    headerCheck(contract, methods, terms),
  ];
}

/** How durable the ledger's database is. */
export function databaseCheck(durability: StartupParts['durability']): Check {
  const subject = 'DATABASE_URL';
  return { subject, look: async () => (await durability()).map(finding => ({ subject, ...finding })) };
}

/** Whether every challenge fits into a header, including the blockhash that is added later. */
export function headerCheck(contract: Contract, methods: Methods, terms: Terms): Check {
  const subject = 'PUBLIC_URL';
  return {
    subject,
    async look() {
      const live = { feePayer: LONGEST_ADDRESS, recentBlockhash: LONGEST_ADDRESS };
      const sizes = contract.paid.map(operation => ({
        id: operation.id,
        bytes: largestHeader(methods.challenges(methods.first, operation, live)),
      }));
      const [largest] = sizes.sort((a, b) => b.bytes - a.bytes);
      if (!largest) return [];
      const { id, bytes } = largest;
      const found = `the largest challenge takes ${bytes} of ${MAX_HEADER_BYTES} header bytes`;
      const advice = headerAdvice(contract, terms).map((text): Finding => {
        return { level: 'warning', subject: 'openapi.yaml', found: text };
      });
      if (bytes <= MAX_HEADER_BYTES) return [{ level: 'ok', subject, found }, ...advice];
      const fault =
        `this, or the path or summary of ${id} in openapi.yaml, is too long: its challenge takes ${bytes} header ` +
        `bytes, but proxies cut headers at ${MAX_HEADER_BYTES}`;
      return [{ level: 'error', subject, found: fault }];
    },
  };
}

function largestHeader({ headers }: Challenge): number {
  return Math.max(0, ...Object.values(headers).map(value => value.length));
}
