import { eld } from 'eld/extrasmall';

/** Enough characters to detect the language; the rest of a long text is ignored. */
const MAX_CHARACTERS = 500;

/** The language of a text (ISO 639-1), by its letter sequences. Undefined if it can't be detected, for example in a lone name. */
export function languageOf(text: string): string | undefined {
  const found = eld.detect(text.slice(0, MAX_CHARACTERS));
  return found.isReliable() && found.language !== '' ? found.language : undefined;
}
