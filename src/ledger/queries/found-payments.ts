import { FOUND_ON_CHAIN } from '../payment.js';
import { idBytes } from '../ids.js';
import { list, one, raw } from '../sql.js';
import type { PaymentRow } from '../schema.js';
import { sourcesOf } from '../states.js';
import type { At, Id, IdRow } from './conditions.js';

const MAY_OWE = raw(`state in (${list(sourcesOf('owed', 'operator').map(state => raw(`'${state}'`))).sql})`);

/** The columns of a payment whose values can be read from the chain. */
export type FoundColumns = Pick<
  PaymentRow,
  'payer' | 'amount' | 'network' | 'signed_transaction' | 'settlement' | 'claim_slot' | 'created_at'
> &
  Id;

/** The payment has no callers, and counts as audited because its transfer was found finalized. */
export const insertFound = (p: FoundColumns & At) =>
  one<IdRow>`
    insert into payments (id, operation, request_hash, payer, amount, network, x402_version, signed_transaction, flow, state, claim, owner,
      lease_until, callers, caller_until, runs, asks, claim_slot, claim_height, settlement, created_at, settling_at, settled_at, audited_at)
    values (${idBytes(p.id)}, ${FOUND_ON_CHAIN}, '', ${p.payer}, ${p.amount}, ${p.network}, 2, ${p.signed_transaction}, 'authorization',
      'owed', 0, '', 0, 0, 0, 0, 0, ${p.claim_slot}, 0, ${p.settlement}, ${p.created_at}, ${p.now}, ${p.now}, ${p.now})
    on conflict do nothing returning id`;

/** Increases the claim number, so that a worker that held the payment can no longer change it. */
export const oweFound = (p: Pick<FoundColumns, 'id' | 'settlement' | 'claim_slot'> & At) =>
  one<IdRow>`
    update payments set state = 'owed', settlement = ${p.settlement}, settling_at = coalesce(settling_at, ${p.now}), settled_at = ${p.now},
      audited_at = ${p.now}, decided_at = null, reason = null, answer_expires_at = null, caller_until = 0, claim = claim + 1,
      claim_slot = case when claim_slot > ${p.claim_slot} then ${p.claim_slot} else claim_slot end
    where id = ${idBytes(p.id)} and ${MAY_OWE} and lease_until <= ${p.now} and alias_of is null returning id`;

/** Assigns a call to a payment that has none yet. */
export const giveCall = (
  p: Id & Pick<PaymentRow, 'operation' | 'request_hash' | 'request' | 'flow' | 'identifier' | 'method'>,
) =>
  one<IdRow>`
    update payments set operation = ${p.operation}, request_hash = ${p.request_hash}, request = ${p.request}, flow = ${p.flow},
      identifier = ${p.identifier}, method = ${p.method}
    where id = ${idBytes(p.id)} and state = 'owed' and operation = ${FOUND_ON_CHAIN} returning id`;
