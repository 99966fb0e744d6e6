import { productName } from '../contract/product-name.js';
import { openWebhooks, type Webhooks } from '../webhooks/open-webhooks.js';
import type { OwedRefunds } from '../operator/refund-owed.js';
import type { Base } from './base.js';
import type { Offering } from './offering.js';

/** Sets up the events for the operator. Must be called before anything can cause an event. */
export async function openTelling(
  { config, contract, terms, log, observation, disposers }: Base,
  { ledger, facilitator, guard, refunds }: Offering & { refunds: OwedRefunds | undefined },
  operatorUrl: string,
): Promise<Webhooks> {
  const webhooks = await openWebhooks({
    config: config.webhooks,
    sender: { shop: productName(contract), publicUrl: terms.publicUrl, operatorUrl },
    ledger,
    log,
    facilitators: () => facilitator.states(),
    feePayer: () => {
      const lamports = guard?.lamports;
      return guard && lamports !== undefined
        ? { address: guard.address, lamports, low: guard.low }
        : undefined;
    },
    refundWallet: () => refunds?.low(),
    answers: () => ({ bytes: ledger.answerBytes(), budget: config.answerBudgetBytes }),
  });
  observation.listen(webhooks.watch);
  disposers.unshift(() => webhooks.stop());
  return webhooks;
}
