import type { Readable } from 'node:stream';
import type { Context } from 'koa';

const HTML = 'text/html; charset=utf-8';

/** The headers of every HTML page. Nothing is loaded from other hosts, no inline code runs, and no other site can frame or read it. */
export const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // With no-referrer, browsers would send the page's own forms with `Origin: null`.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  Vary: 'Cookie, Accept',
};

export function see(ctx: Context, path: string): void {
  ctx.status = 303;
  ctx.set('Location', path);
  ctx.body = '';
}

export function asset(ctx: Context, type: string, text: string): void {
  ctx.set({ 'Content-Type': type, 'Cache-Control': 'no-cache' });
  ctx.body = text;
}

export function html(ctx: Context, status: number, page: string): void {
  ctx.status = status;
  ctx.set('Content-Type', HTML);
  ctx.body = page;
}

/** Server-sent events, until the stream ends or the browser disconnects. */
export function events(ctx: Context, stream: Readable): void {
  ctx.set({ 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' });
  ctx.status = 200;
  ctx.body = stream;
  ctx.res.once('close', () => stream.destroy());
}

/** Whether the browser reports that the request comes from another site. Clients that do not send these headers are covered by the form key. */
export function fromElsewhere(ctx: Context): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  if (site) return site !== 'same-origin' && site !== 'none';
  const origin = ctx.get('Origin');
  return origin !== '' && (!URL.canParse(origin) || new URL(origin).host !== ctx.get('Host'));
}
