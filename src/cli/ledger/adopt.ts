import { commandLine } from '../../config/command-line.js';
import type { Identity } from '../../ledger/reader.js';
import type { FoundPayment, TakenIn } from '../../ledger/found-payments.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import type { ReportSource } from '../../operator/find-payment.js';
import type { TransferIn } from '../../operator/transfers-in.js';
import { toDecimal } from '../../price/amount.js';
import { compareWithChain, isComplete, type AuditOptions, type Difference, type Outcome } from './audit.js';
import { countOf, table, time } from './print.js';
import type { Report } from './print.js';

/** A ledger to which missing payments can be added while servers run. */
type Adopting = ReportSource & {
  takeIn(found: FoundPayment): Promise<TakenIn>;
  endRestoration(): Promise<void>;
};

/**
 * `payTo`: the receiver, if the ledger has sold nothing. `from`: transfers before this time, in ms since 1970, are left out. `own`: the
 * operator's wallets.
 */
type Options = AuditOptions & { payTo: string | undefined; from: number; own: readonly string[] };

/** The outcome of a transfer: added, left out by the ledger's rules, or to be tried again later. */
type Looked = TransferIn & { outcome: 'taken' | 'left' | 'later'; note: string };

const LEFT: Record<Exclude<TakenIn, 'taken'>, Pick<Looked, 'outcome' | 'note'>> = {
  known: { outcome: 'left', note: 'the ledger already has it as paid' },
  busy: { outcome: 'later', note: 'a server is working on it: repeat the command in a minute' },
  resolving: { outcome: 'left', note: 'settling: a running server will find it, and may have its answer' },
  alias: {
    outcome: 'left',
    note: 'its call got the answer that an earlier payment had bought, but this payment was charged as well: refund it by hand',
  },
};

/**
 * Looks for payments that are on chain but not recorded as paid, and adds them as owed. Transfers that no server could have accepted as a
 * payment, or that come from a receiver of the ledger, are only listed.
 * @throws OperatorFault; UpstreamFailure if the chain cannot be read (payments that were already added are kept)
 */
export async function adopt(reader: Adopting, options: Options): Promise<Report> {
  const identity = await boundIdentity(reader, options.payTo);
  const outcome = await compareWithChain(reader, identity, options);
  const looked: Looked[] = [];
  for (const difference of outcome.tally.differences)
    if (difference.transfer)
      looked.push(await adoptOne(reader, identity, difference.transfer, { ...options, outcome }));
  const settled = whyUnsettled(outcome, looked);
  if (settled === undefined) await reader.endRestoration();
  return report(outcome, looked, settled);
}

/** The ledger's identity. A ledger that has sold nothing gets `payTo` as its receiver. */
async function boundIdentity(reader: Adopting, payTo: string | undefined): Promise<Identity> {
  const identity = await reader.identity();
  const receiver = identity.payTo ?? payTo;
  if (receiver !== undefined && identity.network !== '') return { ...identity, payTo: receiver };
  throw new OperatorFault(
    'This ledger has sold nothing and belongs to no receiver. Set PAY_TO to the address whose payments were lost. Nothing was changed.',
  );
}

async function adoptOne(
  reader: Adopting,
  { network, payTo = '' }: Identity,
  transfer: TransferIn,
  { from, own, outcome }: Options & { outcome: Outcome },
): Promise<Looked> {
  const left = (note: string): Looked => ({ ...transfer, outcome: 'left', note });
  const { id, payer, amount, evidence, transaction: settlement, slot, at } = transfer;
  const receivers = outcome.audited.map(({ receiver }) => receiver.payTo);
  if (payer !== null && receivers.includes(payer))
    return left('from a receiver of this ledger, so it is your own money');
  if (evidence === null || payer === null)
    return left('a transfer from a wallet, not a payment that a buyer can send to a server');
  if (at !== null && at < from) return left('before --from');
  const found = { id, payer, amount, network, evidence, settlement, slot, paidAt: at ?? Date.now(), payTo };
  const taken = await reader.takeIn(found);
  if (taken !== 'taken') return { ...transfer, ...LEFT[taken] };
  return { ...transfer, outcome: 'taken', note: notesOn(transfer, own, outcome).join('; ') };
}

/** What the operator should know about a payment that was added. */
function notesOn({ payer, amount, slot }: TransferIn, own: readonly string[], { tally }: Outcome): string[] {
  const back = tally.out.paid.filter(
    each => each.owner === payer && each.slot > slot && each.amount >= amount,
  );
  return [
    ...(payer !== null && own.includes(payer) ? ['from a wallet of your own (OWN_WALLETS)'] : []),
    ...back.map(each => `perhaps refunded by ${each.transaction}: if so, record that with refund`),
  ];
}

/** Why servers should not start on a restored ledger yet. */
function whyUnsettled({ audited, tally }: Outcome, looked: readonly Looked[]): string | undefined {
  const unread = tally.differences.filter(({ kind }: Difference) => kind === 'unreadable').length;
  const later = looked.filter(({ outcome }) => outcome === 'later').length;
  if (!isComplete(audited)) return 'The history is longer than --limit: raise it.';
  if (unread > 0)
    return `${countOf(unread, 'transaction')} could not be read: “verify” lists them; use an archive server.`;
  return later > 0 ? `${countOf(later, 'payment')} must be checked again.` : undefined;
}

function report({ slot }: Outcome, looked: readonly Looked[], unsettled: string | undefined): Report {
  const of = (outcome: Looked['outcome']): Looked[] => looked.filter(each => each.outcome === outcome);
  const taken = of('taken');
  const left = [...of('left'), ...of('later')];
  const sum = taken.reduce((total, { amount }) => total + amount, 0n);
  const data = {
    slot,
    complete: unsettled === undefined,
    adopted: taken.map(publicOf),
    left: left.map(publicOf),
  };
  const lines = [
    `Checked the chain up to slot ${slot} (finalized). A payment that was signed before a loss can still land within the next two minutes: repeat the command after that.`,
  ];
  if (taken.length === 0) lines.push('Nothing was added.');
  else
    lines.push(
      `Added as owed: ${countOf(taken.length, 'payment')}, ${toDecimal(sum)} USDC. A buyer who sends the same payment again gets an answer for it. ` +
        `Otherwise pay it back, and record that: ${commandLine('ledger')} refund <payment> --tx <signature>`,
      '',
      ...rowsOf(taken),
    );
  if (left.length > 0)
    lines.push('', `Left as they are: ${countOf(left.length, 'transfer')}.`, '', ...rowsOf(left));
  if (unsettled !== undefined) lines.push('', `Not done. ${unsettled}`);
  return { data, lines, ok: unsettled === undefined };
}

function rowsOf(looked: readonly Looked[]): string[] {
  return table(
    ['payment', 'paid at', 'USDC', 'payer', 'memo', 'transaction', 'note'],
    looked.map(each => [
      each.id.slice(0, 16),
      time(each.at),
      toDecimal(each.amount),
      each.payer,
      each.memo,
      each.transaction,
      each.note,
    ]),
  );
}

function publicOf({ id, transaction, amount, payer, at, slot, memo, note }: Looked) {
  return { payment: id, transaction, usdc: toDecimal(amount), payer, at: time(at), slot, memo, note };
}
