import { speakerOf } from './plain-text.js';

/** Whether a sentence can be understood without the one before it: by the function words of ten languages. */

const list = (words: string): string => words.trim().split(/\s+/).join('|').replaceAll('~', '\\s');
const opening = (words: string): RegExp =>
  new RegExp(`^["'“‘«„(¿¡]{0,2}(?:${list(words)})(?![\\p{L}\\p{N}])`, 'iu');

/** What points back or continues when a sentence begins with it. */
const POINTS_BACK = opening(
  "it its it’s it's they them their he him his she her hers both~of neither~of either~of another others such the~former the~latter the~same " +
    'this~(?:is|was|has|had|will|would|can|may|means|makes|made|includes|allows|should|does) these~(?:are|were|have|will|include) that~(?:is|was|said|means|would|will) ' +
    'those~(?:are|were|who) however but and so thus hence therefore moreover furthermore also then instead meanwhile otherwise nevertheless ' +
    'for~example for~instance in~addition as~a~result yes no because which what~is~more in~this~case in~that~case similarly likewise accordingly ' +
    'the~(?:first|second|third|fourth|two|three|other|next|last|remaining|rest|previous|new|old|above)~(?:one|ones|of|is|are|was|were)? of~(?:these|those|them) ' +
    'first second third firstly secondly thirdly next finally lastly both all~(?:two|three|four|of~(?:them|these)) ' +
    'der~zweite die~zweite das~zweite der~andere die~andere das~andere zweitens drittens danach anschließend zuletzt hij zij ze deze dit daarom dus echter ' +
    'maar ook hierdoor daarbij bovendien daarna vervolgens tenslotte ensuite puis enfin luego después finalmente poi infine depois затем потом наконец ' +
    'er sie es ihm ihn ihnen ihr ihre dies dieses~ist das~ist das~war damit dadurch dabei dazu darin darauf dafür dagegen deshalb daher ' +
    'also jedoch aber und denn außerdem ferner zudem dennoch trotzdem somit sonst hierfür hierzu hierbei beide dessen deren ja nein zum~beispiel ' +
    "il elle ils elles lui leur leurs cela ceci c['’]est ce~sont celui celle ceux celles celui-ci celle-ci mais et donc ainsi cependant toutefois or en~effet " +
    'de~plus en~outre par~exemple oui non dès~lors ' +
    'él ella ellos ellas esto eso ello este~es esta~es pero y sin~embargo además por~tanto por~lo~tanto así también entonces por~ejemplo sí ' +
    'egli esso essa essi loro lui lei ciò questo~è questa~è ma e tuttavia quindi inoltre perciò infatti anche ad~esempio sì ' +
    'ele ela eles elas isto isso mas e porém portanto além~disso assim também entretanto contudo por~exemplo sim não ' +
    'он она оно они его её их им это этот~же но и однако поэтому также кроме~того при~этом таким~образом например да нет тем~не~менее',
);
/** In scripts without spaces, an opening is no word of its own. */
const POINTS_BACK_SPACELESS =
  /^["“「『（]?(?:他|她|它|这是|这个|这些|那|此外|此|该|其|但|因此|所以|然而|而且|并且|同时|另外|是的|これ|それ|この(?:ため|場合|ように|結果)|その|彼|しかし|また|そのため|したがって|ただし|なお|さらに|はい|いいえ)/u;
/** Persons and things that somebody must have named. A sentence that names nothing before them means what was named before it. */
const NAMELESS = /(?<!\p{L})(?:them|they|he|she|him|themselves|himself|herself)(?!\p{L})/iu;
const ANSWERS = /^(?:yes|no|ja|nein|oui|non|sí|sì|sim|não|да|нет)[,.!]/iu;
/** Whether `sentence` points to something that an earlier one names. */
export function leansBack(sentence: string): boolean {
  if (POINTS_BACK.test(sentence) || POINTS_BACK_SPACELESS.test(sentence) || ANSWERS.test(sentence))
    return true;
  const pronoun = NAMELESS.exec(sentence);
  if (pronoun === null) return false;
  const before = sentence.slice(0, pronoun.index);
  const plural = /^(?:them|they|themselves)$/i.test(pronoun[0]);
  return plural ? !isListed(before) : !/\s\p{Lu}\p{L}{2}/u.test(before);
}

/** Whether two things that "they" may mean are named: one is more likely who does it, the other what it is done to. */
const isListed = (before: string): boolean => (before.match(/\p{Ll}{3}s(?!\p{L})/gu)?.length ?? 0) >= 2;

export const isQuestion = (sentence: string): boolean => /[?？؟]["”»)」]{0,3}$/u.test(sentence);
/** A sentence that ends in a colon is told by what follows it. */
export const leansOn = (sentence: string): boolean => /[:：]["'”’»)]*$/u.test(sentence);
/** Speech without who speaks. */
export const isBareSpeech = (sentence: string): boolean =>
  /^["“„«「『][^"”“»」』]*["”“»」』][.!?]?$/u.test(sentence);

/** Whether two messages by two people would stand together that do not in their chat: the second would seem to answer the first. */
export function seemsToAnswer(chosen: { text: string; place: number }[]): boolean {
  const messages = [...chosen].sort((left, right) => left.place - right.place);
  return messages.some((message, index) => {
    const before = messages[index - 1];
    if (before === undefined || message.place === before.place + 1) return false;
    return speakerOf(message.text) !== speakerOf(before.text);
  });
}
