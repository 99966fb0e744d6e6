import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import type { Context } from 'koa';
import type { Log } from '../net/log.js';
import type { Sale, Success } from '../sale/outcome.js';
import type { BudgetOwner } from './byte-budget.js';
import type { Deliveries, Delivery } from './deliveries.js';
import { onSent } from './on-close.js';
import { sendError } from './responses.js';
import { soldHeaders } from './sold-headers.js';

export const TOO_MANY_ANSWERS =
  'The server is sending too many answers at once. You paid, and your answer is stored: send the same payment again.';
const NOT_SENT =
  'The answer could not be sent. You paid, and your answer is stored: send the same payment again.';

/**
 * Registers a sale with the response that carries its answer, over any transport; the only place that records
 * an answer as written. An answer counts as written if the returned function was called and the whole
 * response then went out to an intact socket. If something else is sent instead, such as an error page, the
 * answer counts as lost.
 * @returns a function to call once the last bytes of the answer have been handed to the response
 */
export function carrySale(
  { request, response }: { request: IncomingMessage; response: ServerResponse },
  hold: { close(): void },
  sale: Sale,
): () => void {
  let ended = false;
  onSent(request, response, out => {
    hold.close();
    void (out && ended ? sale.written() : sale.lost());
  });
  return () => void (ended = true);
}

export type SellingParts = { deliveries: Deliveries; log: Log };

/**
 * A sold answer for one caller, with the server's own headers: receipt and link. `signed`: the headers that
 * are sent only with the answer itself, never with an error.
 */
export type Sold = {
  answer: Success;
  owner: BudgetOwner;
  sale: Sale;
  own: Record<string, string>;
  signed: Record<string, string>;
};

/**
 * Sends a sold answer over HTTP. If there is no memory for it, or it can't be written, the caller gets an
 * error and the answer counts as lost.
 */
export async function sendSold(
  ctx: Context,
  { deliveries, log }: SellingParts,
  { answer, owner, sale, own, signed }: Sold,
): Promise<void> {
  const { req: request, res: response } = ctx;
  const delivery = deliveries.open(owner, answer.body, () => request.socket.destroy());
  if (!delivery) {
    await sale.lost();
    return sendError(ctx, 503, TOO_MANY_ANSWERS, { ...own, 'Retry-After': '1' });
  }
  const ended = carrySale({ request, response }, delivery, sale);
  const headers = soldHeaders(answer, { ...own, ...signed });
  try {
    response.writeHead(answer.status, headers);
  } catch (error) {
    for (const name of Object.keys(headers)) response.removeHeader(name);
    delivery.close();
    await sale.lost();
    log.error({ payment: owner.payment, error }, 'a sold answer could not be written');
    return sendError(ctx, 503, NOT_SENT, { ...own, 'Retry-After': '1' });
  }
  // Koa would write an error page if sending these bytes failed.
  ctx.respond = false;
  if (ctx.method === 'HEAD') return void response.end();
  write(response, delivery, ended);
}

export const GIFT_NOT_SENT = 'The server is sending too many answers at once; try again.';

/** Sends an answer that costs nothing. Its memory counts against the same budget as that of sold answers. */
export function sendGift(
  ctx: Context,
  { deliveries }: Pick<SellingParts, 'deliveries'>,
  { answer, owner }: Pick<Sold, 'answer' | 'owner'>,
  own: Record<string, string> = {},
): void {
  const { req: request, res: response } = ctx;
  const delivery = deliveries.open(owner, answer.body, () => request.socket.destroy());
  if (!delivery) return sendError(ctx, 503, GIFT_NOT_SENT, { 'Retry-After': '1' });
  onSent(request, response, () => delivery.close());
  response.writeHead(answer.status, soldHeaders(answer, own));
  // Koa would write an error page if sending these bytes failed.
  ctx.respond = false;
  if (ctx.method === 'HEAD') return void response.end();
  write(response, delivery, () => {});
}

function write(response: ServerResponse, { body }: Delivery, ended: () => void): void {
  if (!Buffer.isBuffer(body)) {
    body.once('end', ended);
    pipeline(body, response, () => {});
    return;
  }
  response.end(body);
  ended();
}
