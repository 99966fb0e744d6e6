import { idBytes } from '../ids.js';
import { START_DIGITS, SETTLEMENT_START } from '../migrations.js';
import { raw, sql } from '../sql.js';
import type { PaymentView } from '../schema.js';
import { viewed } from './conditions.js';
import type { At } from './conditions.js';

type Limited = At & { limit: number };
type Text = Limited & { text: string };

export const byId = ({ now, prefix, limit }: Limited & { prefix: string }) =>
  sql<PaymentView>`
    select ${viewed(now)} from payments
    where id >= ${idBytes(prefix.padEnd(64, '0'))} and id <= ${idBytes(prefix.padEnd(64, 'f'))} order by id limit ${limit}`;

const STARTS = raw(SETTLEMENT_START);

export const bySettlement = ({ now, text, limit }: Text) =>
  sql<PaymentView>`
    select ${viewed(now)} from payments
    where settlement is not null and ${STARTS} = ${text.slice(0, START_DIGITS)} and settlement = ${text} limit ${limit}`;

export const byRepayment = ({ now, id, limit }: Limited & { id: string }) =>
  sql<PaymentView>`
    select ${viewed(now)} from payments where id in (select payment from repayments where repayments.id = ${id}) limit ${limit}`;

export const byRepaymentSignature = ({ now, text, limit }: Text) =>
  sql<PaymentView>`
    select ${viewed(now)} from payments
    where id in (select payment from repayments where signature = ${text}) limit ${limit}`;

/** Refunds that earlier versions recorded. */
export const byRefundSignature = ({ now, text, limit }: Text) =>
  sql<PaymentView>`
    select ${viewed(now)} from payments where id in (select payment from refunds where signature = ${text}) limit ${limit}`;

/** Finds only settled payments, and therefore no aliases. */
export const byPayer = ({ now, text, limit }: Text) =>
  sql<PaymentView>`
    select ${viewed(now)} from payments where payer = ${text} and settled_at is not null
    order by settled_at desc limit ${limit}`;

export const byUnsettledPayer = ({ now, text, limit }: Text) =>
  sql<PaymentView>`
    select ${viewed(now)} from payments
    where payer = ${text} and decided_at is null and alias_of is null and state in ('claimed', 'settling') limit ${limit}`;

export const byIdentifier = ({ now, text, limit }: Text) =>
  sql<PaymentView>`
    select ${viewed(now)} from payments where identifier is not null and identifier = ${text}
    order by created_at desc limit ${limit}`;

export const byRequest = ({ now, text, limit }: Text) =>
  sql<PaymentView>`
    select ${viewed(now)} from payments where request_id is not null and request_id = ${text}
    order by created_at desc limit ${limit}`;
