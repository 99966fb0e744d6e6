import type { Context } from 'koa';

/** A request of a page and its answer. `params` has the parts of the path that the route names (`:name`). */
export type PageContext = Context & { params: Record<string, string> };

export type PageRoute = {
  method: 'GET' | 'POST';
  /** Below the path of the pages: `/` or `/live`. */
  path: string;
  serve: (ctx: PageContext) => Promise<void> | void;
};

/**
 * Pages of an operation on the public server, below a path of their own. They get the security headers of all pages for people. No
 * other site can read, frame or post to them, and `readForm` bounds what a form may hold.
 */
export type Pages = {
  /** One path segment, such as `/panel`, that no operation of the contract uses. */
  path: string;
  /** The name of the pages on the terminal, for instance `Panel`. */
  name: string;
  routes: readonly PageRoute[];
  /** Answers when a route has thrown. A `PageFault` has a status and a message for people. Default: the message as text. */
  failed?: (ctx: PageContext, error: unknown) => Promise<void> | void;
  /**
   * Opens the pages and holds a token that signs in, so it is shown at a terminal and never logged. `isMade`: the token was made at this
   * start, so the server keeps the link in a file of the state folder.
   */
  link?: { url: string; isMade: boolean };
};
