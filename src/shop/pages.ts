import type { Context } from 'koa';

/** A request for a page, and the answer to it. `params` has the parts of the path that the route names (`:name`). */
export type PageContext = Context & { params: Record<string, string> };

export type PageRoute = {
  method: 'GET' | 'POST';
  /** Relative to the path that all these pages share, for example `/` or `/live`. */
  path: string;
  serve: (ctx: PageContext) => Promise<void> | void;
};

/**
 * Pages of an operation on the public server, under a path of their own. They are sent with the same security headers as all other web
 * pages. No other site can read, frame or post to them, and `readForm` limits the size of a form.
 */
export type Pages = {
  /** One path segment, such as `/panel`, that no operation of the contract uses. */
  path: string;
  /** The name of the pages on the terminal, for instance `Panel`. */
  name: string;
  routes: readonly PageRoute[];
  /** Answers when a route has thrown. A `PageFault` has a status and a message for the visitor. Default: the message as text. */
  failed?: (ctx: PageContext, error: unknown) => Promise<void> | void;
  /**
   * The link that opens the pages. It contains a token that signs its visitor in, so it is shown on a terminal and never logged.
   * `isMade`: whether the token was generated when the server started; the server then keeps the link in a file of the state folder.
   */
  link?: { url: string; isMade: boolean };
};
