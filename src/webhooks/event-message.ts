import { toDecimal } from '../price/amount.js';
import type { OutboxEvent, LedgerEvent } from '../ledger/store.js';
import { EVENT_KINDS } from '../config/event-kinds.js';

/** An event as targets receive it. `body` is JSON, the same bytes in every attempt; `text` is for human readers. */
export type Message = { id: string; kind: string; body: string; text: string };

/** The facts about the shop that every message has. */
export type Sender = {
  /** Its name. */
  shop: string;
  publicUrl: string;
  /** The operator page, which shows a payment at `/payments/<id>`. */
  operatorUrl: string;
};

type Event = Pick<OutboxEvent, 'id' | 'kind' | 'facts' | 'createdAt'>;

/** Facts that are amounts in atomic units; they are sent as decimals. */
const AMOUNTS = ['amount', 'refunded'];

/** Writes the message of an event as defined by Standard Webhooks: `type`, `timestamp` and `data`. */
export function messageOf({ id, kind, facts, createdAt }: Event, sender: Sender): Message {
  const data = dataOf(facts, sender);
  const timestamp = new Date(createdAt).toISOString();
  return {
    id,
    kind,
    body: JSON.stringify({ type: kind, timestamp, data }),
    text: textOf(kind, data, sender),
  };
}

function dataOf(facts: LedgerEvent['facts'], { publicUrl, operatorUrl }: Sender): LedgerEvent['facts'] {
  const told = Object.entries(facts).map(([name, value]) =>
    AMOUNTS.includes(name) && typeof value === 'string' ? [name, toDecimal(BigInt(value))] : [name, value],
  );
  const { payment, amount } = facts;
  return {
    shop: publicUrl,
    ...(Object.fromEntries(told) as LedgerEvent['facts']),
    ...(amount === undefined ? {} : { currency: 'USDC' }),
    ...(payment === undefined ? {} : { link: `${operatorUrl}/payments/${String(payment)}` }),
  };
}

/** One sentence, followed by the facts that are useful on a phone. */
function textOf(kind: string, data: LedgerEvent['facts'], { shop }: Sender): string {
  const { operation, amount, link, sample } = data;
  const what = EVENT_KINDS[kind] ?? kind;
  const sale =
    operation === undefined
      ? ''
      : ` (${String(operation)}${amount === undefined ? '' : `, ${String(amount)} USDC`})`;
  const said = ['why', 'failure', 'facilitator', 'address', 'left'].flatMap(name =>
    data[name] === undefined || data[name] === null ? [] : [String(data[name])],
  );
  const more = said.length === 0 ? '' : ` ${said.join('; ')}`;
  const test = sample === true ? 'Sample, nothing happened: ' : '';
  return `${shop}: ${test}${what}${sale}.${more}${link === undefined ? '' : `\n${String(link)}`}`;
}
