import { SPACELESS } from './words.js';

/** Centrality (TF-IDF), position and redundancy of sentences. */

/** A group of sentences of a text. `weight` scales its score; `needs` are the ones without which it is not understood. */
export type Candidate = { text: string; weight: number; needs: number[]; first: boolean };

type Vector = Map<string, number>;

const wordSegmenter = new Intl.Segmenter('en', { granularity: 'word' });
/** The word segmenter takes about a microsecond per character. Longer texts are split into pairs of characters instead. */
const SEGMENTED_CHARACTERS = 200_000;
/** A word in more of the sentences than this is a function word, in any language. */
const COMMON = 0.25;
const FEW = 8;

function pairs(text: string): string[] {
  const letters = text.match(/[\p{L}\p{N}\p{M}]/gu) ?? [];
  return letters.slice(1).map((letter, index) => `${letters[index]}${letter}`);
}

function terms(text: string, segmented: boolean): string[] {
  const lower = text.toLowerCase();
  if (!SPACELESS.test(lower))
    return (
      lower.match(/[\p{L}\p{N}\p{M}]{3,}|\p{N}+/gu)?.map(word => word.replace(/(?<=\p{L}{4})s$/u, '')) ?? []
    );
  if (!segmented) return pairs(lower);
  return Array.from(wordSegmenter.segment(lower)).flatMap(({ segment, isWordLike }) =>
    isWordLike === true && !/^\p{scx=Hiragana}{1,2}$/u.test(segment) ? [segment] : [],
  );
}

function norm(vector: Vector): number {
  let sum = 0;
  for (const value of vector.values()) sum += value * value;
  return Math.sqrt(sum);
}

function cosine(left: Vector, right: Vector, lengths: number): number {
  if (lengths === 0) return 0;
  const [small, large] = left.size < right.size ? [left, right] : [right, left];
  let sum = 0;
  for (const [term, value] of small) sum += value * (large.get(term) ?? 0);
  return sum / lengths;
}

function vectorsOf(candidates: Candidate[]): Vector[] {
  const segmented = candidates.reduce((sum, { text }) => sum + text.length, 0) <= SEGMENTED_CHARACTERS;
  const counted = candidates.map(({ text }) => {
    const vector: Vector = new Map();
    for (const term of terms(text, segmented)) vector.set(term, (vector.get(term) ?? 0) + 1);
    return vector;
  });
  const spread: Vector = new Map();
  for (const vector of counted)
    for (const term of vector.keys()) spread.set(term, (spread.get(term) ?? 0) + 1);
  for (const vector of counted)
    for (const [term, count] of vector) {
      const share = (spread.get(term) ?? 1) / counted.length;
      const common = counted.length > FEW && share > COMMON && term.length < 6;
      vector.set(term, common ? 0.05 : (1 + Math.log(count)) * Math.log(1 + 1 / share));
    }
  return counted;
}

/** The topic of the text: the sum of its sentences, without words that are in one only, if there are others. */
function centroidOf(vectors: Vector[], candidates: Candidate[]): Vector {
  const centroid: Vector = new Map();
  const seen: Vector = new Map();
  for (const [index, vector] of vectors.entries())
    for (const [term, value] of vector) {
      centroid.set(term, (centroid.get(term) ?? 0) + value * (candidates[index]?.weight ?? 1));
      seen.set(term, (seen.get(term) ?? 0) + 1);
    }
  const shared = new Map([...centroid].filter(([term]) => (seen.get(term) ?? 0) > 1));
  return shared.size >= 3 ? shared : centroid;
}

/** Texts begin with what they are about; one without headings ends with what it comes to. */
function position(index: number, total: number, first: boolean, headed: boolean): number {
  const end = total > 5 && !headed ? 0.4 * Math.exp(-(total - 1 - index) / 1.5) : 0;
  return 1 + 0.55 * Math.exp(-index / 4) + (first ? 0.15 : 0) + end;
}

/** Highest near 120 characters; fragments say too little, long ones take the place of others. */
function lengthFactor(text: string, termCount: number): number {
  const excess = Math.max(0, text.length * (SPACELESS.test(text) ? 3 : 1) - 260);
  return Math.min(1, (termCount + 1) / 9) * Math.exp(-excess / 700);
}

/** What a sentence is worth even if nothing else in the text is about the same; one about everything has 1 more. */
const OWN_MERIT = 0.35;
/** Of two sentences that are more alike, one only repeats the other. */
const SAME = 0.7;
/** What the best is worth; a candidate below this share of it only fills. */
const LEAST_MERIT = 0.3;
/** Candidates that were refused before the search ends. */
const MAX_REFUSED = 60;
/** A sentence that brings others with it takes their places. */
const COMPANY = 0.85;

/** The candidate and those that it needs, in text order. */
function closure(candidates: Candidate[], index: number): number[] {
  const found = new Set([index]);
  for (const member of found) for (const needed of candidates[member]?.needs ?? []) found.add(needed);
  return [...found].sort((left, right) => left - right);
}

/**
 * Indices of the candidates that stand for the text, in text order, as long as `admits` accepts them together. With a candidate come
 * those that it needs. `topic`: the title, if the text has headings. Deterministic: of equal scores, the earlier wins.
 */
export function rank(
  candidates: Candidate[],
  topic: string,
  admits: (picked: number[]) => boolean,
): number[] {
  const vectors = vectorsOf(candidates);
  const norms = vectors.map(norm);
  const centroid = centroidOf(vectors, candidates);
  const length = norm(centroid);
  const wanted = new Set(terms(topic.slice(0, 500), true));
  const merits = candidates.map(({ text, weight, first, needs }, index) => {
    const vector = vectors[index] ?? new Map<string, number>();
    const central = cosine(vector, centroid, (norms[index] ?? 0) * length);
    const onTopic = Math.min(
      1,
      [...wanted].filter(term => vector.has(term)).length / Math.max(2, wanted.size),
    );
    const figures = Math.min(3, text.match(/\p{N}+(?:[.,:]\p{N}+)*/gu)?.length ?? 0);
    const merit =
      (OWN_MERIT + central) * lengthFactor(text, vector.size) * (1 + 0.3 * onTopic) * (1 + 0.08 * figures);
    return (
      merit *
      position(index, candidates.length, first, topic !== '') *
      weight *
      (needs.length > 0 ? COMPANY : 1)
    );
  });
  return select({ candidates, vectors, norms, merits, admits });
}

type Search = {
  candidates: Candidate[];
  vectors: Vector[];
  norms: number[];
  merits: number[];
  admits: (picked: number[]) => boolean;
};

/** The best one left, by its merit and by how much of it the picked ones say already; -1 if none adds anything. */
function bestOf(merits: number[], repeated: number[], gone: Set<number>, least: number): number {
  let best = -1;
  let most = -1;
  for (const [index, merit] of merits.entries()) {
    const alike = repeated[index] ?? 0;
    if (gone.has(index) || alike > SAME || merit < least || merit * (1 - alike) <= most) continue;
    best = index;
    most = merit * (1 - alike);
  }
  return best;
}

function select({ candidates, vectors, norms, merits, admits }: Search): number[] {
  const repeated = candidates.map(() => 0);
  const refused = new Set<number>();
  const picked = new Set<number>();
  const most = merits.reduce((best, merit) => Math.max(best, merit), 0);
  while (refused.size < MAX_REFUSED) {
    const gone = new Set([...refused, ...picked]);
    const best = bestOf(merits, repeated, gone, picked.size === 0 ? 0 : LEAST_MERIT * most);
    if (best < 0) break;
    const added = closure(candidates, best).filter(index => !picked.has(index));
    if (!admits([...picked, ...added].sort((left, right) => left - right))) {
      refused.add(best);
      continue;
    }
    for (const member of added) {
      picked.add(member);
      const chosen = vectors[member] ?? new Map<string, number>();
      for (const [index, vector] of vectors.entries()) {
        const alike = cosine(vector, chosen, (norms[index] ?? 0) * (norms[member] ?? 0));
        repeated[index] = Math.max(repeated[index] ?? 0, alike);
      }
    }
  }
  return [...picked].sort((left, right) => left - right);
}
