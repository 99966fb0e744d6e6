import { capitalised } from './pack.js';
import { countWords } from './words.js';

/** Shortens a sentence by leaving out clauses, never the main one. */

const openers = (list: string): RegExp =>
  new RegExp(`^["“„«(]?(?:${list.trim().split(/\s+/).join('|')})(?![\\p{L}\\p{N}])`, 'iu');

/** Words that open a clause which cannot stand alone. */
const SUBORDINATE = openers(
  'although though while whereas if unless when whenever where because since as after before until except notwithstanding subject ' +
    'pursuant provided given despite without in for by to on upon under during with having being such including which who whose whom ' +
    'whether that or and nor any ' +
    'obwohl während wenn falls weil da nachdem bevor bis sofern soweit ungeachtet vorbehaltlich gemäß trotz ohne um dass ob wobei ' +
    'welche welcher welches und oder sowie einschließlich ' +
    'bien quoique si lorsque quand parce puisque après avant malgré sous sans pour afin dont qui que où y et ou ainsi conformément sauf ' +
    'aunque mientras cuando porque después antes salvo pese sin para cuyo cuya quien conforme ' +
    'sebbene mentre quando perché poiché dopo prima nonostante salvo senza per cui quale ai ' +
    'embora enquanto porque depois antes apesar salvo sem cujo cuja nos ' +
    'хотя если когда пока поскольку после несмотря согласно при который которая которое которые что чтобы где и или',
);
/** Finite verbs that are common in every kind of prose. */
const FINITE =
  /(?<!\p{L})(?:is|are|was|were|has|have|had|shall|will|may|must|can|does|do|did|would|should|could|holds?|finds?|agrees?|grants?|ist|sind|war|waren|wird|werden|wurde|wurden|hat|haben|hatte|kann|können|darf|dürfen|muss|müssen|soll|sollen|est|sont|était|étaient|sera|seront|a|ont|avait|doit|doivent|peut|peuvent|es|son|era|será|serán|ha|han|había|debe|deben|podrá|puede|pueden|è|sono|sarà|hanno|aveva|deve|devono|può|possono|é|são|foi|será|tem|têm|tinha|pode|podem|есть|был|была|было|были|будет|будут|может|могут|должен|должна|должны)(?!\p{L})/iu;
const STARTS_WITH_FINITE = new RegExp(`^${FINITE.source}`, 'iu');
const REMARK = /(?<!\s)\s*[(（][^()（）]{1,300}[)）]/gu;
const SEGMENT = /(?<=[,;]\s)|(?<=\s[—–-]\s)|(?<=[，；])/u;

/** More segments than this are a list, not a sentence. */
const MAX_SEGMENTS = 200;

const trimmed = (segment: string): string => segment.replace(/(?<![\s,;，；—–-])[\s,;，；—–-]+$/u, '').trim();

/** Whether a sentence begins with a clause that cannot stand alone, so that its main clause comes later. */
export const opensSubordinate = (sentence: string): boolean => SUBORDINATE.test(sentence);

const DETERMINER = /^(?:the|this|each|no|der|die|das|le|la|les|l'|el|los|las|il|lo|gli|i|o|os|as)\s/iu;

/** Index of the segment in which the main clause begins; -1 if it can't be told. */
function mainClause(segments: string[]): number {
  if (!opensSubordinate(segments[0] ?? '')) return 0;
  const stands = (segment: string): boolean => !SUBORDINATE.test(segment) && FINITE.test(segment);
  const verb = segments.findIndex((segment, index) => index > 0 && stands(segment));
  if (verb < 0 || !STARTS_WITH_FINITE.test(segments[verb] ?? '')) return verb;
  for (let index = verb - 1; index > 0; index -= 1) if (DETERMINER.test(segments[index] ?? '')) return index;
  // German inverts what follows such a clause: a later main clause reads better.
  return segments.findIndex(
    (segment, index) => index > verb && stands(segment) && !STARTS_WITH_FINITE.test(segment),
  );
}

/** The segments from `from` on that fit into `limit` words: first those without which the sentence is none. */
function fitted(segments: string[], from: number, limit: number): string | undefined {
  const rest = segments.slice(from).map((text, index) => ({ text: trimmed(text), index }));
  const verb = rest.findIndex(
    ({ text, index }) => (index === 0 || !SUBORDINATE.test(text)) && FINITE.test(text),
  );
  const kept = new Set<number>([0]);
  const words = (): number =>
    countWords(
      rest
        .filter(({ index }) => kept.has(index))
        .map(({ text }) => text)
        .join(', '),
    );
  if (verb > 0) kept.add(verb);
  if (words() > limit) return undefined;
  for (const { index } of rest) {
    if (kept.has(index)) continue;
    kept.add(index);
    if (words() > limit) {
      kept.delete(index);
      if (index > verb) break;
    }
  }
  return join(rest, kept, verb);
}

/** A subject and its verb get no comma between them where what stood there was left out. */
function join(rest: { text: string; index: number }[], kept: Set<number>, verb: number): string {
  let out = '';
  let last = -1;
  for (const { text, index } of rest) {
    if (!kept.has(index)) continue;
    const bare = index === verb && last < index - 1 && STARTS_WITH_FINITE.test(text);
    out += out === '' ? text : bare ? ` ${text}` : `, ${text}`;
    last = index;
  }
  return out;
}

/**
 * `sentence` in at most `limit` words: without remarks in brackets, then without subordinate clauses. Undefined if its main clause
 * can't be told from the others, or is too long itself.
 */
export function shorten(sentence: string, limit: number): string | undefined {
  if (countWords(sentence) <= limit) return sentence;
  const bare = sentence.replace(REMARK, '');
  if (countWords(bare) <= limit) return bare;
  const segments = bare.split(SEGMENT);
  if (segments.length === 1 || segments.length > MAX_SEGMENTS) return undefined;
  const main = mainClause(segments);
  if (main < 0) return undefined;
  const short = fitted(segments, main, limit);
  if (short === undefined || !/\s|[\p{scx=Han}\p{scx=Kana}]/u.test(short)) return undefined;
  const mark = /[.!?。！？]["'”’»)\]]*$/u.exec(sentence)?.[0] ?? '';
  const closed = /[.!?。！？]["'”’»)\]]*$/u.test(short) ? short : `${short}${mark}`;
  return capitalised(closed);
}
