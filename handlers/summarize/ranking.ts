import { cueFactor, isWanted, type Cue, type Genre } from './cues.js';
import { SPACELESS } from './words.js';

/** Centroid ranking of statements (TF-IDF) with lead bias, the cues of a genre, and a penalty for redundancy. */

/** A candidate. `weight` scales its score, by kind (prose 1, code less) and readability. */
export type Candidate = { text: string; block: number; firstOfBlock: boolean; weight: number; cues: Cue[] };

/** What is ranked for: `topic` (headings, a subject line) raises the statements about it. */
export type Reading = { genre: Genre; topic: string };

type Vector = Map<string, number>;

const STOPWORDS = new Set(
  (
    'a about above after again all also am an and any are as at be because been before being below between both but by ' +
    'can could did do does doing down during each even ever every few for from further get got had has have having he her ' +
    'here hers him his how i if in into is it its itself just like may me might more most much must my no nor not now of ' +
    'off on once one only or other our out over own per said same say says she should so some such than that the their ' +
    'them then there these they this those through to too under until up upon us very was we were what when where which ' +
    'while who whom why will with within without would yes yet you your ' +
    'der die das den dem des ein eine einen einem einer und oder aber ist sind war wird werden auf für mit von zu zum zur ' +
    'nicht auch sich es er sie wir ihr ich als bei nach aus wie dass noch nur über im um hat haben ' +
    'le la les un une des du de et ou est sont dans pour par sur avec que qui ne pas plus ce cette il elle nous vous au aux ' +
    'el los las una y o es son en por para con del al no se su sus lo como más que il lo gli di e è che per non con dei'
  ).split(' '),
);

const wordSegmenter = new Intl.Segmenter('en', { granularity: 'word' });
/** The word segmenter takes about a microsecond per character. Longer texts are split into pairs of characters instead. */
const SEGMENTED_CHARACTERS = 200_000;

function stem(word: string): string {
  const bare = word.replace(/['’]s$/, '');
  return bare.length > 4 && /[^su]s$/.test(bare) ? bare.slice(0, -1) : bare;
}

function pairs(text: string): string[] {
  const letters = text.match(/[\p{L}\p{N}\p{M}]/gu) ?? [];
  return letters.slice(1).map((letter, index) => `${letters[index]}${letter}`);
}

/** Words that carry meaning, for any script. */
function terms(text: string, segmented: boolean): string[] {
  const lower = text.toLowerCase();
  if (SPACELESS.test(lower)) {
    if (!segmented) return pairs(lower);
    const found: string[] = [];
    for (const { segment, isWordLike } of wordSegmenter.segment(lower)) {
      if (isWordLike && !/^\p{scx=Hiragana}{1,2}$/u.test(segment)) found.push(segment);
    }
    return found;
  }
  const found = lower.match(/[\p{L}\p{N}\p{M}]+(?:['’.][\p{L}\p{N}]+)*/gu) ?? [];
  return found.filter(word => !STOPWORDS.has(word)).map(stem);
}

function counts(list: string[]): Vector {
  const vector: Vector = new Map();
  for (const term of list) vector.set(term, (vector.get(term) ?? 0) + 1);
  return vector;
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

/** TF-IDF vectors. A term that is in every sentence still counts a little, so that short texts can be ranked. */
function vectors(candidates: Candidate[]): Vector[] {
  const total = candidates.reduce((sum, { text }) => sum + text.length, 0);
  const segmented = total <= SEGMENTED_CHARACTERS;
  const counted = candidates.map(({ text }) => counts(terms(text, segmented)));
  const spread: Vector = new Map();
  for (const vector of counted)
    for (const term of vector.keys()) spread.set(term, (spread.get(term) ?? 0) + 1);
  for (const vector of counted) {
    for (const [term, count] of vector) {
      const idf = Math.log(1 + counted.length / (spread.get(term) ?? 1));
      vector.set(term, (1 + Math.log(count)) * idf);
    }
  }
  return counted;
}

/** The topic of the text: the sum of its sentences, without words that are in one sentence only, if there are others. */
function centroidOf(weighted: Vector[], candidates: Candidate[]): Vector {
  const centroid: Vector = new Map();
  const seen: Vector = new Map();
  for (const [index, vector] of weighted.entries()) {
    for (const [term, value] of vector) {
      centroid.set(term, (centroid.get(term) ?? 0) + value * (candidates[index]?.weight ?? 1));
      seen.set(term, (seen.get(term) ?? 0) + 1);
    }
  }
  const shared = new Map([...centroid].filter(([term]) => (seen.get(term) ?? 0) > 1));
  return shared.size >= 3 ? shared : centroid;
}

/** Earlier sentences say more, above all the very first where no genre says otherwise; so do the first ones of a paragraph. */
function lead(index: number, candidate: Candidate, genre: Genre): number {
  return (
    1 +
    (genre === 'plain' ? 0.6 : 0.2) * Math.exp(-index / 4) +
    0.15 * Math.exp(-candidate.block / 8) +
    (candidate.firstOfBlock ? 0.1 : 0)
  );
}

/** Rulings, studies and stories say at their end how it came out; they do not begin with the point. */
const ENDS_WITH_RESULT: ReadonlySet<Genre> = new Set(['ruling', 'study', 'story']);

function position(index: number, total: number, candidate: Candidate, genre: Genre): number {
  if (!ENDS_WITH_RESULT.has(genre)) return lead(index, candidate, genre);
  const fromEnd = total - 1 - index;
  return 1 + 0.15 * Math.exp(-index / 2) + 0.6 * Math.exp(-fromEnd / 1.5);
}

/** Highest near 120 characters; fragments say too little. */
function lengthFactor(text: string, termCount: number): number {
  const short = Math.min(1, (termCount + 1) / 6);
  const dense = SPACELESS.test(text) ? 3 : 1;
  const excess = Math.max(0, text.length * dense - 220);
  return short * Math.exp(-excess / 600);
}

/** Figures, dates, amounts and names in capitals are what a reader can't guess. */
function facts(text: string): number {
  const figures = text.match(/\p{N}+(?:[.,:]\p{N}+)*/gu)?.length ?? 0;
  const amounts =
    text.match(
      /[%€$£¥°]|(?<!\p{L})(?:euros?|dollars?|pounds?|percent|prozent|euro|руб|млн|млрд)|[元円]|บาท|ร้อยละ/giu,
    )?.length ?? 0;
  return 1 + 0.25 * Math.min(3, figures) + 0.2 * Math.min(2, amounts);
}

/** What a statement is worth even if nothing else in the text is about the same; a statement about everything has 1 more. */
const OWN_MERIT = 0.5;

/** How well each candidate alone would stand for the text, and its vector. */
function merits(
  candidates: Candidate[],
  { genre, topic }: Reading,
): { base: number[]; weighted: Vector[]; norms: number[] } {
  const weighted = vectors(candidates);
  const norms = weighted.map(norm);
  const centroid = centroidOf(weighted, candidates);
  const centroidNorm = norm(centroid);
  const wanted = new Set(terms(topic.slice(0, 1_000), true));
  const base = candidates.map((candidate, index) => {
    const vector = weighted[index] ?? new Map<string, number>();
    const central = cosine(vector, centroid, (norms[index] ?? 0) * centroidNorm);
    const onTopic = [...wanted].filter(term => vector.has(term)).length / Math.max(3, wanted.size);
    const merit =
      (OWN_MERIT + central) * lengthFactor(candidate.text, vector.size) * (1 + 0.5 * Math.min(1, onTopic));
    const said = cueFactor(candidate.cues, genre) * facts(candidate.text);
    return merit * said * position(index, candidates.length, candidate, genre) * candidate.weight;
  });
  return { base, weighted, norms };
}

/** What adds less than this share of the best statement only fills. */
const LEAST_MERIT = 0.15;
/** Candidates that were refused by `admits` before the search ends. */
const MAX_REFUSED = 24;
/** Of two statements that are more alike, one only repeats the other. */
const SAME = 0.85;
/** A statement with a cue that no picked one has yet is worth more. */
const NOVELTY = 1.3;

type Search = {
  base: number[];
  /** How much of a candidate the picked ones say already, 0 to 1. */
  repeated: number[];
  seen: Set<number>;
  covered: Set<Cue>;
};

/** The best remaining candidate; -1 if the remaining ones only repeat those already selected, or only fill. */
function bestOf(search: Search, candidates: Candidate[], genre: Genre, further: boolean): number {
  const least = further
    ? LEAST_MERIT * Math.max(...[...search.seen].map(index => search.base[index] ?? 0))
    : 0;
  let best = -1;
  let bestScore = -1;
  for (const [index, merit] of search.base.entries()) {
    const alike = search.repeated[index] ?? 0;
    if (search.seen.has(index) || (further && (alike > SAME || merit < least))) continue;
    const cues = candidates[index]?.cues ?? [];
    const isNew = cues.some(cue => isWanted(cue, genre) && !search.covered.has(cue));
    const score = merit * (1 - alike) * (isNew ? NOVELTY : 1);
    if (score > bestScore) [best, bestScore] = [index, score];
  }
  return best;
}

/**
 * Indices of the most representative candidates, best first, as long as `admits` accepts the next one together with those before it.
 * Deterministic: of equal scores, the earlier statement wins.
 */
export function rank(
  candidates: Candidate[],
  reading: Reading,
  admits: (picked: number[]) => boolean,
): number[] {
  const { base, weighted, norms } = merits(candidates, reading);
  const search: Search = { base, repeated: candidates.map(() => 0), seen: new Set(), covered: new Set() };
  const picked: number[] = [];
  for (let refused = 0; refused < MAX_REFUSED;) {
    const best = bestOf(search, candidates, reading.genre, picked.length > 0);
    if (best < 0) break;
    search.seen.add(best);
    if (picked.length > 0 && !admits([...picked, best])) {
      refused += 1;
      continue;
    }
    picked.push(best);
    for (const cue of candidates[best]?.cues ?? []) search.covered.add(cue);
    const chosen = weighted[best] ?? new Map<string, number>();
    for (const [index, vector] of weighted.entries()) {
      const alike = cosine(vector, chosen, (norms[index] ?? 0) * (norms[best] ?? 0));
      search.repeated[index] = Math.max(search.repeated[index] ?? 0, alike);
    }
  }
  return picked;
}
