const WRITTEN_OUT: Record<string, string | undefined> = {
  dr: 'doctor',
  mr: 'mister',
  mrs: 'missus',
  st: 'street',
};

/** The words of a text in lower case, without punctuation, titles spelled out. */
export function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[a-z0-9]+(?:'[a-z]+)?/g) ?? [];
  return words.map(word => WRITTEN_OUT[word] ?? word);
}

/** How many words must be changed, added or removed to turn `said` into `heard` (Levenshtein's distance in words). */
export function wordErrors(said: readonly string[], heard: readonly string[]): number {
  let row = Array.from({ length: heard.length + 1 }, (_, n) => n);
  for (const [at, word] of said.entries()) {
    const next = [at + 1];
    for (const [n, other] of heard.entries())
      next.push(
        Math.min(
          (row[n + 1] as number) + 1,
          (next[n] as number) + 1,
          (row[n] as number) + (word === other ? 0 : 1),
        ),
      );
    row = next;
  }
  return row[heard.length] as number;
}
