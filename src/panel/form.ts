import type { Context } from 'koa';

/** Answered as a page (or JSON) with this status; the message says what to do next. */
export class PanelFault extends Error {
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** 2 000 characters of four bytes, each byte written as %XX, and the other fields. */
const MAX_FORM_BYTES = 32_768;
const FORM_DEADLINE_MS = 10_000;

/**
 * Reads a form as browsers send it.
 * @throws PanelFault 415 for other types, 413 above 32 KB, 408 when it does not arrive within 10 s.
 */
export async function readForm(ctx: Context): Promise<URLSearchParams> {
  if (!ctx.is('application/x-www-form-urlencoded'))
    throw new PanelFault(415, 'Send a form as application/x-www-form-urlencoded.', { Connection: 'close' });
  const tooLarge = new PanelFault(
    413,
    `This is more than ${MAX_FORM_BYTES} bytes. Shorten it and send it again.`,
    {
      Connection: 'close',
    },
  );
  if (Number(ctx.get('Content-Length')) > MAX_FORM_BYTES) throw tooLarge;
  const chunks: Buffer[] = [];
  let size = 0;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () =>
        reject(
          new PanelFault(408, 'The form took too long to arrive. Send it again.', { Connection: 'close' }),
        ),
      FORM_DEADLINE_MS,
    );
    const end = (settle: () => void) => {
      clearTimeout(timer);
      ctx.req.off('data', onData);
      settle();
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > MAX_FORM_BYTES) end(() => reject(tooLarge));
    };
    ctx.req.on('data', onData);
    ctx.req.once('end', () => end(resolve));
    ctx.req.once('close', () => end(() => reject(new PanelFault(400, 'The form broke off. Send it again.'))));
    ctx.req.once('error', () => end(() => reject(new PanelFault(400, 'The form broke off. Send it again.'))));
  });
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
}
