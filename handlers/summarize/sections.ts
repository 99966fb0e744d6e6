import type { Block } from './plain-text.js';
import { stemsOf } from './standing.js';

/** What a section is for, by its heading: where authors say themselves what their text comes to. */
export type Purpose = 'result' | 'overview' | 'terms' | 'body' | 'back';

const heading = (words: string): RegExp =>
  new RegExp(`^(?:${words.trim().split(/\s+/).join('|').replaceAll('~', '\\s')})(?![\\p{L}\\p{N}])`, 'iu');

const HEADINGS: readonly (readonly [Purpose, RegExp])[] = [
  [
    'result',
    heading(
      'conclusions? concluding~remarks the~conclusion held holding disposition (?:the~)?decisions? (?:the~)?order ruling results? ' +
        'findings outcomes? key~(?:points|findings|takeaways) takeaways recommendations? resolved discussion~and~conclusions? ' +
        'ergebnisse? fazit schluss(?:folgerung(?:en)?|bemerkung)? tenor beschluss entscheidung entscheidungsformel leitsätze? ' +
        'par~ces~motifs dispositif décide décision résultats? bilan ' +
        'fallo conclusión conclusiones resultados? decisión resolución conclusion[ei] p\\.?\\s?q\\.?\\s?m\\.? risultat[io] esito decisione ' +
        'conclus(?:ão|ões) dispositivo decisão acordam заключение выводы? решение результаты? итоги? постановил решил',
    ),
  ],
  ['result', /^(?:结论|总结|结果|判决|裁定|主文|結論|結果|まとめ|決定|สรุป|ผลการ)/u],
  [
    'overview',
    heading(
      'abstract (?:executive~)?summary overview introduction tl;?dr in~brief highlights about what~is purpose zusammenfassung überblick kurzfassung ' +
        'einleitung résumé sommaire aperçu présentation resumen sumario introducción resumo visão~geral introdução sommario riassunto introduzione ' +
        'резюме аннотация введение описание обзор',
    ),
  ],
  ['overview', /^(?:摘要|概要|概述|简介|介绍|要約|はじめに|บทคัดย่อ|บทนำ)/u],
  [
    'terms',
    heading(
      'grants?~of .*licen[cs]e~grants? permissions? .*limitation~of~liability liability termination fees? deadlines? action~items? ' +
        'lizenzgewährung rechteeinräumung haftung kündigung droits~concédés responsabilité concession licencia~otorgada responsabilidad concessão~de ' +
        'concessione responsabilità предоставление ответственность',
    ),
  ],
  [
    'back',
    heading(
      'references bibliography acknowledge?ments? see~also (?:table~of~)?contents further~reading external~links appendix footnotes how~to~apply ' +
        'license licence authors? contact contribut(?:ing|ors) sponsors? installation install support credits changelog citations? ' +
        'literatur(?:verzeichnis)? quellen inhalt(?:sverzeichnis)? danksagung impressum lizenz références bibliographie remerciements licence~mit ' +
        'referencias bibliografía agradecimientos instalación licencia referências agradecimentos instalação licença riferimenti bibliografia ' +
        'ringraziamenti установка лицензия литература ссылки',
    ),
  ],
  ['back', /^(?:参考文献|许可|安装|目录|ライセンス|インストール|参考)/u],
];
/** A line that is a heading by its words alone. */
const LONGEST_LINE = 60;

/** Without its number and its marks; letters that are spaced out ("D E C I D E") stand together. */
function bare(text: string): string {
  const plain = text
    .replace(
      /^[\p{P}\p{S}\s]*(?:(?:article|section|§)?\s?(?:\d{1,3}|[ivx]{1,5}|[a-z])[.):]?(?:\d{1,3}\.?)*\s+)?/iu,
      '',
    )
    .replace(/(?<![\p{P}\s])[\p{P}\s]+$/u, '');
  return /^(?:\p{L} ){2,30}\p{L}$/u.test(plain) ? plain.replaceAll(' ', '') : plain;
}

/** The purpose of a sentence that names it itself: "Results: …", "Par ces motifs, la cour …"; undefined if none. */
export function labelOf(sentence: string): Purpose | undefined {
  const label = /^[^,:：，.!?]{2,40}(?=[,:：，])/u.exec(sentence)?.[0];
  const purpose = label === undefined ? 'body' : purposeOf(label);
  return purpose === 'result' || purpose === 'overview' ? purpose : undefined;
}

export const purposeOf = (text: string): Purpose =>
  HEADINGS.find(([, pattern]) => pattern.test(bare(text)))?.[0] ?? 'body';

/** Where a block is. `heading`: it names its section. `under`: the heading that may limit what the block says; empty if none does. */
export type Section = { purpose: Purpose; section: number; heading: boolean; under: string };

const HEADLINE_WORDS = 5;
/** Whether a heading is the title once more, as a page has it in its head and above its text. */
const repeats = (heading: string, title: string): boolean => {
  const said = stemsOf(heading);
  return said.length >= HEADLINE_WORDS && stemsOf(title).some(word => said.includes(word));
};

/** Headings of these purposes, and the title that opens the text, limit nothing. */
const limits = (purpose: Purpose): boolean => purpose === 'body' || purpose === 'back';

/** The purpose of a block that heads a section; undefined of any other. */
function headed({ kind, text }: Block): Purpose | undefined {
  const line = text.length <= LONGEST_LINE && kind !== 'item' && !/[.!?。]$/u.test(text);
  const named = line ? purposeOf(text) : 'body';
  return kind === 'heading' || (kind === 'prose' && (named === 'result' || named === 'overview'))
    ? named
    : undefined;
}
const isSentence = ({ kind, text }: Block): boolean => kind === 'prose' && /[.!?。！？]$/u.test(text);

/** For each block the section that it is in. */
export function sectionsOf(blocks: Block[]): Section[] {
  let purpose: Purpose = 'body';
  let section = 0;
  let under = '';
  // The first heading above all sentences is the title.
  let title = '';
  let begun = false;
  return blocks.map(block => {
    const named = headed(block);
    if (named !== undefined) {
      purpose = named;
      section += 1;
      const again = title === '' || (!begun && repeats(block.text, title));
      under = again || !limits(named) ? '' : block.text;
      title ||= block.text;
    } else if (isSentence(block)) {
      begun = true;
      title ||= block.text;
    }
    return { purpose, section, heading: named !== undefined, under };
  });
}
