import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const waiting = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the response or its connection has closed. When a connection closes, Node emits no
 * event on a response that is waiting behind another one.
 */
function onClose({ socket }: IncomingMessage, response: ServerResponse, then: () => void): void {
  if (response.closed || response.destroyed || socket.destroyed) return then();
  let others = waiting.get(socket);
  if (!others) {
    const all = new Set<() => void>();
    waiting.set(socket, (others = all));
    socket.once('close', () => all.forEach(end => end()));
  }
  const here = others;
  const end = (): void => {
    response.off('close', end);
    if (here.delete(end)) then();
  };
  here.add(end);
  response.once('close', end);
}

/** Calls back once the response has closed, with true if its last byte was written to an intact socket. */
export function onSent(
  request: IncomingMessage,
  response: ServerResponse,
  then: (out: boolean) => void,
): void {
  let out = false;
  // Node emits `finish` even if the socket was destroyed with bytes still unsent, so `finish` is not enough.
  response.once('finish', () => (out = !request.socket.destroyed));
  onClose(request, response, () => then(out));
}

/** A signal that aborts when the connection closes before the response is written. */
export function goneSignal(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  onClose(request, response, () => {
    if (!response.writableFinished) gone.abort();
  });
  return gone.signal;
}
