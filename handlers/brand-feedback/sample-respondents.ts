import { createHash } from 'node:crypto';
import { VOICES } from './sample-voices.js';
import type { Question, Reply, Sentiment } from './replies.js';

type AskedQuestion = Pick<Question, 'id' | 'brand' | 'question'>;

const MAX_BRAND = 60;
const MAX_TOPIC = 80;

/** Numbers that depend only on the question, so that every process writes the same replies. */
function seedOf(id: string, index: number): number {
  return createHash('sha256').update(`house ${id} ${index}`).digest().readUInt32BE(0);
}

function short(text: string, max: number): string {
  const line = text.replace(/[\s\p{C}]+/gu, ' ').trim();
  const characters = [...line];
  return characters.length <= max
    ? line
    : `${characters
        .slice(0, max - 1)
        .join('')
        .trim()}…`;
}

/** The topic of the question, as used in a sentence; the brand if no topic is found. */
function topicOf({ brand, question }: AskedQuestion): string {
  const about =
    /\b(?:think|thinks|thought|feel|say|know|heard|opinion)\s+(?:of|about|on)\s+(.+)/is.exec(question)?.[1] ??
    /\b(?:about|of|like|love|use|buy|try|prefer|recommend|trust|need)\s+(.+)/is.exec(question)?.[1];
  const noun =
    /\b(?:the|this|these|its|their)\s+(?:(?:new|old|next|last|latest|current)\s+)?[\p{L}\p{N}-]+/iu.exec(
      question,
    )?.[0];
  const clause =
    (about ?? noun ?? '').split(/[?!.;:,\n]|\s(?:to|for|when|because|if|than|instead|and why)\s/u)[0] ?? '';
  const topic = short(clause.replace(/\b(?:yourself|you|your)\b/gi, ' '), MAX_TOPIC);
  const words = topic.split(' ').length;
  return topic.length > 2 && words <= 10 ? topic : short(brand, MAX_BRAND);
}

function capital(text: string): string {
  const [first = '', ...rest] = [...text];
  return first.toUpperCase() + rest.join('');
}

/** Of every ten replies, about 5 are positive, 3 neutral and 2 negative. */
function sentimentOf(seed: number): Sentiment {
  const tenth = seed % 10;
  if (tenth < 5) return 'positive';
  return tenth < 8 ? 'neutral' : 'negative';
}

function pick(list: string[], index: number): string {
  return list[index % list.length] ?? '';
}

/**
 * The reply of sample respondent number `index` (from 0), always the same for the same question. The first 56 English texts of one
 * sentiment differ, and the first 30 in another language, because the numbers of openings and opinions have no common factor.
 * @param language of `VOICES`
 */
export function sampleReply(asked: AskedQuestion, index: number, language = 'en'): Reply {
  const seed = seedOf(asked.id, index);
  const sentiment = sentimentOf(seed);
  const voices = VOICES[language];
  if (!voices) throw new RangeError(`no sample respondent speaks ${language}`);
  const { openings, opinions, endings } = voices[sentiment];
  const shift = seedOf(asked.id, -1);
  const parts = [pick(openings, shift + index), pick(opinions, shift + index)];
  if (seed % 3 !== 0) parts.push(pick(endings, seed >>> 8));
  const topic = topicOf(asked);
  const words: Record<string, string> = {
    brand: short(asked.brand, MAX_BRAND),
    topic,
    Topic: capital(topic),
  };
  const text = parts.join(' ').replace(/\{(brand|topic|Topic)\}/g, (_, name: string) => words[name] ?? '');
  return {
    id: `sample-${index + 1}`,
    text: capital(text),
    sentiment,
    respondent: `sample-${index + 1}`,
    isSample: true,
  };
}
