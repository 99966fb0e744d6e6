import { createHmac, timingSafeEqual } from 'node:crypto';

/** The parts of a challenge that its id binds, as they are sent. */
export type Slots = {
  realm: string;
  method: string;
  intent: string;
  /** Base64url of canonical JSON. */
  request: string;
  expires?: string | undefined;
  digest?: string | undefined;
  opaque?: string | undefined;
};

/**
 * The ids of challenges: base64url of an HMAC-SHA256 over their seven slots, so that servers need not store their challenges, and every
 * server with the secret recognises them.
 */
export class ChallengeIds {
  readonly #secrets: readonly [string, ...string[]];

  /** @param secrets the first one makes ids; ids made with any of them are accepted */
  constructor(secrets: readonly [string, ...string[]]) {
    this.#secrets = secrets;
  }

  of(slots: Slots): string {
    return idOf(this.#secrets[0], slots).toString('base64url');
  }

  /** Whether one of the secrets made this id for these slots. */
  made(id: string, slots: Slots): boolean {
    const sent = Buffer.from(id, 'base64url');
    return this.#secrets.some(secret => {
      const own = idOf(secret, slots);
      return sent.length === own.length && timingSafeEqual(sent, own);
    });
  }
}

function idOf(
  secret: string,
  { realm, method, intent, request, expires = '', digest = '', opaque = '' }: Slots,
): Buffer {
  const text = [realm, method, intent, request, expires, digest, opaque].join('|');
  return createHmac('sha256', secret).update(text).digest();
}
