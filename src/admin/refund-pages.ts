import type { Context } from 'koa';
import { UpstreamFailure } from '../net/failure.js';
import { PageFault } from '../pages/form.js';
import { see } from '../pages/page-responses.js';
import type { Session } from '../pages/session.js';
import { isSignature } from '../rails/solana/address.js';
import { OperatorFault } from '../operator/operator-fault.js';
import { mayBeRepaid } from '../operator/record-refund.js';
import type { OperatorParts } from './operator-sources.js';
import { isInProgress, type PaymentFacts } from './payment-facts.js';
import { refundHtml } from './refund-part.js';

/** The maximum number of checks at a time, because each waits up to two minutes for the chain. */
const MAX_REFUNDS = 4;

type Parts = Pick<OperatorParts, 'ledger' | 'refund' | 'askRefund' | 'cancelRefund' | 'refundLink' | 'log'>;

/** The operator page's functions that the refund pages use. */
type Page = {
  demand: (ctx: Context) => Promise<Session>;
  form: (ctx: Context) => Promise<{ session: Session; form: URLSearchParams }>;
  facts: (ctx: Context) => Promise<PaymentFacts>;
  formKey: (session: Session) => string;
  now: () => number;
  send: (ctx: Context, session: Session, title: string, main: string, status?: number) => void;
};

/** The pages on which a payment is refunded. */
export class RefundPages {
  readonly #parts: Parts;
  readonly #page: Page;
  #checking = 0;

  constructor(parts: Parts, page: Page) {
    this.#parts = parts;
    this.#page = page;
  }

  readonly ask = async (ctx: Context): Promise<void> => {
    const session = await this.#page.demand(ctx);
    await this.#show(ctx, session, await this.#refundable(ctx));
  };

  /** Reserves the amount of a refund, and shows its link. */
  readonly link = async (ctx: Context): Promise<void> => {
    const { session, form } = await this.#page.form(ctx);
    const facts = await this.#refundable(ctx);
    const { id } = facts.payment;
    const reason = form.get('reason')?.trim();
    try {
      const amount = form.get('amount')?.trim();
      await this.#parts.askRefund(id, { amount, ...(reason ? { reason } : {}) });
    } catch (error) {
      if (!(error instanceof OperatorFault)) throw error;
      return this.#show(ctx, session, facts, { fault: error.message.replace(/^--amount/, 'The amount') });
    }
    this.#parts.log.info({ payment: id }, 'the operator requested a refund link');
    see(ctx, `/payments/${id}/refund`);
  };

  readonly cancel = async (ctx: Context): Promise<void> => {
    await this.#page.form(ctx);
    const { id } = (await this.#page.facts(ctx)).payment;
    await this.#parts.cancelRefund(id);
    this.#parts.log.info({ payment: id }, 'the operator cancelled a refund');
    see(ctx, `/payments/${id}?said=cancelled`);
  };

  /** Records a refund that was sent by hand. */
  readonly record = async (ctx: Context): Promise<void> => {
    const { session, form } = await this.#page.form(ctx);
    const facts = await this.#refundable(ctx);
    const { id } = facts.payment;
    const tx = (form.get('tx') ?? '').trim();
    if (this.#checking >= MAX_REFUNDS)
      throw new PageFault(
        503,
        'Other refunds are being checked on chain. Nothing was changed; try again in a minute.',
      );
    const fault = await this.#record(id, tx);
    if (fault) return this.#show(ctx, session, facts, { fault, tx });
    this.#parts.log.info({ payment: id, transaction: tx }, 'the operator recorded a refund');
    see(ctx, `/payments/${id}?said=refund`);
  };

  /** @returns the reason if the refund was not recorded */
  async #record(id: string, tx: string): Promise<string | undefined> {
    if (!isSignature(tx))
      return 'This is not the signature of a transaction: 64 to 88 base58 characters. Nothing was changed.';
    this.#checking += 1;
    try {
      await this.#parts.refund(id, tx);
      return undefined;
    } catch (error) {
      if (error instanceof OperatorFault) return error.message;
      if (!(error instanceof UpstreamFailure)) throw error;
      return `The chain cannot be read: ${error.message}. Nothing was changed; try again.`;
    } finally {
      this.#checking -= 1;
    }
  }

  /** @throws PageFault if no part of the payment can be refunded */
  async #refundable(ctx: Context): Promise<PaymentFacts> {
    const facts = await this.#page.facts(ctx);
    if (mayBeRepaid(facts.payment)) return facts;
    throw new PageFault(
      409,
      'This payment cannot be refunded: its money has not moved, or it was refunded in full. Nothing was changed.',
    );
  }

  async #show(
    ctx: Context,
    session: Session,
    facts: PaymentFacts,
    again: { fault?: string; tx?: string } = {},
  ): Promise<void> {
    const { ledger, refundLink } = this.#parts;
    const { payment, repayments } = facts;
    const open = repayments.find(({ decidedAt }) => decidedAt === null);
    const link = open && (await refundLink(open));
    const formKey = this.#page.formKey(session);
    const view = {
      payment,
      open,
      link,
      formKey,
      receivers: ledger.receivers,
      isInProgress: isInProgress(facts, this.#page.now()),
      ...again,
    };
    this.#page.send(ctx, session, 'Refund', refundHtml(view), again.fault ? 400 : 200);
  }
}
