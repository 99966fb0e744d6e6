import { toDecimal } from '../price/amount.js';
import type { Log } from '../net/log.js';
import type { Answered, Event, Listener, OrderChanged, Released, Sold, Spent } from './observer.js';

/** A log that also has the level `debug`. */
export type DetailedLog = Log & {
  debug(fields: object, message: string): void;
  isLevelEnabled(level: 'debug'): boolean;
};

const MAX_ERROR_CHARACTERS = 300;
const FALSE_SETTLEMENT =
  'THE FACILITATOR REPORTED A SETTLEMENT THAT IS NOT ON CHAIN: its successes are now checked before every answer';

/**
 * Writes one line per sale, per refused payment, per failure of a paid call and per change of an order; at level `debug` also the decision about
 * each payment, and each answer. No line contains bodies or payment headers.
 */
export function saleLog(log: DetailedLog): Listener {
  const detailed = log.isLevelEnabled('debug');
  return {
    hear(event: Event) {
      switch (event.kind) {
        case 'sold':
          return logSale(log, event);
        case 'answered':
          return isNews(event) || detailed ? logAnswer(log, event) : undefined;
        case 'order':
          return logOrder(log, event);
        case 'released':
          return log.info({ ...moneyOf(event), why: event.why }, 'an unresolved payment was not charged');
        case 'false settlement':
          return log.error({ ...moneyOf(event), settlement: event.settlement }, FALSE_SETTLEMENT);
        case 'decided': {
          if (!detailed) return undefined;
          const { requestId, payment, next } = event;
          return log.debug({ requestId, payment, next }, `next step for a payment: ${next}`);
        }
        case 'facilitator':
        case 'upstream': {
          if (!detailed) return undefined;
          const { kind, ...fields } = event;
          return log.debug({ ...fields, ms: rounded(event.ms) }, `${kind} answered`);
        }
        default:
          return undefined;
      }
    },
  };
}

/**
 * Calls that wait for an order have no separate lines, because one line for each attempt at the order is
 * enough.
 */
function isNews({ status, reported }: Answered): boolean {
  return status >= 400 && !reported;
}

function logSale(log: DetailedLog, event: Sold): void {
  const { requestId, operation, settlement, amount, spent } = event;
  const fields = { requestId, ...moneyOf(event), settlement, ...timesOf(spent) };
  const how = requestId === undefined ? ', found on chain after its settlement was unresolved' : '';
  log.info(fields, `sold ${operation} for ${toDecimal(amount)} USDC${how}`);
}

function logAnswer(log: DetailedLog, event: Answered): void {
  const { requestId, transport, operation, status, error, paid, ms, spent } = event;
  const told = error?.slice(0, MAX_ERROR_CHARACTERS);
  const fields = {
    requestId,
    transport,
    status,
    ...moneyOf(event),
    paid,
    ms: rounded(ms),
    ...timesOf(spent),
    ...(told === undefined ? {} : { error: told }),
  };
  if (status < 400) log.debug(fields, `answered ${operation}`);
  else if (event.reported) log.debug(fields, `${status} for ${operation}: ${told}`);
  else if (status === 402) log.info(fields, `refused a payment for ${operation}: ${told}`);
  else if (status < 500) log.info(fields, `${status} for ${operation}: ${told}`);
  else log.warn(fields, `${status} for ${operation}: ${told}`);
}

function logOrder(log: DetailedLog, { change, why, requestId, ...event }: OrderChanged): void {
  const { operation } = event;
  const fields = { requestId, ...moneyOf(event), ...(why === undefined ? {} : { why }) };
  if (change === 'failed') log.warn(fields, `an order for ${operation} failed and stays owed: ${why}`);
  else if (change === 'given up')
    log.error(
      fields,
      `an order for ${operation} failed, and no further attempt starts automatically: ${why}`,
    );
  else log.info(fields, `an order for ${operation} was ${change}`);
}

type Money = Pick<Released, 'operation' | 'amount'> & {
  payment?: string | undefined;
  payer?: string | undefined;
};

/** The fields of a payment, in the same order in every line. */
function moneyOf({ operation, payment, payer, amount }: Money): object {
  return { operation, payment, payer, usdc: toDecimal(amount) };
}

function timesOf({ claim, verify, work, settle }: Spent = {}): object {
  return {
    claimMs: rounded(claim),
    verifyMs: rounded(verify),
    workMs: rounded(work),
    settleMs: rounded(settle),
  };
}

function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 10) / 10;
}
