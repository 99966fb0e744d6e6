import type { Ledger } from '../ledger/store.js';
import { BlockhashLife } from '../offers/blockhash-life.js';
import { Charge } from '../sale/charge.js';
import type { Offers } from '../offers/offers.js';
import { confirmTransfer, findDenied } from '../rails/solana/find-transfer.js';
import type { OrderWorker } from '../sale/order-worker.js';
import type { Confirm, FindDenied } from '../sale/settlement.js';
import { recentBlockhashes } from '../rails/solana/recent-blockhashes.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import type { Base } from './base.js';
import type { Offering } from './offering.js';

/** What exchanges payments for answers, with its views of the chain. */
export function createCharge(base: Base, offering: Offering, orders: OrderWorker): Charge {
  const { config, log, observation, closing } = base;
  const { observer } = observation;
  const { chain, ledger, offers } = offering;
  const life = new BlockhashLife({ offers, recent: signal => recentBlockhashes(chain, signal), closing });
  return new Charge({
    ...offering,
    orders,
    log,
    observer,
    confirm: confirmIn(ledger, chain),
    findDenied: findDeniedIn(ledger, chain, offers),
    blocksLeft: blockhash => life.blocksLeft(blockhash),
    maxUnsettledPerPayer: config.maxUnsettledPerPayer,
    unsoldPerHour: config.unsoldPerHour,
  });
}

function confirmIn(ledger: Ledger, chain: SolanaChain): Confirm {
  return async (id, signature) => {
    const row = await ledger.find(id);
    return row !== undefined && confirmTransfer(chain, row, signature);
  };
}

function findDeniedIn(ledger: Ledger, chain: SolanaChain, offers: Offers): FindDenied {
  return async id => {
    const row = await ledger.find(id);
    const view = offers.view();
    return row && view ? findDenied(chain, row, view.slot) : { kind: 'unclear' };
  };
}
