/** Makes a text of at most `size` characters (code points) by repeating `unit`. */
function fill(unit: string, size: number): string {
  return unit
    .repeat(Math.ceil(size / [...unit].length))
    .slice(0, unit.length * Math.floor(size / [...unit].length));
}

const COMBINING = '\u0300\u0327\u0316\u031b\u0323\u0345\u0308\u032d';
const FAMILY = '👨\u200d👩\u200d👧\u200d👦';

/** Texts of strangers that made some program slow: they grow when they are read, or make patterns look again and again. */
export const HOSTILE_TEXTS: Record<string, (size: number) => string> = {
  'U+FDFA, which decomposes to 18 characters': size => fill('\ufdfa', size),
  'U+FDFA with a word': size => `hello ${fill('\ufdfa ', size - 6)}`,
  'letters under combining marks': size => fill(`a${COMBINING}`, size),
  'one letter under all the combining marks': size => `a${fill(COMBINING, size - 1)}`,
  'full-width and circled letters': size => fill('Ａ①㍿㌀', size),
  'double quotes': size => fill('"', size),
  'single quotes and brackets': size => fill("')", size),
  'a dot, then quotes': size => `.${fill("'", size - 2)}x`,
  dots: size => fill('.', size),
  'dots and spaces': size => fill('. ', size),
  'spaces around one word': size => `a${fill(' ', size - 2)}b`,
  'tabs, line breaks and spaces': size => `a${fill(' \t\n\r\n', size - 2)}b`,
  'no-break and zero-width spaces': size => `a${fill('\u00a0\u200b\u2060\ufeff', size - 2)}b`,
  digits: size => fill('9876543217', size),
  'digits and commas': size => fill('1,', size),
  'groups of three digits': size => `${fill('111,', size - 1)}x`,
  'digits and dots': size => fill('1.', size),
  'digits and stars': size => `1${fill(' ', size - 2)}*`,
  hyphens: size => fill('-', size),
  'hyphens and letters': size => fill('a-', size),
  'an address without an end': size => `a@${fill('b.', size - 2)}`,
  'a local part without an address': size => fill('a.+-', size),
  'an address full of signs': size => `https://${fill('?=&%#', size - 8)}`,
  'per cent signs and degrees': size => fill('1%°', size),
  'opening brackets': size => fill('[(', size),
  'links in links': size => fill('[![', size),
  'asterisks and underscores': size => fill('*_a', size),
  'tags without an end': size => fill('<a href="', size),
  'deeply nested tags': size => fill('<div><b>', size),
  'a comment without an end': size => `<!--${fill('<!-- -', size - 4)}`,
  'closing scripts': size => fill('<script>', size),
  entities: size => fill('&amp;', size),
  'entities without an end': size => fill('&#x', size),
  'one word': size => fill('a', size),
  'one word of capitals': size => fill('WXQZ', size),
  'right-to-left text': size => fill('\u202eשלום\u200f', size),
  'emoji joined to families': size => fill(FAMILY, size),
  'one emoji joined to itself': size => fill('👩\u200d', size),
  'flags and keycaps': size => fill('🇩🇪1\ufe0f\u20e3', size),
  'lone surrogates': size => fill('\ud800a', size),
  'control characters': size => fill('\u0000\u0007a', size),
  'ideographs without an end': size => fill('日本語', size),
  'quoted mail': size => fill('> ', size),
  'table rows': size => fill('| ', size),
  abbreviations: size => fill('Dr. ', size),
  'a sentence of commas': size => fill('a, ', size),
};
