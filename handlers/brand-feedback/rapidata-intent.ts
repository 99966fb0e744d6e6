/** One job that was, or is about to be, published for a question. */
export type Round = {
  /** Made from the question's id, the attempt and the round; a restarted server finds the job by this name. */
  name: string;
  /** Number of replies requested. */
  asked: number;
  definitionId?: string;
  /** Millionths of a dollar. */
  quote?: string;
  /** ms since 1970. Written before the job is created, so that a restarted server knows that the job may exist. */
  publishedAt?: number;
  jobId?: string;
  done?: boolean;
};

/** What this adapter stores about a question before it spends money. */
export type Intent = { provider: 'rapidata'; attempt: number; rounds: Round[] };

/** Undefined if there is no stored intent, or if another provider wrote it. */
export function readIntent(text: string | null): Intent | undefined {
  if (text === null) return undefined;
  try {
    const value = JSON.parse(text) as Partial<Intent> | null;
    return value?.provider === 'rapidata' && typeof value.attempt === 'number' && Array.isArray(value.rounds)
      ? (value as Intent)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The sum of all quotes, in millionths of a dollar. */
export function spentOn(rounds: Round[]): bigint {
  return rounds.reduce((sum, { quote }) => sum + BigInt(quote ?? '0'), 0n);
}
