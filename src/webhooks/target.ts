import type { Message } from './event-message.js';

/** How long one attempt to reach a target may take. Shorter than the ledger's lease. */
export const SEND_MS = 15_000;

/** The reason why an event was not delivered. `message` is shown to the operator and contains no secret. */
export class NotTold extends Error {}

/** A target of events. */
export type Target = {
  name: string;
  /** Resolves to a short form of the target's answer. @throws NotTold */
  send(message: Message, signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
};
