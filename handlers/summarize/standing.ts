import { leansBack, leansOn } from './leaning.js';

/** Whether a sentence says outside its text what it says in it: with its heading, its paragraph and its neighbours gone. */

const list = (words: string): string => words.trim().split(/\s+/).join('|').replaceAll('~', '\\s');
const anywhere = (words: string): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{N}])(?:${list(words)})(?![\\p{L}\\p{N}])`, 'iu');

/** What turns the sentence before it. It stands near the beginning of its own. */
const TURNS = anywhere(
  'but however nevertheless nonetheless notwithstanding yet although unless except instead actually unfortunately not~so ' +
    'aber jedoch allerdings dennoch trotzdem doch hingegen vielmehr dies~gilt~nicht ausnahmsweise ' +
    'mais cependant toutefois néanmoins pourtant sauf pero sin~embargo no~obstante aunque nonostante salvo ma tuttavia però ' +
    'mas porém contudo no~entanto entretanto todavia maar echter toch tenzij но однако впрочем исключение',
);
const TURNS_SPACELESS = /^.{0,3}(?:但|然而|不过|可是|只是|しかし|ただし|だが|けれど)/u;
const NEAR = 50;
export const turnsBack = (sentence: string): boolean =>
  TURNS.test(sentence.slice(0, NEAR)) || TURNS_SPACELESS.test(sentence);

/** What points to another place of the text. */
const ELSEWHERE = anywhere(
  'below above following aforementioned hereinafter as~follows previous here voici vorherig\\p{L}{1,2} précédente?s? precedent[ei]s? hier ici aquí aqui здесь тут ' +
    'folgende folgenden folgender folgendes unten oben nachstehend(?:e|en|er)? vorstehend(?:e|en|er)? genannten ' +
    'ci-dessous ci-dessus ci-après suivante?s? siguientes? anterior(?:es)? abajo seguent[ei] sottostant[ei] seguintes? abaixo acima ' +
    'volgende hieronder hierboven ниже выше следующ\\p{L}{2,3} вышеуказанн\\p{L}{2,3}',
);
const ELSEWHERE_SPACELESS = /以下|下記|上記|如下|下列|上述|前項|次の/u;
/** A place that is to be filled in: of a template, not of a statement. */
const BLANK =
  /<[\p{L} _-]{2,40}>|\[(?=[^\]]{0,40}(?:name|year|yyyy|insert|date))[\p{L} _-]{2,40}\]|\{\{|_{3,}|\$\{/iu;
/** A name before a colon: "Consequence: …" */
const LABELLED = /^[^\s:：.,;!?]{1,24}(?:\s[^\s:：.,;!?]{1,24}){0,3}[:：](?!\/\/)/u;
const LISTED = /^(?:\p{Lu}|\d{1,3})[.)]\s/u;

export const pointsElsewhere = (sentence: string): boolean =>
  !/^[\p{L}\p{N}§"'“‘«„(¿¡「『（]/u.test(sentence) ||
  ELSEWHERE.test(sentence) ||
  ELSEWHERE_SPACELESS.test(sentence) ||
  BLANK.test(sentence);
export const isLabelled = (sentence: string): boolean => LABELLED.test(sentence) || LISTED.test(sentence);

const SUPPOSES = new RegExp(
  `^["'“„«(]{0,2}(?:${list(
    'suppose supposing imagine assume assuming say,? example for~example for~instance e\\.g\\. let~us consider what~if ' +
      'angenommen nehmen~wir stell(?:en~sie|~dir|t~euch) beispiel zum~beispiel z\\.\\s?b\\. supposons imaginons imaginez exemple par~exemple ' +
      'supongamos imagine[nm]?os imagina ejemplo por~ejemplo supponiamo immagin[ai] esempio (?:ad|per)~esempio suponha(?:mos)? exemplo por~exemplo ' +
      'stel bijvoorbeeld voorbeeld предположим допустим представьте пример например',
  )})(?!\\p{L})|^(?:假设|假如|例如|比如|たとえば|例えば|仮に|例[:：])`,
  'iu',
);
/** A supposition or an example: what follows it in its paragraph is part of it. */
export const supposes = (sentence: string): boolean => SUPPOSES.test(sentence);

const POINTS = anywhere(
  'it its they them their theirs he him his she her hers this these those such both former latter same respectively then thus there here ' +
    'er sie es ihn ihm ihnen ihre?[mnrs]? seine?[mnrs]? dies(?:e[mnrs]?)? jene[mnrs]? solche[mnrs]? derselbe beide[nr]? auch dort hier ' +
    'il elle ils elles leurs? son sa ses ce cet cette ces cela ceci celui-ci celle-ci y en aussi même ' +
    'él ella ellos ellas sus? ést[eao]s? est[eao]s? es[eao]s? ello también mismo allí ' +
    'egli ess[oaie] loro suo sua suoi sue quest[oaie] quell[oaie] ciò anche stess[oaie] ' +
    'el[ea]s? seus? suas? est[ea]s? ess[ea]s? isso isto aquel[ea]s? também mesm[oa]s? ' +
    'hij zij ze hem haar hun zijn deze dit die dat ook dezelfde daar',
);
/** A demonstrative and what it says that it means. */
const DEMONSTRATIVE = new RegExp(
  `(?<![\\p{L}\\p{N}])(?:${list(
    'this these such said dies(?:e[mnrs]?)? jene[mnrs]? solche[mnrs]? cet cette ces ce este estos esta estas es[eao]s? est[ea]s? ess[ea]s? quest[oaie] ' +
      'deze dit эт(?:от|а|о|и|ой|им|их|ого|ому|у) данн\\p{L}{2,3} указанн\\p{L}{2,3}',
  )})\\s+(\\p{L}+)|この|その|これ|それ|该|此[^外]|这|那`,
  'giu',
);
/** Whether a sentence names something as named before that neither it nor the title names. */
export function demonstrates(sentence: string, about: Set<string>): boolean {
  return [...sentence.matchAll(DEMONSTRATIVE)].some(({ 1: noun, index }) => {
    if (noun === undefined) return true;
    const before = new Set([...about, ...stemsOf(sentence.slice(0, index))]);
    return !stemsOf(noun).some(word => before.has(word));
  });
}
/** The definite articles, and words for all of a kind, of the languages of which the lists above have the words. */
const DEFINITE: Record<string, string> = {
  en: 'the all each every',
  de: 'der die das den dem des alle jede[rsmn]?',
  fr: 'les? la l tous chaque',
  es: 'el los? las? todos cada',
  it: 'il lo la l i gli le tutti ogni',
  pt: 'o a os as todos cada',
  nl: 'de het alle elke',
};

const STEM = 5;
const FUNCTION = anywhere(
  'the a an and or of for to in on with by at from as is are der die das den dem des und oder von für zu zur zum im in mit bei auf ein eine ' +
    'le la les l d du de des et ou pour à au aux en un une el los las y o para por con del al un una il lo gli e di da per con del della dei i ' +
    'o os as do da dos das em no na um uma com het een en van voor op te met и или в на для по с о',
);
const stem = (word: string): string => word.slice(0, STEM);
/** What a heading or a title is about. */
export function stemsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{M}]+/gu) ?? [];
  return [...new Set(words.filter(word => !FUNCTION.test(word)).map(stem))];
}

/** Whether a sentence in the middle of a paragraph is understood without those before it. `about`: what the text is known to be about. */
export function isIndependent(sentence: string, language: string, about: Set<string>): boolean {
  const articles = DEFINITE[language];
  if (articles === undefined || POINTS.test(sentence) || leansBack(sentence)) return false;
  const opening = new RegExp(`^["'“„«(]{0,2}(?:${list(articles)})(?!\\p{L})['’\\s]{0,2}`, 'iu').exec(
    sentence,
  )?.[0];
  if (opening === undefined) return true;
  const subject = sentence.slice(opening.length).split(/\s/, 2).flatMap(stemsOf);
  return subject.some(word => about.has(word));
}

/** What names a place of a text and nothing else: "Article 12", "§ 3", "IV." */
const PLACE =
  /^(?:art(?:icle|ikel|ículo|icolo|igo)?|§+|sections?|abschnitt|chapter|chapitre|kapitel|cap[ií]t[ou]lo|capitolo|hoofdstuk|part|teil|partie|title|titel|статья|глава|раздел|第)?[\s.]{0,3}(?:\d{1,4}[a-z]?|[ivxlc]{1,6}|[一二三四五六七八九十百]{1,5})?[\s.]?[条條章节節款项]?[.):]?$/iu;
/** Whether a sentence says itself what its heading says, which may limit it: "Exceptions", "Old versions", "You must not". */
export function carries(sentence: string, heading: string): boolean {
  if (PLACE.test(heading.trim())) return true;
  const wanted = stemsOf(heading);
  if (wanted.length === 0) return false;
  if (/[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}]/u.test(heading))
    return (heading.match(/[\p{L}]+/gu) ?? []).every(word => sentence.includes(word));
  const said = new Set(stemsOf(sentence));
  return wanted.every(word => said.has(word));
}

/** Whether the sentence after a line that leads to it can be quoted: never, since the line may turn its meaning. */
export const isLed = (before: string | undefined): boolean => before !== undefined && leansOn(before);
