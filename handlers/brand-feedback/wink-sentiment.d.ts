/** The package has no types. */
declare module 'wink-sentiment' {
  export default function sentiment(phrase: string): { score: number; normalizedScore: number };
}
