import { createHash } from 'node:crypto';
import type { Question, Reply, Sentiment } from './people.js';

type AskedQuestion = Pick<Question, 'id' | 'brand' | 'question'>;

/** A remark before, the opinion, a remark after. Any of each go together. */
type Voice = { openings: string[]; opinions: string[]; endings: string[] };

const VOICES: Record<Sentiment, Voice> = {
  positive: {
    openings: [
      'I have used {brand} for about a year.',
      'A friend pointed me to {brand}.',
      'I only know {brand} from the shop.',
      'My sister swears by {brand}.',
      'First time I looked at {brand} closely.',
      'I buy from {brand} now and then.',
      'I compared {brand} with two others.',
      'Quick first impression of {brand}.',
    ],
    opinions: [
      'I really like {topic}.',
      '{Topic}: good, better than I expected.',
      'With {topic} they got it right, it feels well made.',
      'I am happy with {topic} and would recommend it.',
      '{Topic} looks great and is easy to get on with.',
      'I enjoy {topic}, it is a nice change.',
      'For me {topic} is a clear win.',
    ],
    endings: [
      'I would buy again.',
      'Keep it that way.',
      'Good value for the money.',
      'My partner liked it too.',
      'The friendly service helps.',
      'It made me smile.',
      'No complaints so far.',
    ],
  },
  neutral: {
    openings: [
      'I know {brand} only by name.',
      'I see {brand} around, no more than that.',
      'Not a customer of {brand} at the moment.',
      '{brand} is one of several for me.',
      'I had to look {brand} up.',
      'I have no history with {brand}.',
      'I walk past {brand} most days.',
      'Someone at work mentioned {brand} once.',
    ],
    opinions: [
      '{Topic}: neither here nor there for me.',
      'I have no strong view on {topic}.',
      'About {topic}: it does what it says.',
      'I would need to see more of {topic} first.',
      '{Topic} is about what others have, too.',
      'It depends on the price of {topic}.',
      'For {topic} I would have to ask around.',
    ],
    endings: [
      'Ask me again in a month.',
      'I might have a look.',
      'Could go either way.',
      'That is all I can say.',
      'Other things matter more to me.',
      'I am on the fence.',
      'It is a matter of taste.',
    ],
  },
  negative: {
    openings: [
      'I stopped going to {brand} last spring.',
      'I wanted to like {brand}.',
      'To be honest about {brand}:',
      'I tried {brand} twice.',
      '{brand} used to be my usual place.',
      'I gave {brand} a chance.',
      'My experience with {brand} was short.',
      'I looked at what {brand} offers.',
    ],
    opinions: [
      '{Topic} disappointed me.',
      'I do not like {topic}.',
      'I find {topic} annoying and too expensive.',
      '{Topic} looks cheap to me.',
      'With {topic} they made it worse.',
      'I had problems with {topic}.',
      '{Topic}: confusing, I gave up.',
    ],
    endings: [
      'I would not pay for it.',
      'Others do it better.',
      'Please fix that.',
      'It was a bad surprise.',
      'I went elsewhere.',
      'It is a pity.',
      'I will not come back soon.',
    ],
  },
};

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

/** Every tenth voice decides differently for each question: about 5 positive, 3 neutral, 2 negative. */
function sentimentOf(seed: number): Sentiment {
  const tenth = seed % 10;
  if (tenth < 5) return 'positive';
  return tenth < 8 ? 'neutral' : 'negative';
}

function pick(list: string[], index: number): string {
  return list[index % list.length] ?? '';
}

/**
 * The reply of sample respondent number `index` (from 0), always the same for the same question. The first 56 texts of one
 * sentiment differ, because the numbers of openings and opinions have no common factor.
 */
export function sampleReply(asked: AskedQuestion, index: number): Reply {
  const seed = seedOf(asked.id, index);
  const sentiment = sentimentOf(seed);
  const { openings, opinions, endings } = VOICES[sentiment];
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
    id: `house-${index + 1}`,
    text: capital(text),
    sentiment,
    respondent: `house-${index + 1}`,
    inferred: false,
    isSample: true,
  };
}
