import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const waiting = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the response or its connection has closed. Node emits no event on a response that waits behind another
 * one when their connection closes.
 */
export function onClose({ socket }: IncomingMessage, response: ServerResponse, then: () => void): void {
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
