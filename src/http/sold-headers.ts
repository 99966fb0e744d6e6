import { headerOf, isSold, unsendable } from '../contract/answer-headers.js';
import type { Success } from '../sale/outcome.js';

/**
 * Media types that a browser may display. Types that can contain scripts, such as SVG and HTML, are not among
 * them.
 */
const SHOWN =
  /^(application\/([\w.-]+\+)?json|text\/plain|audio\/[\w.+-]+|image\/(png|jpe?g|gif|webp|avif|bmp|apng))$/;

/**
 * The headers of a sold answer over HTTP: those of the answer itself, and the server's own, which win. Sold
 * bytes come from a third party but are served from the shop's origin, so a browser must run nothing in them.
 * An answer that an earlier version stored may have headers that can't be sent; they are left out.
 */
export function soldHeaders(
  { status, headers, body }: Success,
  own: Record<string, string>,
): Record<string, string | number> {
  const sold = Object.entries(headers).filter(
    ([name, value]) => isSold(name) && unsendable(name, value) === undefined,
  );
  const type = headerOf(Object.fromEntries(sold), 'content-type') ?? '';
  const bare = (type.split(';', 1)[0] ?? '').trim().toLowerCase();
  return {
    ...Object.fromEntries(sold),
    // A 204 has no content type.
    ...(status === 204 ? {} : { 'Content-Length': body.length }),
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'X-Content-Type-Options': 'nosniff',
    ...(body.length === 0 || SHOWN.test(bare) ? {} : { 'Content-Disposition': 'attachment' }),
    'Cache-Control': 'no-store',
    ...own,
  };
}
