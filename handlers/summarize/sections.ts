import type { Block } from './plain-text.js';

/** The purpose of a section, by its heading. It shows where authors state their results or conclusions. */
type Purpose = 'result' | 'overview' | 'terms' | 'body' | 'back';

const heading = (words: string): RegExp =>
  new RegExp(`^(?:${words.trim().split(/\s+/).join('|').replaceAll('~', '\\s')})(?!-?[\\p{L}\\p{N}])`, 'iu');

const HEADINGS: readonly (readonly [Purpose, RegExp])[] = [
  [
    'result',
    heading(
      'conclusions? concluding~remarks the~conclusion held holding disposition (?:the~)?decisions? ruling results? ' +
        'findings for~(?:these|the~foregoing)~reasons aus~diesen~gründen per~questi~motivi por~est[aoe]s~(?:razones|motivos) key~(?:points|findings|takeaways) takeaways discussion~and~conclusions? ' +
        'ergebnisse? fazit schluss(?:folgerung(?:en)?|bemerkung)? tenor entscheidungsformel leitsätze? ' +
        'par~ces~motifs dispositif d[eé]cide d[eé]cision résultats? bilan ' +
        'fallo conclusión conclusiones resultados? decisión resolución conclusion[ei] p\\.?\\s?q\\.?\\s?m\\.? risultat[io] esito decisione ' +
        'conclus(?:ão|ões) dispositivo decisão acordam заключение выводы? решение результаты? итоги? постановил решил',
    ),
  ],
  ['result', /^(?:结论|总结|结果|判决|裁定|主文|結論|結果|まとめ|決定|สรุป|ผลการ)/u],
  [
    'overview',
    heading(
      'abstract (?:executive~)?summary overview introduction tl;?dr in~brief about what~is zusammenfassung überblick kurzfassung ' +
        'einleitung résumé sommaire aperçu présentation resumen sumario introducción resumo visão~geral introdução sommario riassunto introduzione ' +
        'резюме аннотация введение описание обзор',
    ),
  ],
  ['overview', /^(?:摘要|概要|概述|简介|介绍|要約|はじめに|บทคัดย่อ|บทนำ)/u],
  [
    'terms',
    heading(
      'grants?~of .*licen[cs]e~grants? .*limitation~of~liability rechteeinräumung lizenzgewährung haftung(?:sbeschränkung)? ' +
        'droits~concédés responsabilité concession~de licencia~otorgada responsabilidad concessão~de responsabilità',
    ),
  ],
  [
    'back',
    heading(
      'references bibliography acknowledge?ments? see~also (?:table~of~)?contents further~reading external~links appendix footnotes ' +
        'license licence contact contribut(?:ing|ors) sponsors? install(?:ation|ing)? support credits citations? ' +
        'literatur(?:verzeichnis)? quellen inhalt(?:sverzeichnis)? danksagung impressum lizenz références bibliographie remerciements ' +
        'referencias bibliografía agradecimientos instalación licencia referências agradecimentos instalação licença riferimenti bibliografia ' +
        'ringraziamenti installazione licenza установка лицензия литература ссылки содержание',
    ),
  ],
  ['back', /^(?:参考文献|许可|安装|目录|目次|ライセンス|インストール|参考)/u],
];

/** A heading without its number and marks; spaced-out letters ("D E C I D E") are joined. */
function bare(text: string): string {
  const spaced = /^(?:\p{L} ){2,30}\p{L}(?!\p{L})/u.exec(text)?.[0];
  if (spaced !== undefined) return spaced.replaceAll(' ', '');
  return text
    .replace(
      /^[\p{P}\p{S}\s]*(?:(?:article|section|§)?\s?(?:\d{1,3}|[ivx]{1,5}|[a-z])[.):]?(?:\d{1,3}\.)*\d{0,3}\s+)?/iu,
      '',
    )
    .replace(/(?<![\p{P}\s])[\p{P}\s]+$/u, '');
}

/** The maximum length, in characters, of a line that is taken for a heading because of its words alone. */
export const LONGEST_LINE = 60;
/** "The court decides:" */
const DECIDES =
  /(?:d[eé]cide|orders?|decides|beschließt|entschieden|resuelve|falla|dispone|delibera|orzeka|besluit|beslist|постановил|решил)[ ]?[:：]$/iu;

export const purposeOf = (text: string): Purpose =>
  text.length <= LONGEST_LINE && DECIDES.test(text)
    ? 'result'
    : (HEADINGS.find(([, pattern]) => pattern.test(bare(text)))?.[0] ?? 'body');

/** Consecutive blocks below one heading. `heading`: undefined for the blocks above the first heading. */
export type Section = { heading: Block | undefined; purpose: Purpose; blocks: Block[] };

function isHeading({ kind, text }: Block): boolean {
  if (kind === 'heading') return true;
  if (kind !== 'prose' || text.length > LONGEST_LINE || /[.!?。！？]$/u.test(text)) return false;
  const purpose = purposeOf(text);
  return purpose === 'result' || purpose === 'overview';
}

export function sectionsOf(blocks: Block[]): Section[] {
  const sections: Section[] = [{ heading: undefined, purpose: 'body', blocks: [] }];
  for (const block of blocks)
    if (isHeading(block)) {
      const purpose = purposeOf(block.text);
      // The title of the whole text: "Contributing to …".
      const isTitle = block === blocks[0] && purpose === 'back';
      sections.push({ heading: block, purpose: isTitle ? 'body' : purpose, blocks: [] });
    } else sections.at(-1)?.blocks.push(block);
  return sections;
}
