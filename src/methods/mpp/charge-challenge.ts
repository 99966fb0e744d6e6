import { randomBytes } from 'node:crypto';
import type { PricedOperation } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import { USDC } from '../../price/amount.js';
import type { Hints } from '../../rails/rail.js';
import { TOKEN_PROGRAM, type NetworkName } from '../../rails/solana/networks.js';
import type { ChallengeIds } from './challenge-ids.js';
import { encoded } from './credential.js';

/**
 * The protocol's names for the networks. The sandbox uses devnet's, as in x402, so that one client setting
 * works for both.
 */
const NETWORKS: Record<NetworkName, string> = { sandbox: 'devnet', devnet: 'devnet', mainnet: 'mainnet' };

/** How long a challenge can be paid. Its blockhash, if it has one, is valid for 60 to 90 s. */
const LIFE_MS = 5 * 60_000;
const RANDOM_BYTES = 12;

/** The terms of all challenges of this server. They do not change while it runs. */
export type MppTerms = {
  network: NetworkName;
  /** Address of the USDC mint. */
  asset: string;
  /** Address that receives the money. */
  payTo: string;
  /** The host of the public URL. */
  realm: string;
};

/** A challenge with method `solana` and intent `charge`. */
export type MppChallenge = {
  id: string;
  realm: string;
  method: 'solana';
  intent: 'charge';
  expires: string;
  request: Json;
  opaque: Json;
};

/** Makes a unique challenge: a payment with its `externalId` as memo answers only this one. */
export function makeChallenge(
  operation: PricedOperation,
  { network, asset, payTo, realm }: MppTerms,
  { sponsor, recentBlockhash }: Hints,
  { ids, now }: { ids: ChallengeIds; now: number },
): MppChallenge {
  const request = {
    amount: operation.price.atomic.toString(),
    currency: asset,
    recipient: payTo,
    externalId: newExternalId(),
    methodDetails: {
      network: NETWORKS[network],
      decimals: USDC.decimals,
      tokenProgram: TOKEN_PROGRAM,
      ...(sponsor === undefined ? {} : { feePayer: true, feePayerKey: sponsor }),
      ...(recentBlockhash === undefined ? {} : { recentBlockhash }),
    },
  };
  const opaque = opaqueOf(operation);
  const expires = new Date(now + LIFE_MS).toISOString().replace(/\.\d+Z$/, 'Z');
  const slots = { realm, method: 'solana', intent: 'charge', expires } as const;
  const id = ids.of({ ...slots, request: encoded(request), opaque: encoded(opaque) });
  return { id, ...slots, request, opaque };
}

const EXTERNAL_ID = new RegExp(`^cs_[0-9a-f]{${2 * RANDOM_BYTES}}$`);

function newExternalId(): string {
  return `cs_${randomBytes(RANDOM_BYTES).toString('hex')}`;
}

/** Whether a transfer's memo has the form of an `externalId` that this server makes. */
export function isExternalId(memo: string): boolean {
  return EXTERNAL_ID.test(memo);
}

/** The purpose of a challenge: a payment for one operation buys no other. */
export function opaqueOf({ id }: Pick<PricedOperation, 'id'>): { operation: string } {
  return { operation: id };
}

/** The value of `WWW-Authenticate`. */
export function headerOf({ request, opaque, ...rest }: MppChallenge): string {
  const parameters = { ...rest, request: encoded(request), opaque: encoded(opaque) };
  return `Payment ${Object.entries(parameters)
    .map(([name, value]) => `${name}="${value}"`)
    .join(', ')}`;
}
