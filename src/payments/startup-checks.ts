import type { Log } from '../net/log.js';
import type { Account } from '../solana/rpc-types.js';
import { ConfigFault } from '../config.js';
import type { Contract } from '../contract/contract.js';
import { MAX_HEADER_BYTES, renderChallenge } from './challenge.js';
import type { Terms } from './requirements.js';
import { receiverAccount } from './transaction.js';
import type { SolanaChain, SurveyedServer } from '../solana/rpc.js';
import { networkOf, TOKEN_PROGRAM } from '../solana/networks.js';

const CHAIN_CHECK_MS = 5_000;
const LONGEST_ADDRESS = 'z'.repeat(44);

/**
 * Checks the network of the chain and the receiver's USDC account, without which every payment would fail.
 * @throws ConfigFault
 */
export async function checkChain(chain: SolanaChain, terms: Terms, log: Log): Promise<void> {
  const signal = AbortSignal.timeout(CHAIN_CHECK_MS);
  const account = receiverAccount(terms);
  let receiver: Account | null;
  try {
    receiver = await chain.account(account, signal);
  } catch (error) {
    refuseForeignChain(await chain.survey(AbortSignal.timeout(CHAIN_CHECK_MS)), terms);
    log.warn({ error }, 'starting without the chain: paid calls answer 503 until it is back');
    return;
  }
  void chain.survey(signal).then(servers => reportForeignChains(servers, terms, log));
  // Lamports sent to the address before the account was created leave an account that can't hold USDC.
  if (receiver?.owner !== TOKEN_PROGRAM) {
    throw new ConfigFault(
      `PAY_TO: ${terms.payTo} has no USDC token account (${account}): create it, for instance with ` +
        `spl-token create-account ${terms.asset} --owner ${terms.payTo} --fee-payer <your keypair>`,
    );
  }
}

type Foreign = { name: string; genesis: string };

function foreignAmong(servers: SurveyedServer[], { network }: Terms): Foreign[] {
  return servers.filter(
    (server): server is Foreign => server.genesis !== undefined && networkOf(server.genesis) !== network,
  );
}

/** @throws ConfigFault if servers answer and none of them serves our chain */
function refuseForeignChain(servers: SurveyedServer[], terms: Terms): void {
  const foreign = foreignAmong(servers, terms);
  const answering = servers.filter(({ genesis }) => genesis !== undefined);
  if (foreign.length === 0 || foreign.length < answering.length) return;
  const each = foreign.map(({ name, genesis }) => `${name} (genesis ${genesis})`);
  throw new ConfigFault(
    `SOLANA_RPC_URL: must serve ${terms.network}, not another network: ${each.join(', ')}`,
  );
}

/** Reports wrong servers at the start. A fallback would otherwise only be noticed when it is needed. */
function reportForeignChains(servers: SurveyedServer[], terms: Terms, log: Log): void {
  for (const { name, genesis } of foreignAmong(servers, terms))
    log.error(
      { rpc: name, genesis },
      `the RPC server ${name} in SOLANA_RPC_URL does not serve ${terms.network} and is ignored: remove it`,
    );
}

/**
 * Checks the size of every challenge, including the blockhash that is added later.
 * @throws ConfigFault
 */
export function checkHeaderSizes(contract: Contract, terms: Terms): void {
  for (const operation of contract.paid) {
    const live = { feePayer: LONGEST_ADDRESS, recentBlockhash: LONGEST_ADDRESS };
    const { length } = renderChallenge(operation, terms, live).header;
    if (length > MAX_HEADER_BYTES) {
      throw new ConfigFault(
        `PUBLIC_URL: too long, or the path or summary of ${operation.id} in openapi.yaml. Its challenge takes ${length} header bytes; ` +
          `proxies cut headers at ${MAX_HEADER_BYTES}`,
      );
    }
  }
}
