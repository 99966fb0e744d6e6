/** Words that tell what kind of text this is, and which of its sentences carry what a reader of that kind looks for. */

/** Stems, matched at the beginning of a word; in scripts without spaces anywhere. `~` stands for a space or none. */
function stems(spaced: string, unspaced: string): RegExp {
  const list = spaced.trim().split(/\s+/).join('|').replaceAll('~', '\\s?');
  const free = unspaced.trim().split(/\s+/).join('|');
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${list})|${free}`, 'giu');
}

export type Genre = 'ruling' | 'study' | 'terms' | 'minutes' | 'log' | 'story' | 'message' | 'plain';

/** Words of a genre, by which it is recognised. */
const MARKS: Record<Exclude<Genre, 'plain' | 'story' | 'message'>, RegExp> = {
  ruling: stems(
    'court appeal claimant plaintiff defendant respondent judgment tribunal kläger beklagte urteil revision gericht berufung ' +
      'cour(?!s) jugement arrêt appel demandeur défendeur appelant prud par~ces~motifs licenci juzgado demandante demandado sentencia recurso ' +
      'recurrente ricorr giudice sentenza convenut p\\.q\\.m autor réu acórdão recorrente истец истц ответчик суд иск',
    '原告 被告 本院 判决 裁定 判決 原審 控訴 上告 โจทก์ จำเลย ศาล พิพากษา',
  ),
  study: stems(
    'methods? participants? randomi[sz] trial cohort significan enrolled patients hypothes p\\s?[<=]\\s?0 95\\s?% confidence~interval ' +
      'probanden stichprobe signifikant untersucht methode studie teilnehmer forschung messbar étude essai patients témoin échantillon ' +
      'estudio ensayo métodos? muestra participantes significativ studio campione pazienti amostra estudo questionários ' +
      '(?:background|objectives?|results|conclusions?|ziele?|ergebnisse|objectif|résultats|objetivos?|resultados|conclusión|conclusiones|conclusões|' +
      'obiettivo|risultati|conclusioni|цель|результаты|выводы)[.:] ' +
      'исследован выборк участник пациент достоверн',
    '目的[:：] 方法[:：] 结果[:：] 随机 对照组 統計 対照群 被験者 งานวิจัย กลุ่มตัวอย่าง กลุ่มควบคุม',
  ),
  terms: stems(
    'licen[cs]e agreement shall liab warrant herein party parties clause copyright redistribut vertrag kündig haftung lizenz ' +
      'frist licence contrat parties garantie titulaire réutilis contrato cláusula arrendat licencia garantía contratto licenza ' +
      'clausol licenziat trabalhador licença lei договор лицензи сторон обязан',
    '合同 甲方 乙方 条款 許諾 契約 受領者 第\\d+条 สัญญา คู่สัญญา อนุญาต',
  ),
  minutes: stems(
    'minutes apologies~ chair committee motion agenda any~other~business unanimous protokoll anwesend top~\\d tagesordnung versammlung ' +
      'procès-verbal ordre~du~jour séance acta junta asistencia ruegos verbale presenti punto seduta ata reunião presentes ' +
      'ordem~do~dia протокол присутств повестк заседани',
    '会议 出席 议程 議事録 会議 議題 รายงานการประชุม ผู้เข้าประชุม วาระ',
  ),
  log: stems('error warn(?:ing)? info debug fatal trace critical notice', 'エラー 错误'),
};

/** What a reader of any text looks for. */
export type Cue = 'conclusion' | 'outcome' | 'sample' | 'grant' | 'limit' | 'action' | 'alert';

const CUES: Record<Cue, RegExp> = {
  conclusion: stems(
    'we~conclude conclusions? in~summary overall, taken~together we~suggest suggests?~that is~dismissed is~allowed must~pay the~court~orders ' +
      'folger(?:n|ung) schlussfolger zusammenfassend wird~(?:daher~)?(?:zurückgewiesen|abgewiesen) verurteilt ' +
      'zurückgewiesen ' +
      'conclu en~somme par~ces~motifs condamne déboute se~conclu fallo fallamos condena desestima p\\.q\\.m in~sintesi condanna ' +
      'sugerem em~síntese julga condena таким~образом вывод суд~решил решил: постановил',
    '结论 判决如下 综上 結論 主文 สรุป พิพากษา',
  ),
  outcome: stems(
    'conclu in~summary overall, results?~show results: we~found we~find found~that suggest dismiss allowed~the holds~that held~that ' +
      'the~court~holds must~pay awarded (?:un)?lawful void claim~(?:for~\\w+~)?(?:fails|succeeds) no~duty order(?:s|ed)~that decided approved reject resolved agreed voted postpone adopted ' +
      'unanimous takes~over ' +
      'ergebnis folger schluss(?:folger) signifikant zurückgewiesen abgewiesen verurteilt unwirksam stattgegeben aufgehoben beschlossen ' +
      'beschließt abgelehnt angenommen genehmigt vertagt einstimmig stieg sank ' +
      'résultats concluons conclusion infirme confirme~le condamne casse~et rejet débout décid adopté approuv reporté unanimité ' +
      'a~baissé a~augmenté ' +
      'resultados se~conclu conclus desestim estima~ condena absuelv fallo aprob aprueb rechaz acuerd acordó aplaz redujo aument ' +
      'risultat conclu rigett accogli annull condann respin approv rinvi deliber decis unanimità ' +
      'sugerem julg improcedente procedente nega~prov absolv aprov rejeit adiou adiad decid deliber ' +
      'результат вывод показал(?:и|о)? таким~образом решил взыскать удовлетворить отказать отменить постановил утвер отклон перенес установил',
    '结果 结论 表明 判决如下 驳回 本院认为 支付 决定 通过 批准 否决 推迟 宣布 結果 結論 示した 明らかに 棄却 却下 命じ 決定 決ま 承認 否決 延期 発表 ' +
      'ผลการวิจัย พบว่า สรุป พิพากษา ยกฟ้อง มีมติ อนุมัติ ตกลง เลื่อน ประกาศ',
  ),
  sample: stems(
    'enrolled recruited randomi[sz]ed we~(?:studied|examined|followed|compared|analy[sz]ed|surveyed) untersucht teilnehmer probanden ' +
      'nous~avons ont~été~suiv hemos se~(?:cultiv|estudi|incluy|analiz|realiz) abbiamo sono~stati acompanh[aá]mos foram~(?:inclu|estud) ' +
      'мы~(?:исследов|изуч|обслед) обследован',
    '招募 纳入 名， 対象 กลุ่มตัวอย่าง',
  ),
  grant: stems(
    'permission grant free~of~charge entitled royalty-free may~be(?!~liable) can~be~terminated has~the~right erlaubt berechtigt ' +
      'kostenlos gewährt kann~von recht~zur accorde autoris gratuit peut~ droit~de podrá derecho~a concede gratuit autoriza concede ' +
      'diritto~di può~ gratuit pode~ direito~a вправе предоставля разреша бесплатно имеет~право',
    '有权 授权 许可 免费 可以 できる 許諾 無償 อนุญาต มีสิทธิ ฟรี',
  ),
  limit: stems(
    'shall~not must~not may~not not~be~liable in~no~event without~warranty no~warranty as~is exceed prohibit except exclu nothing~in~this ' +
      'neither only~if void becomes~void must~contain must~be ' +
      'darf~nicht dürfen~nicht haftet~nicht haftung ausgeschlossen unzulässig bedarf muss frist mindest ' +
      "ne~doit ne~peut interdit sans~garantie n'est~pas~respons doit~ prend~fin " +
      'no~podrá no~podrán sin~garantía prohibid deberá fianza preaviso incumpl non~può vietat senza~garanz divieto deve~ ' +
      'não~pode proibid sem~garantia obriga-se deve~ aviso~prévio indemniz не~вправе запрещ не~несёт без~гарант обязан не~может',
    '不得 禁止 不承担 应当 违反 はならない 禁止 保証 賠償 上限 返還 義務 ห้าม ต้อง ไม่รับผิดชอบ',
  ),
  action: stems(
    "please deadline need~from need~you must have~to do~not don'?t no~later by~(?:mon|tues|wednes|thurs|fri|satur|sun)day by~\\d moved~to " +
      'has~to let~him bring not~suitable not~included guarantee warranty ' +
      'bitte bis~(?:zum|spätestens|montag|dienstag|mittwoch|donnerstag|freitag) muss müssen spätestens dringend nicht~für garantie dürfen ' +
      'merci~de veuillez avant~le doit~ doivent garantie limite ' +
      'por~favor antes~del? hay~que plazo debe máximo garantía per~favore entro~ deve~ devono garanzia non~è~adatt non~è~inclus ' +
      'por~favor até~ deve~ prazo têm~de garantia пожалуйста прошу нужен нужна нужно до~\\d срок гарантия не~предназнач только проверь',
    '请 务必 之前 截止 不得 必须 保修 请勿 ください までに 必ず 禁止 保証 กรุณา ภายใน ก่อนวันที่ ห้าม ไม่ควร รับประกัน ต้อง',
  ),
  alert: stems(
    'error fatal critical fail exception abort timeout timed~out denied refused lost down restored recovered warn corrupt crash ' +
      'cve security breaking removed vulnerab leak fix',
    '故障 错误 障害 エラー ขัดข้อง',
  ),
};

/** Which cues count in which genre, and by how much they raise a sentence. */
const VALUE: Record<Genre, Record<Cue, number>> = {
  ruling: { conclusion: 2.6, outcome: 1.8, sample: 1, grant: 1, limit: 1.1, action: 1.1, alert: 1 },
  study: { conclusion: 2.8, outcome: 2.4, sample: 1.2, grant: 1, limit: 1, action: 1, alert: 1 },
  terms: { conclusion: 1, outcome: 1, sample: 1, grant: 2, limit: 1.6, action: 1.1, alert: 1 },
  minutes: { conclusion: 1.2, outcome: 1.9, sample: 1, grant: 1, limit: 1, action: 1.2, alert: 1 },
  log: { conclusion: 1, outcome: 1, sample: 1, grant: 1, limit: 1, action: 1, alert: 2.5 },
  story: { conclusion: 1, outcome: 1, sample: 1, grant: 1, limit: 1, action: 1, alert: 1 },
  message: { conclusion: 1, outcome: 1.1, sample: 1, grant: 1, limit: 1.1, action: 1.5, alert: 1.2 },
  plain: { conclusion: 1.2, outcome: 1.2, sample: 1, grant: 1.05, limit: 1.05, action: 1.3, alert: 1.15 },
};

/** What stands around a text on its page. */
const BOILERPLATE = stems(
  'subscribe newsletter photo: advert sponsored cookies all~rights~reserved read~(?:more|also) click~here follow~us share~this sign~up ' +
    'abonnieren werbung anzeige lesen~sie~auch foto: alle~rechte folgen~sie ' +
    'abonnez lire~aussi publicité photo~: suivez tous~droits suscríb síguenos publicidad lea~también todos~los~derechos ' +
    'iscriviti pubblicità leggi~anche riproduzione~riservata seguici assine leia~também publicidade siga- ' +
    'подписывайтесь подпишитесь реклама читайте~также фото:',
  '扫码 责任编辑 编辑： 关注本 広告 関連記事 こちらから登録 ติดตามข่าว โฆษณา อ่านเพิ่มเติม โปรโมชั่น',
);
/** The frame of a record: who was present, when it began, who somebody is and where they live. */
const FORMALITY = stems(
  'background: hintergrund: contexte~?: antecedentes[.:] introduzione[.:] introdução[.:] little~is~known present: apologies: attendance born~(?:on|in) resident~at anwesend geboren~am wohnhaft présents étaient~présents née?~(?:le|à)~\\d ' +
    'asistencia asistentes nacid[oa]~ domiciliad presenti~ presiede nat[oa]~ residente~ presentes~ nascid residente присутств проживающ ' +
    'родивш se~levanta chiude~la~seduta minutes~of (?:last|previous)~minutes verbale~precedente acta~anterior protokoll~der acta~de verbale~della ata~da gerichtsstand headings~are foro~ ejemplares',
  '背景[:：] 出生 汉族 出席 記名押印 各1通 ผู้เข้าประชุม',
);
/** Wishes, thanks and apologies. */
const COURTESY = stems(
  "i~hope~you thank~you~for we~apologi[sz]e best~wishes ich~hoffe vielen~dank wir~bitten~um~verständnis j'espère merci~pour " +
    'espero~que gracias~por spero~che grazie~per~ obrigad надеюсь спасибо',
  '敬请谅解 谢谢 大家好 お世話に よろしく ありがとう ขอขอบคุณ ขอให้ทุกท่าน',
);

/** Enough of a text to recognise its genre. */
const READ_FOR_GENRE = 20_000;
/** Marks of a genre per 1 000 characters, at least; for scripts with dense writing the text counts as longer. */
const MARKS_PER_THOUSAND = 2.5;
const FEWEST_MARKS = 3;

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

export function genreOf(text: string): Genre {
  const read = text.slice(0, READ_FOR_GENRE);
  const needed = Math.max(FEWEST_MARKS, (read.length / 1_000) * MARKS_PER_THOUSAND);
  let genre: Genre = 'plain';
  let most = 0;
  for (const [name, marks] of Object.entries(MARKS) as [keyof typeof MARKS, RegExp][]) {
    const found = count(read, marks);
    if (found >= needed && found > most) [genre, most] = [name, found];
  }
  return genre === 'plain' && isStory(read) ? 'story' : genre;
}

const LONG_ENOUGH_FOR_A_STORY = 300;
/** Stories are about people, and have few figures. */
const PERSONS = stems(
  "he she him his her i my me they er sie ihn ihm ihr ich mein il elle lui son sa je j' él ella le su yo me lui lei suo sua io ele ela seu eu " +
    'он она его её ему ей они я мой',
  '他 她 我 彼 彼女 私 เขา เธอ ฉัน ผม',
);

/** Lines that begin with the name of who speaks, or that nobody gave a capital letter. */
export function isChat(text: string): boolean {
  const lines = text
    .slice(0, READ_FOR_GENRE)
    .split('\n')
    .filter(line => line.trim() !== '');
  const spoken = lines.filter(line => /^(?:\[?\d\d:\d\d\]?\s)?\p{Lu}[\p{L}.]{1,20}:\s\S/u.test(line)).length;
  const hasty = lines.filter(line => /^\p{Ll}/u.test(line)).length;
  return lines.length >= 3 && Math.max(spoken, hasty) > lines.length * 0.6;
}

/** Narrative prose: few figures, many pronouns, and paragraphs without a heading between them. */
function isStory(text: string): boolean {
  const dense = /[\p{scx=Han}\p{scx=Kana}\p{scx=Thai}]/u.test(text);
  if (text.length < LONG_ENOUGH_FOR_A_STORY || /^(?:[-*•#|>]|\d+[.)])\s/m.test(text)) return false;
  const words = dense ? text.length / 2 : count(text, /\p{L}+/gu);
  return count(text, /\p{Nd}+/gu) < words / 100 && count(text, PERSONS) > words / (dense ? 60 : 30);
}

export function cuesOf(text: string): Cue[] {
  return (Object.keys(CUES) as Cue[]).filter(cue => text.search(CUES[cue]) >= 0);
}

/** By how much the cues of a sentence raise it in a text of this genre. */
export function cueFactor(cues: Cue[], genre: Genre): number {
  return Math.max(1, ...cues.map(cue => VALUE[genre][cue]));
}

/** Whether a reader of a text of this genre would miss a sentence with such a cue. */
export const isWanted = (cue: Cue, genre: Genre): boolean => VALUE[genre][cue] >= 1.3;

/** Opinions matter less than events. */
const OPINION = stems(
  'said says saying replied told sagte sagten a~déclaré a~dit parle~d dijo dice ha~detto disse afirmou сказал заявил',
  '说：“ 話す 話した กล่าวว่า',
);
/** Lines of a log that report that all is well. */
const ROUTINE = /(?<!\p{L})(?:INFO|DEBUG|TRACE|NOTICE)(?!\p{L})/u;

/** 1 for what the text says, less for what surrounds it. */
export function substance(text: string): number {
  if (text.search(BOILERPLATE) >= 0) return 0.1;
  if (text.search(COURTESY) >= 0) return 0.3;
  if (text.search(FORMALITY) >= 0 || ROUTINE.test(text)) return 0.5;
  return text.search(OPINION) >= 0 ? 0.8 : 1;
}
