import { expect } from 'chai';
import { createRequire } from 'node:module';
import { fliteReading } from '../../../handlers/text-to-speech/flite-reading.js';
import { phrases } from '../../../handlers/text-to-speech/phrases.js';
import { spokenText } from '../../../handlers/text-to-speech/spoken-text.js';
import { unspeakable, Unspeakable } from '../../../handlers/text-to-speech/unspeakable.js';

describe('voices: text that can be spoken', () => {
  const cases: [string, string][] = [
    ['“Hello” — he said… it’s “fine”', "Hello, he said... it's fine"],
    ['naïve café Ærø', 'naive cafe AEro'],
    ['It costs $1,234.50 or €5 or £3', 'It costs 1,234 dollars and 50 cents or 5 euros or 3 pounds'],
    ['$1.5 and $0.01 and $2.5 million', '1 dollar and 50 cents and 1 cent and 2.5 million dollars'],
    ['50% & more', '50 percent and more'],
    ['the 1st, 21st and 1,000,000', 'the 1st, 21st and 1,000,000'],
    ['250000 people', '250,000 people'],
    ['https://example.com/a?b=c.', 'example dot com slash a question mark b equals c.'],
    ['me@example.com, ok', 'me at example dot com, ok'],
    ['on 2024-01-15', 'on January 15th, 2024'],
    ['20°C, 2½ cups, x²', '20 degrees Celsius, 2 and one half cups, x squared'],
    ['- milk\n- eggs', 'milk\n\neggs'],
    ['one\nline\n\nanother', 'one line\n\nanother'],
    ['Hi 👋🏽!', 'Hi waving hand!'],
    ['Wait!!!!!! %%%%', 'Wait! percent'],
  ];
  for (const [written, spoken] of cases)
    it(`${JSON.stringify(written)} is read as ${JSON.stringify(spoken)}`, () => {
      expect(spokenText(written)).to.equal(spoken);
    });

  const signs: [string, string][] = [
    ['Great 🎉 news 🇩🇪', 'Great party popper news flag of Germany'],
    ['5 ₽, ₿2 and 7 ¢', '5 rubles, 2 bitcoins and 7 cents'],
    ['₩5000 or 0.5 ₿', '5000 won or 0.5 bitcoins'],
    ['pay $ or $SOL', 'pay dollar or dollar SOL'],
    ['A → B, A -> B, √2 ≈ 1.4', 'A to B, A to B, square root of 2 approximately 1.4'],
    ['© Acme™ ®', 'copyright Acme trademark registered'],
    ['10⁴, 10⁻³ and 10^6', '10 to the power of 4, 10 to the power of minus 3 and 10 to the power of 6'],
    ['21℃ and 70 °F', '21 degrees Celsius and 70 degrees Fahrenheit'],
    ['α, Δt and 5 µm', 'alpha, delta t and 5 micrometers'],
    ['1/2 and 3/4 of 5 km, 16 GB', 'one half and three fourths of 5 kilometers, 16 gigabytes'],
    ['11/12/2025, 2025-03-02, 7/6', 'November 12th, 2025, March 2nd, 2025, 7/6'],
    ['a+b=c', 'a plus b equals c'],
    ['if x<y and z>w then', 'if x is less than y and z is more than w then'],
    ['List<String> of <b>bold</b> words', 'List String of bold words'],
    ['## Title\n> quoted #news #1', 'Title quoted hashtag news number 1'],
    ['~5 km | `code` | {a} [b] *c* _d_', "about 5 kilometers 'code' a b c d"],
    ['C:\\Users and @me', 'C: backslash Users and at me'],
    ['Ｆｕｌｌ ｗｉｄｔｈ ① 𝐛𝐨𝐥𝐝', 'Full width 1 bold'],
  ];
  for (const [written, spoken] of signs)
    it(`no character is lost: ${JSON.stringify(written)} is read as ${JSON.stringify(spoken)}`, () => {
      expect(spokenText(written)).to.equal(spoken);
    });

  const apostrophes: [string, string][] = [
    ['I donʼt know Hawaiʻi, the Qurʾan and ʿAli', "I don't know Hawai'i, the Qur'an and 'Ali"],
    ['ʹa ʺb ʽc ˀd ˁe', "'a 'b 'c 'd 'e"],
  ];
  for (const [written, spoken] of apostrophes)
    it(`apostrophes that Unicode classifies as letters are read: ${JSON.stringify(written)} as ${JSON.stringify(spoken)}`, () => {
      expect(spokenText(written)).to.equal(spoken);
    });

  const corrected: [string, string][] = [
    ['500 µg, 3 μs, 2 µL, 1.5 µF', '500 micrograms, 3 microseconds, 2 microliters, 1.5 microfarads'],
    ['a dose in µg, 5 µA, 7 µV, 8 µW', 'a dose in micrograms, 5 microamperes, 7 microvolts, 8 microwatts'],
    ['5 µm²', '5 micrometers squared'],
    ['Smith¹ has a word² here.³', 'Smith 1 has a word 2 here. 3'],
    [
      'mc², 5 km², (a+b)², 10⁻³, mol⁻¹',
      'mc squared, 5 kilometers squared, (a plus b) squared, 10 to the power of minus 3, mol to the power of minus 1',
    ],
    ['⛳ and 🇫🇷 and 🏴󠁧󠁢󠁳󠁣󠁴󠁿', 'flag in hole and flag of France and flag of Scotland'],
    ['US$5, CA$20 and ($7)', 'US 5 dollars, CA 20 dollars and (7 dollars)'],
  ];
  for (const [written, spoken] of corrected)
    it(`${JSON.stringify(written)} is read as ${JSON.stringify(spoken)}, too`, () => {
      expect(spokenText(written)).to.equal(spoken);
    });

  const misread: [string, string][] = [
    ['£2.27tn and $3 tn', '2.27 trillion pounds and 3 trillion dollars'],
    ['15 km/h, 3 m/s and 5 km', '15 kilometers per hour, 3 meters per second and 5 kilometers'],
    [
      'On 06.05.2025, 1.2.2024. Version 1.2.3',
      'On May 6th, 2025, February 1st, 2024. Version 1 point 2 point 3',
    ],
    ['on 31.13.2025', 'on 31 point 13 point 2025'],
    ['in ~/bin, ~/src/my-app and ~5', 'in tilde slash bin, tilde slash src slash my-app and about 5'],
    ['Tom &amp; Jerry&#8217;s caf&eacute; &lt; 5 &euro;', "Tom and Jerry's cafe less than 5 euros"],
    ['while count > limit', 'while count more than limit'],
    ['home > settings > wi-fi', 'home then settings then wi-fi'],
    ['12345678901234567890', [...'12345678901234567890'].join(' ')],
  ];
  for (const [written, spoken] of misread)
    it(`text that was once misread is read as meant: ${JSON.stringify(written)} as ${JSON.stringify(spoken)}`, () => {
      expect(spokenText(written)).to.equal(spoken);
    });

  it('a number of 300 digits is read digit by digit by every engine', () => {
    expect(spokenText('7'.repeat(300))).to.equal(Array.from({ length: 300 }, () => '7').join(' '));
  });

  const skipped: [string, string][] = [
    ['➤ milk\n▸ eggs\n❖ tea ✦ ◇', 'milk\n\neggs\n\ntea'],
    ['➜ next ⟶ last', 'to next to last'],
    ['▲ 5%, ▼ 3%', 'up triangle 5 percent, down triangle 3 percent'],
    ['❶ one ❿ ten ➀ ➓ ⓫ ⓴ ⓵ ⓿', '1 one 10 ten 1 10 11 20 1 0'],
    ['￥500, ￡3 and ￦7', '500 yen, 3 pounds and 7 won'],
  ];
  for (const [written, spoken] of skipped)
    it(`bullets, arrows, numbers and full-width characters are accepted: ${JSON.stringify(written)} is read as ${JSON.stringify(spoken)}`, () => {
      expect(spokenText(written)).to.equal(spoken);
    });

  const comparisons: [string, string][] = [
    ['x != y, x !== y and x == y', 'x is not y, x is not y and x equals y'],
    ['5 <= 6, 7>=6 and Needs >= 3 items', '5 at most 6, 7 at least 6 and Needs at least 3 items'],
    ['A --> B, f(x) => y, a <-> b', 'A to B, f(x) to y, a to b'],
    ['a <- b', 'a left arrow b'],
    ['5 < 6, x<-5, takes <5 days', '5 is less than 6, x is less than -5, takes less than 5 days'],
    ['<5 or price > $10', 'less than 5 or price more than 10 dollars'],
    ['count < limit, limit > n', 'count less than limit, limit more than n'],
    ['love <3', 'love heart'],
    ['I <3 NY. <3', 'I heart NY. heart'],
    ['if x <3', 'if x is less than 3'],
    ['Home > Settings > Wi-Fi', 'Home then Settings then Wi-Fi'],
    ['Windows 11 > Settings>System', 'Windows 11 then Settings then System'],
    ['Map<String, Integer> and Map<K, V>', 'Map String, Integer and Map K, V'],
    ['Said\n>quoted\n> > twice', 'Said quoted twice'],
    ['<!-- a note --> and <my-tag>x</my-tag>', 'a note, and my-tag x my-tag'],
    ['https://example.com/?a==', 'example dot com slash question mark a equals equals'],
    ['5 ≮ 6, x ≰ y, a ≢ b', '5 not less than 6, x not at most y, a is not equivalent to b'],
    ['５＜６', '5 is less than 6'],
  ];
  for (const [written, spoken] of comparisons)
    it(`comparisons, arrows and paths keep their meaning: ${JSON.stringify(written)} is read as ${JSON.stringify(spoken)}`, () => {
      expect(spokenText(written)).to.equal(spoken);
    });

  it('removes punctuation, Markdown marks, rules and white space', () => {
    for (const text of ['…!?—', ' \n\t ', '\u0000', '***', '──── ■ ●', '“”«»', '\u200B\u202E'])
      expect(spokenText(text), text).to.equal('');
  });

  const refused: [string, string[]][] = [
    ['Hello Привет, мир! Привет', ['Привет', 'мир']],
    ['It is 你好。世界 today', ['你好', '世界']],
    [
      'The word שלום and مرحبا, नमस्ते, สวัสดี, 안녕, Ελλάδα',
      ['שלום', 'مرحبا', 'नमस्ते', 'สวัสดี', '안녕', 'Ελλάδα'],
    ],
    ['a pаypal look-alike', ['pаypal']],
    ['scales of 𝄞 and ☉ and \uFFFD', ['𝄞', '☉', '\uFFFD']],
    ['private \uE000', ['\uE000']],
    ['٣ apples', ['٣']],
    ['fine: naïve, 5 €, x², 😀, “quoted”, Łódź', []],
  ];
  for (const [text, words] of refused)
    it(`an English voice cannot speak ${words.length ? words.join(', ') : 'nothing'} in ${JSON.stringify(text)}`, () => {
      expect(unspeakable(text, 'en-US')).to.deep.equal(words);
    });

  it('names in the error what cannot be spoken: at most eight words or symbols, with invisible symbols by their code point', () => {
    expect(() => spokenText('Say Привет and \uE000 now.')).to.throw(
      Unspeakable,
      'text has words or signs that the voice cannot speak: "Привет", U+E000. ' +
        'Write them in Latin letters or as English words, or leave them out.',
    );
    const many = [...Array(20).keys()].map(n => `слово${n}`).join(' ');
    expect(() => spokenText(many)).to.throw(Unspeakable, /"слово7" and 12 more\. Write/);
    expect(() => spokenText('中'.repeat(2_500))).to.throw(Unspeakable, `"${'中'.repeat(30)}…"`);
  });

  it('a voice of another language reads its own script and Latin letters', () => {
    expect(unspeakable('Привет, Hello 5 €!', 'ru-RU')).to.deep.equal([]);
    expect(unspeakable('Привет 你好', 'ru-RU')).to.deep.equal(['你好']);
    expect(unspeakable('你好 한국 123', 'zh-CN')).to.deep.equal(['한국']);
    expect(unspeakable('東京へ行きます。スー', 'ja-JP')).to.deep.equal([]);
    expect(unspeakable('Grüße 😀 →', 'de-DE')).to.deep.equal(['😀', '→']);
    expect(unspeakable('Ξένος', 'el-GR')).to.deep.equal([]);
  });

  it('has a name for every Unicode emoji', () => {
    const names = createRequire(import.meta.url)('unicode-emoji-json/data-by-emoji.json') as object;
    const silent = Object.keys(names).filter(emoji => !/[a-z0-9]/i.test(spokenText(emoji)));
    expect(Object.keys(names).length).to.be.above(1_800);
    expect(silent).to.deep.equal([]);
  });

  it('drops no Unicode letter, digit or symbol silently: each is spoken or rejected', () => {
    const dropped: string[] = [];
    const kept = spokenText('one two');
    for (let code = 0; code <= 0x10ffff; code++) {
      const character = String.fromCodePoint(code);
      if (!/[\p{L}\p{N}\p{S}\p{Co}]/u.test(character) || unspeakable(character, 'en').length > 0) continue;
      const spoken = spokenText(`one ${character} 2 two`);
      if (spoken === spokenText('one 2 two') || spoken === kept)
        dropped.push(`${character} U+${code.toString(16)}`);
    }
    // Markdown marks, brackets, free-standing accents, ruled lines and bullets.
    expect(dropped.filter(name => !/^[<>|~｜⁄─-□▪▫►▸◆◇○●◦❖✦➤\p{Sk}] /u.test(name))).to.deep.equal([]);
  }).timeout(60_000);

  it('gives the engine only ASCII, in phrases of at most 300 characters, without losing a word', () => {
    const sentence = 'Dr. Smith — aged 41 — paid €3 for a “café au lait”, then left; nobody minded. ';
    const text = `${sentence.repeat(20)}\n\n${'word '.repeat(200)}\n\n${'z'.repeat(700)}\n\n${'- a\n'.repeat(200)}`;
    const spoken = spokenText(text);
    const cut = phrases(spoken, 300);
    for (const phrase of cut) {
      expect(phrase.text.length).to.be.within(1, 300);
      expect(phrase.text).to.match(/^[\n\x20-\x7E]+$/);
    }
    const letters = (some: string) => some.replace(/\s/g, '');
    expect(letters(cut.map(phrase => phrase.text).join(''))).to.equal(letters(spoken));
    expect(cut.length).to.be.below((2 * spoken.length) / 300 + 4);
  });

  it('splits between sentences, not after an abbreviation', () => {
    const cut = phrases(spokenText('We met Dr. Brown at the station. '.repeat(12)), 300);
    expect(cut.length).to.be.above(1);
    for (const phrase of cut) expect(phrase.text).to.match(/station\.$/);
  });
});

describe('voices: what flite misreads', () => {
  const cases: [string, string][] = [
    ['OK, APIs and URLs of the AI', "okay, A P I's and U R L's of the A I"],
    ['In the 1990s', "In the 1990's"],
    ['YouTube, macOS and ChatGPT, but McDonald, PhD', 'You Tube, mac O S and Chat GPT, but McDonald, PhD'],
    ['THIS IS LOUD, NASA', 'THIS IS LOUD, NASA'],
  ];
  for (const [text, read] of cases)
    it(`${JSON.stringify(text)} is passed to it as ${JSON.stringify(read)}`, () => {
      expect(fliteReading(text)).to.equal(read);
    });
});
