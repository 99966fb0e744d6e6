/** Seconds, measured with the embedded engine; other engines are close. */
const LETTER = 0.065;
/** For words without a vowel, which are spelled out. */
const SPELLED_LETTER = 0.25;
const LONE_DIGIT = 0.35;
/** For numbers of two to four digits, which become several words ("nineteen ninety-nine"). */
const GROUPED_DIGIT = 0.5;
/** For longer numbers, which are read digit by digit. */
const LISTED_DIGIT = 0.26;
const SENTENCE_END = 0.35;

/** Twice the time of 2 500 characters of prose (165 s). */
export const MAX_SPEECH_SECONDS = 330;

function secondsOf(token: string): number {
  const { length } = token;
  if (/^\d/.test(token)) {
    if (length === 1) return LONE_DIGIT;
    return length * (length <= 4 ? GROUPED_DIGIT : LISTED_DIGIT);
  }
  if (!/^[a-z]/i.test(token)) return SENTENCE_END;
  return length * (/[aeiouy]/i.test(token) ? LETTER : SPELLED_LETTER) + LETTER;
}

/** Estimates how long a text takes to say in English, in seconds. Numbers and initials take several times as long as words. */
export function speakingSeconds(text: string): number {
  let seconds = 0;
  for (const [token] of text.matchAll(/[a-z]+|\d+|[.!?](?=\s)/gi)) seconds += secondsOf(token);
  return seconds;
}

/** The message for a caller whose text would take `seconds` to speak. */
export function tooLongMessage(seconds: number): string {
  return (
    `text would take about ${Math.round(seconds)} seconds to say; the limit is ${MAX_SPEECH_SECONDS} seconds. ` +
    'Numbers, signs and initials are spelled out; shorten the text, or split it into several calls.'
  );
}
