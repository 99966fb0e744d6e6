import type { Context, Middleware } from 'koa';
import { DeadlineExceeded, withDeadline } from '../net/deadline.js';
import { HttpFault } from '../net/http-fault.js';

/** An error that is sent as a page (or JSON). */
export class PageFault extends HttpFault {}

/** Enough for 2 000 characters of four bytes, each byte written as %XX, and the other fields. */
const MAX_FORM_BYTES = 32_768;
const FORM_DEADLINE_MS = 10_000;
const CLOSE = { Connection: 'close' };

const OPTIONS = {
  json: false,
  text: false,
  formLimit: MAX_FORM_BYTES,
  // Forms have flat fields only. If two fields have the same name, the first counts.
  queryString: { allowDots: false, depth: 0, parameterLimit: 20, duplicates: 'first' } as object,
};

let parser: Promise<Middleware> | undefined;

/** Loaded with the first form: the package takes 20 MB and a quarter of a second, and most servers never get a form. */
function loadParser(): Promise<Middleware> {
  return (parser ??= import('koa-body').then(({ koaBody }) => koaBody(OPTIONS)));
}

/**
 * Reads a URL-encoded form.
 * @throws PageFault 415 for other types, 413 above 32 KB, 408 if it takes longer than 10 s, 400 if it is incomplete
 */
export async function readForm(ctx: Context): Promise<URLSearchParams> {
  if (!ctx.is('application/x-www-form-urlencoded'))
    throw new PageFault(415, 'Send a form as application/x-www-form-urlencoded.', CLOSE);
  try {
    await withDeadline(FORM_DEADLINE_MS, new AbortController().signal, async () => {
      const parse = await loadParser();
      await parse(ctx, async () => {});
    });
  } catch (error) {
    throw faultOf(error);
  }
  return new URLSearchParams((ctx.request as { body?: Record<string, string> }).body);
}

function faultOf(error: unknown): PageFault {
  if (error instanceof DeadlineExceeded)
    return new PageFault(408, 'The form took too long to arrive. Send it again.', CLOSE);
  if ((error as { status?: unknown }).status === 413)
    return new PageFault(
      413,
      `The form is larger than ${MAX_FORM_BYTES} bytes. Shorten what you wrote and send it again.`,
      CLOSE,
    );
  return new PageFault(400, 'The form arrived incomplete. Send it again.');
}
