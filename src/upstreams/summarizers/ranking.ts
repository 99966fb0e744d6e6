/** Centroid ranking of sentences (TF-IDF) with lead bias and a penalty for redundancy. */

/** A candidate. `weight` scales its score, by kind (prose 1, code less) and readability. */
export type Candidate = { text: string; block: number; firstOfBlock: boolean; weight: number };

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

const SPACELESS =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u;
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

/** Earlier sentences say more, above all the very first; so do the first ones of a paragraph. */
function lead(index: number, candidate: Candidate): number {
  return (
    1 +
    0.6 * Math.exp(-index / 4) +
    0.15 * Math.exp(-candidate.block / 8) +
    (candidate.firstOfBlock ? 0.1 : 0)
  );
}

/** Highest near 120 characters; fragments say too little. */
function lengthFactor(text: string, termCount: number): number {
  const short = Math.min(1, (termCount + 1) / 6);
  const dense = SPACELESS.test(text) ? 3 : 1;
  const excess = Math.max(0, text.length * dense - 220);
  return short * Math.exp(-excess / 600);
}

/**
 * Indices of the `count` most representative candidates, in text order. Deterministic: of equal scores, the earlier sentence wins.
 * `topic` (headings, a subject line) raises the scores of sentences about it.
 */
export function rank(candidates: Candidate[], count: number, topic: string): number[] {
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
      (0.15 + central) * lengthFactor(candidate.text, vector.size) * (1 + 0.5 * Math.min(1, onTopic));
    return merit * lead(index, candidate) * candidate.weight;
  });
  const redundancy = candidates.map(() => 0);
  const picked: number[] = [];
  while (picked.length < Math.min(count, candidates.length)) {
    const best = bestOf(base, redundancy, picked);
    if (best < 0) break;
    picked.push(best);
    const chosen = weighted[best] ?? new Map<string, number>();
    for (const [index, vector] of weighted.entries()) {
      const alike = cosine(vector, chosen, (norms[index] ?? 0) * (norms[best] ?? 0));
      redundancy[index] = Math.max(redundancy[index] ?? 0, alike);
    }
  }
  return picked.sort((left, right) => left - right);
}

/** The best remaining candidate; -1 if the remaining ones only repeat those already selected. */
function bestOf(base: number[], redundancy: number[], picked: number[]): number {
  let best = -1;
  let bestScore = -1;
  for (const [index, merit] of base.entries()) {
    const alike = redundancy[index] ?? 0;
    if (picked.includes(index) || (picked.length > 0 && alike > 0.85)) continue;
    const score = merit * (1 - alike);
    if (score > bestScore) [best, bestScore] = [index, score];
  }
  return best;
}
