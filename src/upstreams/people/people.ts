/** What a respondent thinks, in the words of the contract (specification 2.8). */
export type Sentiment = 'positive' | 'neutral' | 'negative';

export const SENTIMENTS: readonly Sentiment[] = ['positive', 'neutral', 'negative'];

/** Longest reply we keep, in characters (code points). */
export const MAX_REPLY_CHARACTERS = 2_000;

export type Reply = {
  /** Unique within its question. */
  id: string;
  text: string;
  sentiment: Sentiment;
  /** Who wrote it: opaque, one reply per respondent and question. */
  respondent: string;
  /** True when nobody chose the sentiment and it was inferred from the text. */
  inferred: boolean;
  /** True when the sandbox's sample respondents wrote it, not a person. */
  isSample: boolean;
};

export type Question = {
  /** Id of the payment that bought it, hex. */
  id: string;
  brand: string;
  question: string;
  /** Replies paid for, 1–50. */
  wanted: number;
  /** ms since 1970. No reply counts after it. */
  deadline: number;
  /** 1 for the first attempt; an attempt is over when `ask` settled. */
  attempt: number;
};

export type Added = 'added' | 'duplicate' | 'full' | 'closed';

/** The replies to the questions that were paid for. Everything in it survives a crash. */
export type ReplyStore = {
  /** Questions being asked now, oldest first, with the number of their replies. */
  open(): Promise<(Question & { replies: number })[]>;
  /** Replies that count, oldest first. */
  replies(id: string): Promise<Reply[]>;
  /**
   * Adds one reply atomically: one per respondent and question, never more than wanted, only while the question is open.
   * `duplicate` also answers a reply id that is there already and a respondent whose reply was rejected.
   */
  add(id: string, reply: Reply): Promise<Added>;
  /** Throws a reply out: its place is free again, and its respondent can't answer this question again. */
  reject(id: string, replyId: string): Promise<boolean>;
  /** What was, or is about to be, asked of an external provider; opaque to the book. */
  intent(id: string): Promise<string | null>;
  /** Resolves when the intent is on disk: the provider is asked only after that. */
  saveIntent(id: string, intent: string): Promise<void>;
};

/** People who can be asked what they think of a brand (specification 2.7). */
export type People = {
  /** Short name of the adapter, for logs and health. */
  name: string;
  /**
   * Asked before any money is taken.
   * @throws UpstreamFailure `unavailable` when nobody can be asked now: no respondent present, too many open questions,
   *   marketplace down, budget ceiling; `invalid` when `about` is given and can't be put to these people, for instance because it is
   *   too long.
   */
  ready(wanted: number, about?: { brand: string; question: string }): Promise<void>;
  /**
   * Resolves when the book holds the wanted replies or the deadline has passed. Safe to call again for the same question
   * after a crash, by the same or another process, one at a time.
   * @throws UpstreamFailure when the provider fails for good; the signal's reason when it aborts, with nothing undone.
   */
  ask(question: Question, signal: AbortSignal): Promise<void>;
  health(): Promise<{ status: 'ok' | 'degraded'; detail?: string }>;
  close(): Promise<void>;
};
