import type { Sentiment } from './replies.js';

/** The sentences of a summary in one language. Except in English, counts are placed where no word form depends on them. */
type Words = {
  positive: string;
  neutral: string;
  negative: string;
  and: string;
  /** `{given}` of `{wanted}` people answered in time. */
  few: string;
  replies: string;
  example: string;
  examples: string;
  quotes: readonly [string, string];
  /** `{unknown}` replies have no known opinion, and count as neutral. */
  unknown: string;
};

const WORDS: Readonly<Record<string, Words>> = {
  de: {
    ...{ positive: 'positiv', neutral: 'neutral', negative: 'negativ', and: 'und' },
    few: 'Bis zum Ende der Frist kamen nicht alle Antworten ({given} von {wanted}).',
    replies: 'Antworten nach Meinung',
    example: 'Beispiel',
    examples: 'Beispiele',
    quotes: ['„', '“'],
    unknown: 'Antworten ohne bekannte Meinung, als neutral gezählt: {unknown}.',
  },
  es: {
    ...{ positive: 'positivas', neutral: 'neutras', negative: 'negativas', and: 'y' },
    few: 'No todas las respuestas llegaron antes del plazo ({given} de {wanted}).',
    replies: 'Respuestas según la opinión',
    example: 'Ejemplo',
    examples: 'Ejemplos',
    quotes: ['«', '»'],
    unknown: 'Respuestas sin opinión conocida, contadas como neutras: {unknown}.',
  },
  fr: {
    ...{ positive: 'positives', neutral: 'neutres', negative: 'négatives', and: 'et' },
    few: 'Toutes les réponses ne sont pas arrivées à temps ({given} sur {wanted}).',
    replies: 'Réponses selon l’opinion',
    example: 'Exemple',
    examples: 'Exemples',
    quotes: ['« ', ' »'],
    unknown: 'Réponses sans opinion connue, comptées comme neutres : {unknown}.',
  },
  pt: {
    ...{ positive: 'positivas', neutral: 'neutras', negative: 'negativas', and: 'e' },
    few: 'Nem todas as respostas chegaram dentro do prazo ({given} de {wanted}).',
    replies: 'Respostas por opinião',
    example: 'Exemplo',
    examples: 'Exemplos',
    quotes: ['“', '”'],
    unknown: 'Respostas sem opinião conhecida, contadas como neutras: {unknown}.',
  },
};

/** The contents of a summary: the number of replies, their opinions, and one or two of them as quotations. */
export type Said = {
  given: number;
  wanted: number;
  counts: Record<Sentiment, number>;
  unknown: number;
  quotes: readonly string[];
};

/** The summary in a language; undefined if this file does not have the language. */
export function summaryIn(language: string | undefined, said: Said): string | undefined {
  const words = language !== undefined && Object.hasOwn(WORDS, language) ? WORDS[language] : undefined;
  if (!words) return undefined;
  const filled = (text: string): string =>
    text.replace(/\{(given|wanted|unknown)\}/g, (_, name: 'given' | 'wanted' | 'unknown') =>
      String(said[name]),
    );
  const { positive, neutral, negative } = said.counts;
  const quoted = said.quotes.map(text => words.quotes.join(text)).join(` ${words.and} `);
  return [
    said.given < said.wanted ? filled(words.few) : '',
    `${words.replies}: ${positive} ${words.positive}, ${neutral} ${words.neutral}, ${negative} ${words.negative}.`,
    quoted && `${said.quotes.length > 1 ? words.examples : words.example}: ${quoted}.`,
    said.unknown > 0 ? filled(words.unknown) : '',
  ]
    .filter(Boolean)
    .join(' ');
}
