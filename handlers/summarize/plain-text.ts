import { stripHtml } from './html.js';

/** One paragraph, heading, list item or table row, as a single line of plain text. */
export type Block = {
  text: string;
  kind: 'prose' | 'heading' | 'item' | 'message' | 'quote' | 'row' | 'code' | 'frame';
  /** The level of a marked heading; 1 is the highest. */
  level?: number;
  /** The number of a numbered item. */
  number?: number;
  /** True if the next line follows without a blank line. */
  joined?: true;
};

type Line = Block & { starts: boolean; ends: boolean };

/** Soft hyphens, zero-width marks (except the joiners that emoji and Persian need), and control characters other than white space. */
// Lists the characters, because \p{Cc} without white space takes five times as long.
// eslint-disable-next-line no-control-regex
const INVISIBLE = /[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ufff9-\ufffb]/g;
const NEWLINE = /\r\n?|[\n\v\f\u0085\u2028\u2029]/;
/** Scripts without spaces between words, where a line break inside a sentence has no meaning. */
const SPACELESS = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\u3000-\u303f\uff01-\uff60]/u;
const MAIL_HEADER =
  /^(?:from|to|cc|bcc|date|sent|reply-to|message-id|in-reply-to|references|mime-version|content-[a-z-]+|x-[a-z-]+|received|return-path|subject|re)\s?:\s/i;
const SUBJECT = /^(?:betreff|objet|asunto|oggetto|assunto|тема|主题|件名|เรื่อง)\s?[:：]\s*(?=\S)/iu;
const ATTRIBUTION = /^(?:on|am|le|el|em)\s.{5,200}\b(?:wrote|writes|schrieb|a écrit|escribió|escreveu)\s?:$/i;
const LINK_TARGET = /^\[[^[\]]{1,100}\]:\s\S+$/;
const TIMESTAMP = /^\[?\d{4}-\d\d-\d\d[T ]\d\d:/;
const SIGN_OFF =
  /^(?:hi|hello|hey|dear|hallo|liebe|lieber|sehr geehrte|guten tag|bonjour|chère?s?|madame|monsieur|best|best regards|kind regards|regards|thanks|thank you|cheers|sincerely|mit freundlichen|viele grüße|cordialement|bien à vous|estimad[oa]s?|querid[oa]s?|saludos|atentamente|gentil[ei]|car[oaie]|cordiali saluti|distinti saluti|prezad[oa]s?|atenciosamente|cumprimentos|добрый|здравствуйте|уважаем|с уважением|各位|敬具|拝啓|此致|เรียน|ขอแสดงความนับถือ|sent from my|begin forwarded|-+ ?original message)(?!\p{L})/iu;

/** Prose is not wrapped at fewer columns than this: such short lines are a list. */
const NARROW = 40;
/** Prose is not wrapped at more columns than this: longer lines are messages, whose line breaks are intentional. */
const WIDEST = 120;
const RAGGED = 0.5;
/** The maximum number of lines in a mail signature. */
const SIGNATURE_LINES = 8;

/** A line of nothing but marks, as below titles and between parts. */
const RULE = /^(?:[-=_*~#+\s]{3,}|##?)$/;

function readHeading(raw: string, text: string): Line | undefined {
  // Headings are not indented. On an indented line of an example, the mark begins a comment.
  const mark = /^\s/.test(raw) ? undefined : /^#{1,6}\s+(?=\S)/.exec(text)?.[0];
  if (mark !== undefined) {
    const name = text.slice(mark.length).replace(/\s(?:#+|¶)$/u, '');
    // If a logo replaces the title, its alternative text is the title.
    const logo = /^!\[([^[\]]{1,100})\]\([^()\s]{1,500}\)$/.exec(name)?.[1];
    return { ...alone(logo ?? name, 'heading'), level: mark.trim().length };
  }
  const subject = SUBJECT.exec(text)?.[0];
  return subject === undefined ? undefined : alone(text.slice(subject.length), 'heading');
}

/** Removes quote marks, bullets, heading marks and the like from the start of a line, and returns what kind of line it is. */
function readLine(raw: string): Line {
  const trimmed = raw.trim();
  const quote = /^(?:>\s?){1,40}(?!=)/.exec(trimmed);
  const text = quote ? trimmed.slice(quote[0].length).trim() : trimmed;
  const kind = quote ? 'quote' : 'prose';
  if (RULE.test(text) || /^\|?[\s:|+-]{3,}\|?$/.test(text)) return blank(kind);
  const heading = readHeading(raw, text);
  if (heading) return heading;
  const bullet = /^(?:[-*+•‣◦▪●○·–—]|\(?(\d{1,3})[.)]|\(?[a-z]\)|\[[ xX]\])\s+(?=\S)/.exec(text);
  if (bullet) {
    const item = text.slice(bullet[0].length).replace(/^\[[ xX]\]\s+/, '');
    const number = bullet[1] === undefined ? {} : { number: Number(bullet[1]) };
    return { text: item, kind: quote ? 'quote' : 'item', starts: true, ends: false, ...number };
  }
  if (/^\|.*\|$/.test(text)) return alone(cells(text), 'row');
  if (/^:[\p{L} -]{2,40}:(?:\s|$)/u.test(text)) return alone(text, 'row');
  if (TIMESTAMP.test(text)) return { text, kind: 'item', starts: true, ends: false };
  if (isFrame(text) || (!quote && isSignOff(text))) return alone(text, 'frame');
  return { text, kind, starts: false, ends: text === '' };
}

/** Attribution lines of quoted mail, link targets, reStructuredText directives. */
const isFrame = (text: string): boolean =>
  ATTRIBUTION.test(text) || LINK_TARGET.test(text) || /^\.\. \S/.test(text);

/** A line that is a separate block. */
const alone = (text: string, kind: Line['kind']): Line => ({ text, kind, starts: true, ends: true });

/** Greetings and closings of letters, on separate lines. */
const isSignOff = (text: string): boolean =>
  text.length < 40 && SIGN_OFF.test(text) && !/[.?。]$/.test(text) && !/[a-z]{2}[.!?]\s/i.test(text);

const blank = (kind: Line['kind']): Line => alone('', kind);

const cells = (row: string): string =>
  row
    .split('|')
    .map(cell => cell.trim())
    .filter(cell => cell !== '')
    .join(', ');

/** Separate expressions: in a single one, all alternatives would be tried at every character. */
const CODE_MARKS = [
  /[{};]$/,
  /^(?:[)}\]]|@\w+[(\s])/,
  /=>|[!=]==/,
  /\w\(\)/,
  /^(?:import|from|def|class|return|const|let|var|function|export|#include)\b.*[;:{('"]/,
  /^import [\w.]+(?: as \w+)?$/,
  /^self\.\w+ = |^\w[\w.]* = [\w.]+\(.*\)$/,
];

/** Symbols that prose rarely uses. */
function looksLikeCode(raw: string): boolean {
  const text = raw.trim();
  if (RULE.test(text) || /^(?:\/\/|\/\*|\*\/|<!--)/.test(text)) return false;
  if (CODE_MARKS.some(mark => mark.test(text)))
    return !/[.!?]\s+[A-Z]/.test(text) && !/^(?:\p{L}+[ ,]+){5}/u.test(text);
  return false;
}

/** Removes markdown's links, emphasis and code marks, but keeps their text. */
function stripInline(text: string): string {
  if (!/[[*_`~]/.test(text)) return text;
  return (
    text
      // The alternative text of a badge or a picture is not part of the text.
      .replace(
        /\[!\[[^[\]]{0,500}\](?:\([^()]{0,2000}\)|\[[^[\]]{0,100}\])\](?:\([^()]{0,2000}\)|\[[^[\]]{0,100}\])/g,
        ' ',
      )
      .replace(
        /!\[[^[\]]{0,500}\](?:\((?:[^()\s]|\([^()\s]{0,200}\)){0,2000}(?:\s"[^"]{0,300}")?\)|\[[^[\]]{0,100}\])/g,
        ' ',
      )
      .replace(/\[([^[\]]{0,500})\]\((?:[^()\s]|\([^()\s]{0,200}\)){0,2000}(?:\s"[^"]{0,300}")?\)/g, '$1')
      .replace(/\[([^[\]]{1,500})\]\[[^[\]]{0,100}\]/g, '$1')
      .replace(/\*\*(?=\S)|(?<=\S)\*\*|~~(?=\S)|(?<=\S)~~|`+/g, '')
      .replace(/(?<![\p{L}\p{N}_])__(?=\S)([^_]{1,300})(?<=\S)__(?![\p{L}\p{N}_])/gu, '$1')
      .replace(/(?<![\p{L}\p{N}*])\*(?=[^\s*])([^*]{1,300})(?<=\S)\*(?![\p{L}\p{N}*])/gu, '$1')
      .replace(/(?<![\p{L}\p{N}_])_(?=[^\s_])([^_]{1,300})(?<=\S)_(?![\p{L}\p{N}_])/gu, '$1')
  );
}

/** Puts `text` on one line: without markdown, control and zero-width characters, and with single spaces. */
const tidy = (text: string): string =>
  stripInline(text)
    // Most white space is a single space already, and is not replaced by itself.
    .replace(/\s{2,}|[^\S ]/g, ' ')
    .trim();

/** Joins the lines of one paragraph, with no space between ideographs. */
function glue(lines: string[]): string {
  return lines
    .map((line, index) => {
      const before = lines[index - 1];
      if (before === undefined) return line;
      return SPACELESS.test(before.slice(-1)) && SPACELESS.test(line.charAt(0)) ? line : ` ${line}`;
    })
    .join('');
}

/**
 * Whether the writer ended the line on purpose: the next word would still have fitted into the paragraph's width. This distinguishes
 * wrapped mail from notes with one item per line.
 */
function endedOnPurpose(line: string, next: string, width: number): boolean {
  if (/^\p{Ll}/u.test(next) || /[,，、;-]$/.test(line)) return false;
  const word = /^\S{1,80}/.exec(next)?.[0].length ?? 0;
  return (width < NARROW || line.length + 1 + word <= width) && !SPACELESS.test(line.slice(-1));
}

/** Lines of one paragraph → blocks. */
function closeParagraph(lines: Line[], blocks: Block[]): void {
  const width = lines.reduce((longest, line) => Math.max(longest, line.text.length), 0);
  const ragged = width > WIDEST && lines.slice(0, -1).some(line => line.text.length < width * RAGGED);
  let parts: string[] = [];
  const flush = (kind: Block['kind'], joined: boolean): void => {
    const text = tidy(glue(parts));
    const { level, number } = lines[0] ?? {};
    const marks = {
      ...(level === undefined ? {} : { level }),
      ...(number === undefined ? {} : { number }),
      ...(joined ? ({ joined: true } as const) : {}),
    };
    if (text !== '') blocks.push({ text, kind, ...marks });
    parts = [];
  };
  for (const [index, line] of lines.entries()) {
    parts.push(line.text);
    const next = lines[index + 1];
    if (
      !next ||
      line.kind === 'code' ||
      next.kind === 'code' ||
      ragged ||
      endedOnPurpose(line.text, next.text, width)
    ) {
      flush(lines[0]?.kind === 'item' && index > 0 ? 'item' : line.kind, next !== undefined);
    }
  }
}

/** Marks the header of a mail (two or more header lines in a row) as frame, and its subject as a heading. */
function markMailHead(lines: string[]): Map<number, Line> {
  const marked = new Map<number, Line>();
  for (let at = 0; at < lines.length; at += 1) {
    let end = at;
    while (end < lines.length && MAIL_HEADER.test(lines[end] ?? '')) end += 1;
    if (end - at >= 2) {
      for (let index = at; index < end; index += 1) {
        const line = lines[index] ?? '';
        const subject = /^subject\s?:\s(?:(?:re|fwd?|aw)\s?:\s)*/i.exec(line);
        const text = subject ? line.slice(subject[0].length).trim() : line.trim();
        marked.set(index, { text, kind: subject ? 'heading' : 'frame', starts: true, ends: true });
      }
    }
    at = Math.max(at, end - 1);
  }
  return marked;
}

/** The number at the start of a line, as in list items (and in dates: "3. Oktober"). */
function numberOf(line: string): number | undefined {
  const number = /^(\d{1,3})\.\s/.exec(line.trimStart())?.[1];
  return number === undefined ? undefined : Number(number);
}

const STAMPED = /^[[(]?\d[\d:./, -]{3,21}(?:[AP]M)?[\])]?(?: [-–])? ?(?=[<\p{Lu}])/u;
const SPOKEN =
  /^<?(\p{Lu}[\p{L}\p{M}\p{N}.'_-]{0,20}(?: \p{Lu}[\p{L}.'-]{0,20})?)>?(?: \([\d: ]{4,8}\))? ?[:：]\s{1,3}\S/u;
/** The speaker of a chat line: the text before its first colon. */
export const speakerOf = (line: string): string | undefined =>
  SPOKEN.exec(line.trim().slice(0, 120).replace(STAMPED, ''))?.[1];
const SPOKEN_SHARE = 0.6;

/** Whether the text is a chat: most lines name a speaker, and at least one speaker occurs twice. */
function isChat(lines: string[]): boolean {
  const filled = lines.filter(line => line.trim() !== '');
  const speakers = filled.flatMap(line => speakerOf(line) ?? []);
  const different = new Set(speakers).size;
  const repeated = speakers.length >= 3 && different >= 2 && different < speakers.length;
  return repeated && speakers.length >= SPOKEN_SHARE * filled.length;
}

/** A heading that is marked by a line of dashes (or similar) below it. */
function readUnderlined(line: string, next = ''): Line | undefined {
  if (!/^(?:={3,}|([-~^"])\1{3,})\s*$/.test(next)) return undefined;
  const text = line.trim();
  const high = next.startsWith('=');
  if (!/^ ?\S.{0,98}$/.test(line) || !/[\p{L}\p{N}]/u.test(text) || /[|:.]$/.test(text)) return undefined;
  if (next.trim().length < (high ? 3 : 0.8 * text.length)) return undefined;
  return { ...alone(text, 'heading'), level: high ? 1 : 2 };
}

/** A line that is neither marked nor code. It counts as a numbered item only if the text also has the previous number. */
function readPlain(line: string, numbers: Set<number | undefined>): Line {
  const number = numberOf(line);
  if (number !== undefined && number > 1 && !numbers.has(number - 1))
    return { text: line.trim(), kind: 'prose', starts: true, ends: false };
  if (/^\s*(?:\/\/+|\/\*+|\*\/)/.test(line))
    return readLine(line.replace(/^\s*[/*]+\s?|(?<!\s)\s*\*\/\s*$/g, ''));
  return readLine(line);
}

/** Consecutive lines with the same mark form one comment. */
function withoutComments(lines: Line[]): Line[] {
  const isCommented = (line: Line, beside: Line | undefined): boolean =>
    line.level !== undefined && beside?.level === line.level;
  return lines.map((line, index) => {
    const follows = isCommented(line, lines[index - 1]);
    if (!follows && !isCommented(line, lines[index + 1])) return line;
    return { text: line.text, kind: 'prose', starts: !follows, ends: false };
  });
}

/**
 * Directly below a line of text or of an example, a line that begins with # may be a comment. It separates blocks, but does not count as a
 * heading.
 */
function ranked(lines: Line[]): Line[] {
  let above: Line | undefined;
  return withoutComments(lines).map(line => {
    const isUnder = above !== undefined && above.text !== '' && above.level === undefined;
    above = isUnder && line.level !== undefined ? { ...line, level: undefined } : line;
    return above;
  });
}

/** How many lines from this one on may be a signature. */
function signatureLines(line: string, left: number, mayBegin: boolean): number {
  if (mayBegin && /^--\s*$/.test(line)) return SIGNATURE_LINES;
  return line.trim() === '' ? 0 : left - 1;
}

/** Reads line by line, and keeps track of code fences and signatures. */
function toLines(text: string): Line[] {
  const raw = text.split(NEWLINE);
  const mail = markMailHead(raw);
  const chat = isChat(raw);
  const numbers = new Set(raw.map(numberOf));
  // In SQL and Lua, two hyphens begin a comment.
  const isCommented = raw.some(line => /^--[ \t]+\S/.test(line));
  let fenced = false;
  let signature = 0;
  return raw.map((line, index) => {
    signature = signatureLines(line, signature, !isCommented);
    if (signature > 0) {
      const text = signature === SIGNATURE_LINES ? '' : line.trim();
      return alone(text, 'frame');
    }
    // In reStructuredText, tildes can underline a title.
    const below = !fenced && readUnderlined(raw[index - 1] ?? '', line) !== undefined;
    if (!below && /^\s*(?:```|~~~)/.test(line)) {
      fenced = !fenced;
      return blank('prose');
    }
    const marked = mail.get(index);
    if (marked) return marked;
    if (fenced || looksLikeCode(line)) {
      const code = line.trim();
      return { text: code, kind: 'code', starts: false, ends: code === '' };
    }
    if (chat && speakerOf(line) !== undefined) return alone(line.trim(), 'message');
    return readUnderlined(line, raw[index + 1]) ?? readPlain(line, numbers);
  });
}

/**
 * Reads any text as a list of blocks of clean plain text, in text order. HTML becomes text, markdown is removed, hard-wrapped lines
 * are joined, and lists and tables become one block per item or row. Linear in the length of the text; never throws.
 */
export function toBlocks(text: string): Block[] {
  const plain = stripHtml(text)
    .replace(/\p{Surrogate}/gu, '\ufffd')
    .replace(INVISIBLE, '');
  const blocks: Block[] = [];
  let paragraph: Line[] = [];
  const close = (): void => {
    if (paragraph.length > 0) closeParagraph(paragraph, blocks);
    paragraph = [];
  };
  for (const line of ranked(toLines(plain))) {
    const quoting = paragraph[0]?.kind === 'quote';
    if (line.starts || quoting !== (line.kind === 'quote')) close();
    if (line.text !== '') paragraph.push(line);
    if (line.ends) close();
  }
  close();
  return markHeadings(blocks);
}

/** If a text marks at least this many headings, an unmarked line is not a heading. */
const MARKED = 2;

/** A short line without an end mark above a sentence is a heading, unless the text marks its headings. */
function markHeadings(blocks: Block[]): Block[] {
  if (blocks.filter(({ kind }) => kind === 'heading').length >= MARKED) return blocks;
  return blocks.map((block, index) => {
    const next = blocks[index + 1];
    const short =
      block.kind === 'prose' &&
      block.text.length <= (block.joined === true ? NARROW : 100) &&
      !/[.!?。！？…:;,]["'”’)]*$|\p{L}{4}[.!?]\s|:\/\/|^\p{Ll}/u.test(block.text);
    const before = blocks[index - 1];
    const after =
      before === undefined ||
      before.kind !== 'prose' ||
      /[.!?。！？"”’)]$/u.test(before.text) ||
      before.text.length <= 60;
    const above =
      next?.kind === 'prose' && next.text.length > block.text.length && /[.!?。！？]/.test(next.text);
    return short && above && after ? { text: block.text, kind: 'heading' } : block;
  });
}
