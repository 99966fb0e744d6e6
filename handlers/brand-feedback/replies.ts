/** What a respondent thinks, in the words of the contract. */
export type Sentiment = 'positive' | 'neutral' | 'negative';

export const SENTIMENTS: readonly Sentiment[] = ['positive', 'neutral', 'negative'];

/** The opinion that a respondent stated; `unknown` if none. It is never guessed from the words. */
export type Opinion = Sentiment | 'unknown';

/** The maximum length of a reply, in characters (code points). */
export const MAX_REPLY_CHARACTERS = 2_000;

export type Reply = {
  /** Unique within its question. */
  id: string;
  text: string;
  sentiment: Opinion;
  /** Opaque id of the author. Each respondent can answer a question once. */
  respondent: string;
  /** True if a sample respondent of the sandbox wrote it, not a person. */
  isSample: boolean;
  /** True if the reply counts only once the operator has admitted it. */
  isHeld?: boolean;
};

export type Question = {
  /** Id of the payment that bought it, hex. */
  id: string;
  brand: string;
  question: string;
  /** The number of replies that the buyer paid for. */
  wanted: number;
  /** ms since 1970. Replies after this time do not count. */
  deadline: number;
  /** 1 for the first attempt. An attempt is over once `ask` has settled. */
  attempt: number;
};

export type Added = 'added' | 'held' | 'duplicate' | 'full' | 'closed';

/** Stores the replies to paid questions. Stored data survives a crash. */
export type ReplyStore = {
  /** Open questions, oldest first, with the number of their replies. */
  open(): Promise<(Question & { replies: number })[]>;
  /** Replies that count, oldest first. */
  replies(id: string): Promise<Reply[]>;
  /** Held replies, which wait for the operator, oldest first. */
  held(id: string): Promise<Reply[]>;
  /**
   * Adds one reply atomically: one per respondent and question, never more than wanted, only while the question is open. A reply to be
   * held is stored but does not count. `duplicate` is also returned for a known reply id, and for a respondent whose reply was rejected.
   */
  add(id: string, reply: Reply): Promise<Added>;
  /**
   * Lets a held reply count.
   * @returns false if there is no such reply, or if its order was answered or has all its replies
   */
  admit(id: string, reply: string): Promise<boolean>;
  /**
   * Rejects a reply. Its place is free again, but its respondent can't reply again.
   * @returns false if there is no such reply, or if its order was answered
   */
  reject(id: string, reply: string): Promise<boolean>;
  /** The request that was or is about to be sent to an external provider; opaque to the store. */
  intent(id: string): Promise<string | null>;
  /** Resolves when the intent is on disk. Only then is the request sent to the provider. */
  saveIntent(id: string, intent: string): Promise<void>;
};
