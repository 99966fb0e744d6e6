/** An order of an operation, as shown to the operator. */
export type OrderView = {
  /** Id of the payment. */
  id: string;
  /** The body of the call, validated; empty once the operator has rejected the order. */
  body: unknown;
  /** How many parts were paid for. */
  wanted: number;
  /** Whether an attempt is in progress. */
  isInProgress: boolean;
  /** Whether the order may still be changed: it is owed, and no answer is saved. */
  isOpen: boolean;
  /** The path of the page on which the operator confirms a task for an item of the order. */
  pathOf(task: string, item: string): string;
};

/** A task that the operator can carry out on an item of an open order, after a confirmation. */
export type AdminTask = {
  /** The title of the confirmation page, and the label of its button. */
  title: string;
  button: string;
  /** The confirmation question, as HTML; undefined if there is no such item. */
  ask(order: OrderView, item: string): Promise<string | undefined>;
  /** Carries out the task. @returns false, without changing anything, if there is no such item or the order was answered in the meantime */
  run(order: OrderView, item: string): Promise<boolean>;
  /** The message after the task was carried out. */
  done(order: OrderView): string;
  /** The line for the log, such as `the operator rejected a reply`. */
  logged: string;
};

/** The operator page's section about the orders of an operation. */
export type AdminSection = {
  /** A part of the page of a payment, as HTML. */
  section(order: OrderView): Promise<string>;
  /** Tasks by a name that is used as a path segment, such as `reject`. */
  tasks: Readonly<Record<string, AdminTask>>;
};
