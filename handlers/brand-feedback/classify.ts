import sentiment from 'wink-sentiment';
import { languageOf } from './language.js';
import { MAX_REPLY_CHARACTERS, type Sentiment } from './replies.js';

/** On AFINN's scale of −5 to 5. The weakest words count ±1, so a mean below ±0.5 expresses no clear opinion. */
const NEUTRAL_BAND = 0.5;

/** The word lists are plain objects, so these words would yield inherited functions instead of scores. */
const INHERITED = new RegExp(`\\b(?:${Object.getOwnPropertyNames(Object.prototype).join('|')})\\b`, 'gi');

/** The package takes quadratic time for a long word. No opinion word is longer than this. */
const LONG_WORD = /\S{30}/gu;

/**
 * Infers a sentiment from English text with wink-sentiment (AFINN and emoji lists, negation). A text without opinion words
 * is neutral. Looks at the first 2 000 characters.
 */
export function classify(text: string): Sentiment {
  const phrase = text.slice(0, MAX_REPLY_CHARACTERS).replace(INHERITED, ' ').replace(LONG_WORD, '$& ').trim();
  if (phrase === '') return 'neutral';
  const { normalizedScore } = sentiment(phrase);
  if (normalizedScore > NEUTRAL_BAND) return 'positive';
  return normalizedScore < -NEUTRAL_BAND ? 'negative' : 'neutral';
}

/**
 * The sentiment of a text whose language the word lists know. Texts too short to tell their language are read as English.
 * @returns undefined for a text in another language
 */
export function inferSentiment(text: string): Sentiment | undefined {
  return (languageOf(text) ?? 'en') === 'en' ? classify(text) : undefined;
}
