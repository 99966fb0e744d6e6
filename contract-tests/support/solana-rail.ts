import type { Ledger } from '../../src/ledger/store.js';
import type { Terms } from '../../src/methods/x402/requirements.js';
import { FacilitatorRequests } from '../../src/facilitators/facilitator-requests.js';
import type { FacilitatorRequest } from '../../src/facilitators/facilitator.js';
import type { Listings } from '../../src/facilitators/listings.js';
import type { Rail } from '../../src/rails/rail.js';
import type { ChainHistory, SearchResult } from '../../src/rails/solana/find-transfer.js';
import type { SolanaHints } from '../../src/rails/solana/solana-hints.js';
import { SolanaRail, type SolanaRailParts } from '../../src/rails/solana/solana-rail.js';
import type { CheckedTransaction } from '../../src/rails/solana/transaction.js';
import { sightingIn } from '../../src/rails/solana/transfer-fates.js';

type Parts = SolanaRailParts<FacilitatorRequest>;
type Trust = NonNullable<Parts['trust']>;

/** Answers that a test gives in place of the chain. */
export type RailOptions = Partial<Pick<Parts, 'blocksLeft' | 'timing'>> & {
  trust?: Pick<Trust, 'lied'> & Partial<Trust>;
  chain?: ChainHistory;
  /** Receives what the rail reports to directories. */
  listings?: Listings;
  /** Whether a reported transfer is found on the chain. */
  confirm?: (id: string) => Promise<boolean>;
  /** What is found for a payment that was refused because its transaction would fail. */
  findDenied?: () => Promise<SearchResult>;
};

/** Solana's rail. Without a chain, no transfer is ever found, and a refused payment counts as absent. */
export function solanaRail(
  from: {
    hints: SolanaHints;
    facilitator: Parts['facilitator'];
    ledger: Pick<Ledger, 'receivers'>;
    terms: Terms;
  },
  { trust, chain, confirm, findDenied, listings, ...options }: RailOptions = {},
): Rail<CheckedTransaction> {
  const { hints, facilitator, ledger, terms } = from;
  const rail = new SolanaRail({
    ...{ hints, facilitator, terms, receivers: ledger.receivers, sender: NO_SENDER, ...options },
    requests: new FacilitatorRequests(terms, ledger.receivers, listings),
    chain: chain ?? NO_CHAIN,
    trust: trust && { refresh: async () => {}, distrust: async () => {}, ...trust },
  });
  if (chain) return rail;
  return Object.assign(rail, {
    confirm: async ({ id }: { id: string }) => confirm?.(id) ?? false,
    lookFor: async () => sightingIn((await findDenied?.()) ?? { kind: 'absent' }),
  });
}

const down = (): Promise<never> => Promise.reject(new Error('there is no chain'));
const NO_SENDER = { verify: down, sign: down, settle: down };
const NO_CHAIN: ChainHistory = { latestBlockhash: down, signaturesFor: down, transaction: down };
