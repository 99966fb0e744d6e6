import { expect } from 'chai';
import { sectionHtml } from '../../src/admin/order-tasks.js';
import { paymentFacts } from '../../src/admin/payment-facts.js';
import { openOperatorWorld, owe } from '../support/operator-world.js';

describe("an order's tasks on the page of its operation", () => {
  it("do not break the page of the payment when they can't be read", async () => {
    const world = await openOperatorWorld();
    const logged: string[] = [];
    const log = {
      info() {},
      warn() {},
      error: ({ error }: { error?: Error }) => void logged.push(error?.message ?? ''),
    };
    try {
      const facts = await paymentFacts(world.ledger, await owe(world, false), world.clock.now);
      if (!facts) throw new Error('no such payment');
      const section = (): Promise<string> => Promise.reject(new Error('its table is locked'));
      const html = await sectionHtml({ [facts.payment.operation]: { section, tasks: {} } }, facts, log);
      expect(html).to.contain('cannot be read at the moment').and.not.contain('locked');
      expect(logged).to.deep.equal(['its table is locked']);
    } finally {
      await world.close();
    }
  });
});
