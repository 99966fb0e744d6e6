/** An order of an operation, as the operator looks at it. */
export type OrderView = {
  /** Id of the payment. */
  id: string;
  /** The body of the call, validated; empty once the operator has rejected the order. */
  body: unknown;
  /** How many parts were paid for. */
  wanted: number;
  /** Whether an attempt is in progress. */
  isInProgress: boolean;
  /** Whether it may still be changed: it is owed, and no answer is saved. */
  isOpen: boolean;
  /** The page that asks before a task is done with an item of the order. */
  pathOf(task: string, item: string): string;
};

/** Something the operator can do with an item of an open order. It is asked for first. */
export type AdminTask = {
  /** The title of the page that asks, and the button that does it. */
  title: string;
  button: string;
  /** What the operator is asked, as HTML; undefined if there is no such item. */
  ask(order: OrderView, item: string): Promise<string | undefined>;
  /** Does it. @returns false if there is no such item, or the order was answered in the meantime: nothing was changed then */
  run(order: OrderView, item: string): Promise<boolean>;
  /** Said when it is done. */
  done(order: OrderView): string;
  /** What the log says of it, such as `the operator rejected a reply`. */
  logged: string;
};

/** What the operator page shows of the orders of an operation. */
export type AdminSection = {
  /** A part of the page of a payment, as HTML. */
  section(order: OrderView): Promise<string>;
  /** By a name that is a segment of a path, such as `reject`. */
  tasks: Readonly<Record<string, AdminTask>>;
};
