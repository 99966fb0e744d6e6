import type { Message } from './event-message.js';

/** How long one attempt to tell a target may take. Shorter than the ledger's lease. */
export const SEND_MS = 15_000;

/** Why a target was not told. `message` is shown to the operator, and holds no secret. */
export class NotTold extends Error {}

/** Somebody who is told. */
export type Target = {
  name: string;
  /** Resolves to what the target said, in short. @throws NotTold */
  send(message: Message, signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
};
