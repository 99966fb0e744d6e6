import type { Log } from '../net/log.js';
import { PageFault } from '../pages/form.js';
import { escapeHtml } from '../pages/escape.js';
import { hidden } from '../pages/page-frame.js';
import { readRequestText } from '../contract/fingerprint.js';
import type { AdminSection, AdminTask, OrderView } from '../shop/admin-section.js';
import { isRejected, mayChange, type PaymentFacts } from './payment-facts.js';

/** By operationId. */
export type Sections = Readonly<Record<string, AdminSection>>;

/** A task that the operator can perform on an item of an order. */
export type OpenTask = { task: AdminTask; order: OrderView; path: string };

/** The operation's own section about an order. Empty if there is none; a short message if it fails, so that the rest of the page is shown. */
export async function sectionHtml(sections: Sections, facts: PaymentFacts, log: Log): Promise<string> {
  const [order, section] = [viewOf(facts), sections[facts.payment.operation]];
  if (!order || !section) return '';
  try {
    return await section.section(order);
  } catch (error) {
    log.error({ error, payment: order.id }, "the operation's section about this order could not be read");
    return '<p role="alert">The details of this order cannot be read at the moment: see the log.</p>';
  }
}

/** The message after a task; undefined if the operation has no such task. */
export function doneMessage(sections: Sections, facts: PaymentFacts, name: string): string | undefined {
  const [order, task] = [viewOf(facts), taskOf(sections, facts, name)];
  return order && task?.done(order);
}

/** @throws PageFault if there is no such task, or the order has ended */
export function openTask(sections: Sections, facts: PaymentFacts, name: string, item: string): OpenTask {
  const [order, task] = [viewOf(facts), taskOf(sections, facts, name)];
  if (!order || !task) throw new PageFault(404, 'There is no such task. Nothing was changed.');
  if (!order.isOpen)
    throw new PageFault(409, 'The order has ended: this can’t be done any more. Nothing was changed.');
  return { task, order, path: order.pathOf(name, item) };
}

/** The page that asks for confirmation of a task. @throws PageFault if there is no such item */
export async function askHtml({ task, order, path }: OpenTask, item: string, key: string): Promise<string> {
  const asked = await task.ask(order, item);
  if (asked === undefined) throw noSuchItem();
  return `<section class="card narrow" aria-labelledby="h-ask"><h1 id="h-ask">${escapeHtml(task.title)}</h1>
${asked}
<form method="post" action="${escapeHtml(path)}">${hidden('form', key)}
<p class="actions"><button>${escapeHtml(task.button)}</button><a class="button quiet" href="/payments/${order.id}">Cancel</a></p></form></section>`;
}

export function noSuchItem(): PageFault {
  return new PageFault(
    404,
    'This item does not exist; the task may already have been done. Nothing was changed.',
  );
}

function taskOf(sections: Sections, { payment }: PaymentFacts, name: string): AdminTask | undefined {
  const tasks = sections[payment.operation]?.tasks ?? {};
  return Object.hasOwn(tasks, name) ? tasks[name] : undefined;
}

function viewOf(facts: PaymentFacts): OrderView | undefined {
  const { order } = facts;
  if (!order) return undefined;
  const { payment: id, request, wanted, finishedAt } = order;
  return {
    id,
    wanted,
    body: isRejected(facts) ? {} : readRequestText(request).body,
    isInProgress: finishedAt === null,
    isOpen: mayChange(facts),
    pathOf: (task, item) => `/payments/${id}/${task}/${encodeURIComponent(item)}`,
  };
}
