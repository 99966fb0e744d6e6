import { readingOf } from './sentences.js';

/** Finds what a model invented: figures, dates, amounts and names in its summary that occur nowhere in the document. */

const FIGURE = /\p{N}+(?:[.,:’'\u00a0\u202f ]\p{N}{3}(?!\p{N})|[.,:/-]\p{N}+)*/gu;
const CURRENCY = /[€$£¥₹₽₿]|(?<!\p{L})(?:EUR|USD|GBP|CHF|JPY|CNY)(?!\p{L})/gu;
const NAME = /\p{Lu}[\p{L}\p{M}’'-]*/gu;
/** Languages that capitalise every noun: in these, only a word with several capitals is certainly a name. */
const NOUNS_CAPITALISED = new Set(['de', 'lb']);
/** The number of letters at the end of a name that may change with its case and number. */
const ENDING = 3;
const SHORTEST_STEM = 3;

const plain = (text: string): string => text.normalize('NFKC').replaceAll('’', "'");
const digits = (figure: string): string => figure.replace(/\P{N}/gu, '').replace(/^0+(?=.)/, '');
const words = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{M}]+/gu) ?? [];

/** Whether a name occurs, in any grammatical case and number. */
function occurs(name: string, stems: Set<string>): boolean {
  return words(name).every(word => stems.has(word.slice(0, Math.max(SHORTEST_STEM, word.length - ENDING))));
}

/** The beginnings of all words of the document, of each length that `occurs` may look for. */
function stemsOf(document: string): Set<string> {
  const stems = new Set<string>();
  for (const word of new Set(words(document)))
    for (let length = Math.min(SHORTEST_STEM, word.length); length <= Math.min(word.length, 40); length += 1)
      stems.add(word.slice(0, length));
  return stems;
}

/** Names, without the first word of the sentence, which is always capitalised. */
function namesOf(sentence: string, language: string): string[] {
  const names = [...sentence.matchAll(NAME)].filter(({ index }) =>
    /[\p{L}\p{N}]/u.test(sentence.slice(0, index)),
  );
  const all = names.map(([name]) => name.replace(/['’]s$/, '')).filter(name => name !== 'I');
  return NOUNS_CAPITALISED.has(language) ? all.filter(name => /\p{Lu}.*\p{Lu}/u.test(name)) : all;
}

/** Figures, dates, amounts and names in `sentences` that are missing in `document`; empty if none are found. */
export function inventedIn(sentences: string[], document: string): string[] {
  const source = plain(document);
  const figures = new Set(
    (source.match(FIGURE) ?? []).flatMap(figure => [
      digits(figure),
      ...(figure.match(/\p{N}+/gu) ?? []).map(digits),
    ]),
  );
  const currencies = new Set(source.match(CURRENCY));
  const stems = stemsOf(source);
  const { language } = readingOf(source);
  return sentences
    .map(plain)
    .flatMap(sentence => [
      ...(sentence.match(FIGURE) ?? []).filter(
        figure => !figures.has(digits(figure)) && !source.includes(figure),
      ),
      ...(sentence.match(CURRENCY) ?? []).filter(currency => !currencies.has(currency)),
      ...namesOf(sentence, language).filter(name => !occurs(name, stems)),
    ]);
}
