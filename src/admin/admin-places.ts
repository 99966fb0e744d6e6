import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** `busy`: requests whose answers are not complete. `known`: the connection has sent the operator's token. */
type Place = { busy: number; known: boolean };

/**
 * The connections of the admin listener, whose number is limited. When there are more, the connection that has been idle longest is closed,
 * preferably one without the operator's token, so that nobody can shut the operator out by holding connections open.
 */
export class AdminPlaces {
  readonly #most: number;
  /** Ordered by last activity, oldest first. */
  readonly #open = new Map<Socket, Place>();

  constructor(server: Server, most: number) {
    this.#most = most;
    server.on('connection', (socket: Socket) => {
      if (this.#open.size >= this.#most && !this.#makeRoom()) return void socket.destroy();
      this.#open.set(socket, { busy: 0, known: false });
      socket.once('close', () => this.#open.delete(socket));
    });
  }

  /** Registers a request. Its connection is idle again once the request is answered. */
  begin({ socket }: IncomingMessage, response: ServerResponse): void {
    const place = this.#open.get(socket);
    if (!place) return;
    place.busy += 1;
    response.once('close', () => {
      place.busy -= 1;
      if (!this.#open.delete(socket) || socket.destroyed) return;
      this.#open.set(socket, place);
    });
  }

  /** Records that this request has the operator's token. */
  recognize({ socket }: IncomingMessage): void {
    const place = this.#open.get(socket);
    if (place) place.known = true;
  }

  /** @returns false if all connections are busy with the operator's requests */
  #makeRoom(): boolean {
    const [first] = [...this.#open].sort(([, one], [, other]) => worthOf(one) - worthOf(other));
    if (!first || worthOf(first[1]) === MOST_WORTH) return false;
    this.#open.delete(first[0]);
    first[0].destroy();
    return true;
  }
}

const MOST_WORTH = 3;

function worthOf({ busy, known }: Place): number {
  return (known ? 2 : 0) + (busy > 0 ? 1 : 0);
}
