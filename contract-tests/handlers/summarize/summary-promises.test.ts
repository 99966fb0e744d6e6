import { expect } from 'chai';
import fc from 'fast-check';
import { extractSummary } from '../../../handlers/summarize/extract.js';
import { balanced, END, joinSentences, passes } from '../../../handlers/summarize/gate.js';
import { toBlocks } from '../../../handlers/summarize/plain-text.js';
import { readingOf } from '../../../handlers/summarize/sentences.js';
import { leadThree, readCorpus, readJudged, scoreOf, wordCount } from '../../support/summary-corpus.js';

const summaryOf = (text: string): string => joinSentences(extractSummary(text)?.sentences ?? []);
const methodOf = (text: string): string | undefined => extractSummary(text)?.method;
const splitSentences = (text: string): string[] => readingOf(text).sentencesOf(text);
const plain = (text: string): string =>
  toBlocks(text)
    .map(block => block.text)
    .join('\n');

/** How the extractive summary of a text breaks the promises in docs/reports/summaries.md. */
function faultsOf(text: string): string[] {
  const extract = extractSummary(text);
  if (extract?.method !== 'extractive') return [];
  const whole = plain(text);
  const headings = new Set(toBlocks(text).flatMap(block => (block.kind === 'heading' ? [block.text] : [])));
  return [
    ...(extract.sentences.length < 1 || extract.sentences.length > 3
      ? [`${extract.sentences.length} sentences`]
      : []),
    ...extract.sentences.flatMap(sentence => [
      ...(END.test(sentence) ? [] : [`no end: ${sentence}`]),
      ...(balanced(sentence) ? [] : [`not balanced: ${sentence}`]),
      ...(passes(sentence) ? [] : [`not fit: ${sentence}`]),
      ...(whole.includes(sentence) || whole.includes(sentence.replace(/[.。]$/u, ''))
        ? []
        : [`not in the text: ${sentence}`]),
      ...(headings.has(sentence) && !/[?？]["”»)」]?$/u.test(sentence) ? [`a heading: ${sentence}`] : []),
    ]),
  ];
}

describe('embedded summariser: never says what the text does not say', () => {
  it('does not quote "them" without the sentence that says what they are', () => {
    const text =
      'The rover has filled 30 tubes with samples of rock. Engineers hope that a lander will bring them to Earth in 2033. ' +
      'The crater once held a lake. The first lander failed. Its wheel had broken in the sand. Nobody knows when the next one starts.';
    const summary = summaryOf(text);
    expect(summary).to.match(/30 tubes/);
    if (summary.includes('bring them'))
      expect(summary).to.match(/tubes with samples of rock\. Engineers hope/);
    expect(summary).to.not.match(/Its wheel/);
  });

  it('ends a ruling where its sentence ends, never at "because."', () => {
    const aside =
      'the defendant had told the claimant of the weight limit, of the wet grass, of the missing foot and of the wind';
    const text =
      'The claimant bought a ladder from the defendant. The ladder carried a sticker. The claimant fell and broke an arm. ' +
      `The court holds that the claim fails despite the sticker and the lack of the warnings because ${aside}, which ${aside}, and which ` +
      `every one of the three witnesses who were heard on the second day of the hearing confirmed.\n\nHeld:\n\nThe appeal is dismissed.`;
    const summary = summaryOf(text);
    expect(summary).to.not.match(/because\.|…/);
    expect(summary).to.match(/The appeal is dismissed\.$/);
    expect(faultsOf(text)).to.deep.equal([]);
  });

  it('quotes at most three sentences if a ruling follows short ones', () => {
    const text =
      ' to have mended the hedge. The hedge is his. There was no duty on her to keep his dog in.\n\n' +
      '6. For these reasons the appeal is dismissed, the award of £8,400 stands, and the appellant must pay the costs.';
    const extract = extractSummary(text);
    expect(extract?.sentences).to.have.length.at.most(3);
    expect(extract?.sentences.at(-1)).to.match(/^For these reasons the appeal is dismissed/);
    expect(faultsOf(text)).to.deep.equal([]);
  });

  it('does not split German law at Abs., Art., Nr. and ordinals', () => {
    const sentences = [
      'Nach § 573 Abs. 2 Nr. 2 BGB kann der Vermieter kündigen.',
      'Gemäß Art. 14 Abs. 1 GG ist das Eigentum gewährleistet.',
      'Am 3. Oktober 1990 entschied der II. Senat, z. B. über Fristen.',
      'Vgl. dazu Rn. 12 und Bd. 3 S. 17 des Urteils.',
    ];
    expect(splitSentences(sentences.join(' '))).to.deep.equal(sentences);
    expect(summaryOf(sentences.join(' '))).to.match(
      /^Nach § 573 Abs\. 2 Nr\. 2 BGB kann der Vermieter kündigen\./,
    );
  });

  it('keeps the cap on liability from the section named after it', () => {
    const text =
      'This agreement is between Acme Ltd. and Bolt Inc. Acme writes the software for the bank. Bolt tests the software for the bank. ' +
      'The parties met in spring.\n\n## 7. Limitation of liability\n\nThe liability of either party is limited to the fees of the last ' +
      'twelve months.\n\n## 8. Notices\n\nNotices are sent by mail. The addresses are in the annex. A copy is kept in the office.';
    expect(summaryOf(text)).to.contain('limited to the fees of the last twelve months.');
  });

  it('keeps the grant of a licence whose clauses open with their names', () => {
    const text =
      '1. Definitions. A work is what an author made and published under these terms. A contributor is whoever sends a change to the work.\n\n' +
      '2. Grant of Copyright License. Each contributor grants you a perpetual and free copyright licence to copy, change and sell the work.\n\n' +
      '3. Trademarks. The names of the contributors may not be used for advertising of your own.\n\n' +
      '4. Notices. Every copy carries this text. Changed files say that they were changed.';
    const summary = summaryOf(text);
    expect(summary).to.contain('grants you a perpetual and free copyright licence');
    expect(summary).to.match(/^“Definitions\. A work is .*”.*\. Each contributor grants[^.]*\.$/);
  });

  it('keeps the result of an abstract and the conclusion of a long report', () => {
    const room = (count: number): string =>
      Array.from(
        { length: count },
        (_, index) => `The ward in room ${index + 1} was quiet on that afternoon of the study.`,
      ).join(' ');
    const abstract =
      `Background: Tea is popular among patients. Methods: We enrolled 612 patients in a randomised trial. ${room(6)}\n\n` +
      'Results\n\nPatients who drank tea recovered 1.5 days earlier than the others did.';
    expect(summaryOf(abstract)).to.contain('recovered 1.5 days earlier');
    const chapters = Array.from(
      { length: 40 },
      (_, index) => `## ${index + 1}. Ward ${index + 1}\n\n${room(37)}`,
    ).join('\n\n');
    const report = `# Tea on wards\n\n${chapters}\n\n## 41. Conclusion\n\nTea shortens the stay of patients by 1.5 days and should be offered on every ward.`;
    expect(report.length).to.be.above(90_000);
    expect(summaryOf(report)).to.contain('should be offered on every ward.');
  });

  it('names the speaker in a chat', () => {
    const text =
      'Anna: Hi, are we still on for today?\nBen: Yes, at 3 in the library.\nAnna: I have to leave at 5.\nBen: ok\n' +
      'Cara: I bring the slides.\n[14:02] Anna: Ben has the key to the library.';
    for (const sentence of extractSummary(text)?.sentences ?? [])
      expect(sentence).to.match(/(?:Anna|Ben|Cara): /);
    expect(
      summaryOf(
        'Anna: I have to leave at 5 because of the train.\nBen: Then we start at 3.\nAnna: I have to buy a ticket first.\nBen: ok\nAnna: ok',
      ),
    ).to.match(/^Anna: I have to/);
  });

  it('does not join a quotation with the ruling on it', () => {
    const text =
      'The minister spoke on Monday. “We will never sell the port. It is ours,” he said. The court had ruled that the sale was void. ' +
      '“The contract breaks the law of 1998. It cannot stand,” the judge wrote. The opposition asked for a vote.';
    expect(splitSentences(text)).to.include(
      '“The contract breaks the law of 1998. It cannot stand,” the judge wrote.',
    );
    expect(faultsOf(text)).to.deep.equal([]);
  });

  it('gives no answer from an FAQ without its question', () => {
    const text =
      '## Can I cancel?\n\nYes. You can cancel within 14 days at no cost.\n\n## Who pays for the return?\n\nWe pay for returns within ' +
      'Europe. Elsewhere the buyer pays.\n\n## How long does delivery take?\n\nDelivery takes three to five working days.';
    const summary = summaryOf(text);
    expect(summary).to.match(/^(?:Can I|Who pays|How long)[^?]*\?/);
    for (const [answer, question] of [
      ['14 days', 'Can I cancel'],
      ['within Europe', 'Who pays'],
      ['working days', 'How long'],
    ] as const)
      if (summary.includes(answer)) expect(summary).to.contain(question);
  });

  it('never starts in the middle of a sentence, such as after a page number, a broken line or a paragraph sign', () => {
    const text =
      'The appellant shot his cousin and was tried and\n\n2 sentenced to imprisonment for life by the court of the district.\n\n' +
      'einen Verweis auf den Datensatz.\n\n§ 8a SGB VIII gives parents no right. The appeal was heard in May. The court has ruled. The costs are shared.';
    expect(summaryOf(text)).to.match(
      /^“The appellant shot his cousin and was tried and \/ 2 sentenced .*” \(≈ \d+ words\)\.$/,
    );
  });

  it('does not quote an item without the line that changes its meaning', () => {
    const text =
      'It is forbidden:\n- to sell the data to anybody at all.\n- to share the key with others.\n\nThe licence costs 50 euros a year. ' +
      'Students pay half of the price. The seller may change the price once a year.';
    expect(summaryOf(text)).to.match(/^“It is forbidden: \/ to sell the data/);
  });

  for (const [what, text, never] of [
    [
      'a clause under a heading that limits it',
      '# Terms of the archive\n\nThe archive keeps letters of the nineteenth century in twelve rooms of the old mill.\n\n## Exceptions\n\nVisitors may photograph every letter of the archive with a flash.\n\n' +
        '## You must not\n\nCopy the letters of the archive for a shop. Lend the letters to friends of yours.',
      /photograph|Copy the|Lend the/,
    ],
    [
      'a step or an entry of a list without its list',
      'The archive keeps letters of the nineteenth century. Everybody may read them in the hall. The hall is open on weekdays.\n\n' +
        '1. The visitor gets a warning.\n2. The visitor waits.\n3. The visitor is banned from the archive for ever.\n- The letters are burned after a year.',
      /banned|burned/,
    ],
    [
      'a label without its heading',
      'The archive keeps letters of the nineteenth century. The hall is open on weekdays. Admission costs four euros.\n\nConsequence: a ban from the archive for one year.',
      /ban from/,
    ],
    [
      'a supposition or what follows from it',
      'The archive keeps letters of the nineteenth century. The hall is open on weekdays. Admission costs four euros.\n\nSuppose the archive burned down last night. All letters of the archive are lost.',
      /burned|are lost/,
    ],
    [
      'a sentence that the next one contradicts, without that one',
      'Critics say that the archive sells letters of the nineteenth century. However, the archive has never sold a letter.\n\nThe hall is open on weekdays. Admission costs four euros. Children pay half.',
      /sells letters of the nineteenth century\.(?! However)/,
    ],
    [
      'an old section',
      '# Archive API\n\nThe archive has an API for letters.\n\n## Old API\n\nThe API takes a password in the address of every request.\n\n## Use\n\nThe API is for the letters of the archive.',
      /(?<!Old API \/ The API takes a )password/,
    ],
    [
      'a sentence that refers back to something named before',
      'Die Halle ist an Werktagen offen. Der Eintritt kostet vier Euro. Kinder zahlen die Hälfte.\n\nDas Gericht hat diesen Vertrag für nichtig erklärt.\n\nIm Archiv liegen Briefe.',
      /diesen Vertrag/,
    ],
    [
      'the rest of a sentence that was broken off by a line break',
      'The archive keeps letters of the nineteenth century in twelve rooms. It can not be said that the\nArchive Sells Letters to shops in the city, and nobody has said so.\n\nAdmission costs four euros.',
      /(?<!that the )Archive Sells/,
    ],
    [
      'a rule without the exception in the next sentence',
      'The government shall have only restricted rights in the letters of the archive. Notwithstanding the foregoing, the archive grants it all rights.\n\nAdmission costs four euros. Children pay half.',
      /restricted rights in the letters of the archive\.(?! Notwithstanding)/,
    ],
  ] as const)
    it(`does not quote ${what}`, () => expect(summaryOf(text)).to.not.match(never));

  it('does not join messages from two people unless they are adjacent', () => {
    const lines = [
      'Do you like films?',
      'Who wrote Alice?',
      'Do you like tea?',
      'Where is the hall?',
      'What costs a ticket?',
    ];
    const answers = [
      'I like films of Alice.',
      'Carroll wrote Alice.',
      'Tea keeps me awake.',
      'The hall is on the hill.',
      'A ticket costs 4 euros.',
    ];
    const chat = lines.map((line, index) => `User: ${line}\nBot: ${answers[index]}`).join('\n');
    const [what, ...said] = extractSummary(chat)?.sentences ?? [];
    expect(what).to.equal('Lines labelled User, Bot, of which these are the first.');
    expect(said).to.have.length(2);
    for (const [index, sentence] of said.entries()) {
      const before = said[index - 1];
      if (before === undefined || before.slice(0, 4) === sentence.slice(0, 4)) continue;
      expect(chat).to.include(`${before.replace(/\.$/, '')}`);
      expect(chat.replaceAll('\n', ' ')).to.include(`${before} ${sentence}`);
    }
  });

  it('says what release notes are about, and which versions they cover', () => {
    const text =
      '# Changes\n\n## 2.1.0 (2026-05-01)\n\n- Adds a hall.\n- Removes the mill.\n\n## 2.0.0 (2026-04-01)\n\n- Adds a mill.';
    expect(extractSummary(text)).to.deep.equal({
      sentences: ['Changes by version, 2.1.0 (2026-05-01) first: “Adds a hall.”, “Removes the mill.”.'],
      method: 'described',
    });
  });

  it('quotes the beginning, line by line, of a text without a first paragraph', () => {
    const lists = ['Scope', 'Threats', 'Next'].map(
      name =>
        `## ${name}\n\n- one of them\n- another of them\n- the last\n\n| what | who |\n|---|---|\n| it | me |`,
    );
    expect(extractSummary(`# Model\n\n${lists.join('\n\n')}`)).to.deep.equal({
      sentences: [
        '“Model / Scope / one of them / another of them / the last / what, who / it, me / Threats …” (≈ 40 words).',
      ],
      method: 'described',
    });
  });

  it('gives the title, length and headings of a long text before what it quotes', () => {
    const rooms = Array.from(
      { length: 4 },
      (_, index) =>
        `## Room ${'ABCD'[index]} of the mill\n\n${'Letters of the house lie in this room on shelves. '.repeat(10)}`,
    );
    const text = `# Guide\n\nThe archive keeps letters of the nineteenth century. The hall is open on weekdays.\n\n${rooms.join('\n\n')}`;
    expect(extractSummary(text)).to.deep.equal({
      sentences: [
        '“Guide” (≈ 440 words; sections: Room A of the mill; Room B of the mill; Room C of the mill; Room D of the mill).',
        'The archive keeps letters of the nineteenth century.',
        'The hall is open on weekdays.',
      ],
      method: 'described',
    });
  });

  it('quotes at most two passages: one from the beginning of a section, and one with the result', () => {
    for (const { text, id } of [...readJudged(), ...readCorpus()]) {
      const extract = extractSummary(text);
      if (extract?.method !== 'extractive') continue;
      const within = plain(text).replaceAll('\n', ' ');
      const runs = extract.sentences.reduce<string[]>((found, sentence) => {
        const bare = sentence.replace(/[.。]$/u, '');
        const last = found.at(-1);
        const joined = [`${last}. `, `${last} `, `${last}。`, `${last}`].map(start => `${start}${bare}`);
        const together = last === undefined ? undefined : joined.find(run => within.includes(run));
        return together === undefined ? [...found, bare] : [...found.slice(0, -1), together];
      }, []);
      expect(runs.length, `${id}: ${runs.join(' ¦ ')}`).to.be.at.most(2);
    }
  });

  it('names the section of a quotation that is not directly below the title', () => {
    const text = `# Terms\n\n## Exceptions\n\n${'Visitors may photograph every letter of the house with a flash. '.repeat(4)}\n\n## Duties\n\nGuests leave the hall at five and close all of the doors.`;
    expect(extractSummary(text)?.method).to.equal('described');
    expect(summaryOf(text)).to.match(/^“Terms” \(≈ \d+ words\), “Exceptions”\. Visitors/);
  });

  it('does not take the first of several sections for the title of the whole', () => {
    const part =
      'Guests leave the hall of the harbour at five and close all of the doors behind them. '.repeat(4);
    const text = `## Departure\n\n${part}\n\n## Arrival\n\n${part}`;
    expect(summaryOf(text)).to.match(/^≈ \d+ words, “Departure”\. Guests/);
  });

  it('does not take the heading of the first numbered part for the title of the whole', () => {
    const part = 'This law adds to the regulation. It says who may hold which data, and for how long. ';
    const law = (first: string, second: string): string =>
      [first, part.repeat(3), second, part.replace('adds', 'yields').repeat(3)].join('\n\n');
    for (const [first, second] of [
      ['1 kap. Inledande bestämmelser', '2 kap. Rättslig grund'],
      ['Chapter 1', 'Chapter 2 Of holders'],
      ['I. General', 'II. Special'],
    ] as const)
      expect(summaryOf(law(first, second)), first).to.not.match(/^“/);
    expect(summaryOf(law('31.4. Column Lists', '31.4.1. Examples'))).to.not.include('words, “31.4');
  });

  const told =
    'The server reads this file at its start. It says who may see which folder, and how that is found out. ';
  it('does not list a comment in an example as a heading', () => {
    const example = [
      'AuthType Basic',
      '# (Following line optional)',
      '# then',
      'AuthUserFile /etc/passwords',
    ].join('\n');
    const text = ['# Access', '## Users', '## Groups', '## Files']
      .map(heading => [heading, told.repeat(4), example].join('\n\n'))
      .join('\n\n');
    expect(summaryOf(text))
      .to.include('Users; Groups; Files')
      .and.not.match(/Following|then/);
  });

  it('does not list a comment in an indented example as a heading either', () => {
    const kinds = toBlocks('.. code-block:: text\n\n  # or for all\n\nThe file').map(({ kind }) => kind);
    expect(kinds).to.not.include('heading');
  });

  it('says that code is code, and quotes none of it without code marks', () => {
    const text = `# SPDX-License-Identifier: MIT\n\nimport json\nimport logging\n\nlogger = logging.getLogger(__name__)\n\n\nclass Settings:\n    def __init__(self):\n        self.depth = 4\n        self.width = 80\n        self.limit = 400\n\n    def load(self, path):\n        self.depth = json.load(\n            open(path))\n`;
    expect(summaryOf(text)).to.equal('Source code of 17 lines that defines Settings.');
  });

  it('does not take comments in a configuration for headings, and quotes the first one unless it is a licence notice', () => {
    const comment =
      '##\n#  File:\n#    site\n#  Description:\n#    This file serves one site and\n#    its pictures. Change it.\n##\n';
    const rules =
      '\nserver {\n\t# The name of the site.\n\tserver_name a.example;\n\n\t# Where it is,\n\t# on the disk.\n\troot /site;\n\tindex a.html;\n\texpires off;\n}\n';
    expect(summaryOf(comment + rules)).to.equal(
      'Source code of 18 lines, which begins with “File: site Description: This file serves one site and its pictures.”.',
    );
    expect(summaryOf(comment.replace('Change it', 'Copyright 2020') + rules)).to.equal(
      'Source code of 18 lines.',
    );
  });

  it('quotes the task above an example, however short it is compared with the example', () => {
    const example =
      "```js\nconst cipher = require('cipher')\nconst stream = cipher.createStream('key', 'of four words')\nstream.pipe(process.stdout)\nstream.write(Buffer([135, 197, 164, 92, 129, 90]))\nstream.end()\n```";
    const text = `Write a program that decrypts what it reads, with the key that it is given.\n\nHere is an example:\n\n${example}\n\nRead it all.\n`;
    expect(summaryOf(text)).to.match(/^Write a program that decrypts what it reads/);
  });

  it('says that declarations with comments are code', () => {
    const method =
      '  /**\n   * Replaces a token with an empty string, if there is one.\n   */\n  static strip(match: string): string;\n';
    expect(summaryOf(`export declare class Lexer {\n${method.repeat(6)}}\n`)).to.equal(
      'Source code of 26 lines that defines Lexer.',
    );
  });

  it('counts the lines below a comment that begins with two hyphens, because it is not a signature', () => {
    const query = 'SELECT name\n  FROM owners\n  WHERE owners.id = datdba\n  ORDER BY name\n';
    const text = `--\n-- lists the names of all owners of a database\n--\n${query}\n`.repeat(12);
    const words = text.match(/\w\S*/g)?.length ?? 0;
    expect(Number(/≈ (\d+) words/.exec(summaryOf(text))?.[1]) / words).to.be.within(0.8, 1.3);
  });

  it('quotes the task that leads to an example before what follows the example', () => {
    const task =
      'Create a server that answers requests to the root with a file that is called index.html and has the following:';
    const text = `${task}\n\n\`\`\`html\n<h1>Hello</h1>\n\`\`\`\n\n##HINTS\n\nThis exercise needs a plugin, for example:\n\n\`\`\`js\nawait server.register(Inert);\n\`\`\`\n\n${'You can declare handlers as objects. '.repeat(30)}`;
    expect(summaryOf(text)).to.match(/^“Create a server .* the following: \/ … \/ ##HINTS/);
  });

  it("takes a logo's text for the title, and ignores badges among links", () => {
    const text = `# ![inkjs](media/inkjs.png)\n\n![build](https://example.com/badge.svg)\n[![npm](https://example.com/npm.svg)](https://example.com)\n\nThis is a port of a language for stories. It runs in all browsers and needs nothing else.\n\n${['Installation', 'Use', 'Differences'].map(name => `## ${name}\n\n${'It says more about this than anybody wants to read. '.repeat(14)}`).join('\n\n')}`;
    expect(summaryOf(text))
      .to.match(/^“inkjs” \(/)
      .and.not.include('build');
  });

  it('counts the keys of all objects together if the objects have different keys', () => {
    expect(summaryOf('[{"a":1,"b":2},{"a":3,"b":4}]')).to.include('2 objects with 2 keys: ');
    expect(summaryOf('[{"a":1,"b":2},{"a":3,"c":4}]')).to.include('2 objects with 3 keys in all: ');
  });

  it('says that a program with many comments is code, and takes none of them for a section', () => {
    const text = `# SPDX-License-Identifier: MIT\n\nfrom __future__ import annotations\n\nimport re\n\n\nclass Masker:\n    """Masks what a pattern finds. It is used by the miner."""\n\n    def mask(self, text: str) -> str:\n        return re.sub(self.pattern, self.mask_with, text)\n\n\n# Alias for Masker\n\n# Some examples\n# ---------\n#\n# instances = [\n#    Masker("HEX"),\n# ]\n`;
    expect(summaryOf(text)).to.equal('Source code of 22 lines that defines Masker.');
  });

  it('counts the cues of captions, without their timestamps', () => {
    const cue = (at: number): string =>
      `00:00:0${at}.000 --> 00:00:0${at + 1}.500 align:start\n<c.colorE5E5E5>what</c> will happen\n`;
    const said = 'Captions of 3 cues, from 00:00:01.000 to 00:00:04.500.';
    expect(summaryOf(['WEBVTT\nKind: captions\n', ...[1, 2, 3].map(cue)].join('\n'))).to.equal(said);
    const subRip = [1, 2, 3].map(at => `${at}\n${cue(at).replaceAll('.', ',')}`).join('\n');
    expect(summaryOf(subRip)).to.equal(said.replaceAll(/\.(?=\d)/g, ','));
  });

  it('counts all characters of Japanese and Chinese text, including those of other scripts', () => {
    const text = `# 設定\n\n${'`baseUrl` はビュー機能のプレビューを実行する環境のURLを指定してください。'.repeat(20)}\n\n## 一\n\n## 二\n\n## 三\n`;
    const signs = text.replace(/[\s#`]/g, '').length;
    expect(Number(/≈ (\d+) 文字/.exec(summaryOf(text))?.[1]) / signs).to.be.within(0.9, 1.1);
  });

  it('counts no errors in lines without log levels, such as those of a chat', () => {
    const text = Array.from(
      { length: 8 },
      (_, n) => `2005-01-08T23:33:5${n} <mgedmin> the tide is in at the harbour now, number ${n}`,
    ).join('\n');
    expect(summaryOf(text)).to.match(/^A log of 8 lines from \S+ to \S+\.$/);
  });

  it("does not take a picture's alternative text for a title", () => {
    const text = `![harbour.min.js size](https://badges.example/size.svg)\n\n${'Harbour reads the tide of a place and tells ships of the hour when they may enter. '.repeat(3)}`;
    expect(summaryOf(text)).to.not.contain('size');
  });

  it('treats the first heading as the title of the text, whatever it says', () => {
    const about = 'The members of the choir meet on the first evening of the month and sing for an hour.';
    for (const title of ['Contributing to the choir', 'licence-checker'])
      expect(
        summaryOf(`# ${title}\n\n${about}\n\n## Usage\n\n${'Please bring your own music along. '.repeat(5)}`),
      )
        .to.contain(about)
        .and.not.contain('Usage');
  });

  it('returns at most two of five short sentences, each whole and not joined to another', () => {
    const five =
      'One cat sat on the mat. Two dogs ran home. Three birds sang songs. Four fish swam away. Five cows slept well.';
    expect(extractSummary(five)?.sentences).to.have.length(2);
    expect(summaryOf(five)).to.not.contain(';');
  });

  it('returns a sentence of over 60 words only if no other has the result, and never cuts it', () => {
    const long = `The court orders that ${'the defendant, the heirs and their agents '.repeat(9)}must leave the house by 1 May.`;
    const short = 'The clerk was late. The hall was cold. Ten people came. The judge read for an hour.';
    expect(summaryOf(`${short} ${long}`)).to.not.contain('must leave');
    expect(summaryOf(`${short}\n\n## Decision\n\n${long}`)).to.contain(long);
  });
});

describe('embedded summariser: input that is not prose, or already short', () => {
  for (const [name, text, expected] of [
    ['JSON', '{"name":"Ann","age":31}', 'A JSON object with 2 keys: name and age.'],
    [
      'JSON of records',
      '[{"city":"Bonn","price":3},{"city":"Ulm","price":9}]',
      'A JSON array of 2 objects with 2 keys: city and price; price from 3 to 9.',
    ],
    [
      'CSV',
      'date,city,price\n2026-01-01,Bonn,3\n2026-01-02,"Ulm, Neu",9\n2026-01-03,Kiel,5',
      'A table of 3 rows and 3 columns: date, city and price; date from 2026-01-01 to 2026-01-03, price from 3 to 9.',
    ],
    [
      'a table',
      '| name | age |\n|---|---|\n| Ann | 31 |\n| Bo | 44 |\n| Cy | 12 |',
      'A table of 3 rows and 2 columns: name and age; age from 12 to 44.',
    ],
    [
      'code',
      'import { x } from "y";\nexport function add(a, b) {\n  return a + b;\n}\n',
      'Source code of 4 lines that defines add.',
    ],
    [
      'code with comments, types and inner names',
      '// the type of both\ntype Pair<P = any> = P[];\n\nexport default class Sum {\n  add(a, b) {\n    const c = a + b;\n    return c;\n  }\n}\n',
      'Source code of 9 lines that defines Pair and Sum.',
    ],
    [
      'release notes in reStructuredText',
      ['2.1.0', '2.0.0', '2.0.0rc1']
        .map(
          version =>
            `${version}\n${'='.repeat(version.length)}\n\n:release-date: 2026-01-04\n\nWhat's Changed\n~~~~~~~~~~~~~~\n\n- Mends the lock\n- Adds a key\n- Drops Node 18\n`,
        )
        .join('\n'),
      "Changes by version, 2.1.0 first: What's Changed: “Mends the lock”, “Adds a key”, “Drops Node 18”.",
    ],
    [
      'a list',
      'Bring along:\n\n- a tent\n- a torch\n- two ropes\n- matches',
      'A list of 4 items under “Bring along”: a tent, a torch, two ropes and matches.',
    ],
    ['a line of 3 000 letters', 'x'.repeat(3_000), 'A text of ≈ 3000 characters (≈ 1 words).'],
  ] as const)
    it(`${name}: says what the input is`, () =>
      expect(extractSummary(text)).to.deep.equal({ sentences: [expected], method: 'described' }));

  it('a text of up to three sentences is returned unchanged, and the answer says so', () => {
    for (const text of [
      'A',
      'hello',
      'No marks at all',
      'It rains. Take a coat. Come at 5.',
      '会议推迟到五月九日。地点改为二楼。',
      '🎉 👨‍👩‍👧‍👦',
    ])
      expect(extractSummary(text), text).to.deep.equal({ sentences: [text], method: 'whole' });
    expect(methodOf('It rains. Take a coat. Come at 5. Bring Ann. Bring Bo.')).to.equal('extractive');
  });
});

describe('embedded summariser: the final check', () => {
  it('leaves no half sentence, unpaired mark, heading or list mark in the summary of any text', () => {
    const word = fc.constantFrom(
      ...[
        'alpha',
        'Dr.',
        'e.g.',
        '3.5',
        'beta,',
        'gamma.',
        'Delta!',
        'why?',
        '12,000',
        '\n',
        '\n\n',
        '\n- ',
        '\n> ',
        '\n1. ',
        '\n# ',
        '<p>',
        '&amp;',
      ],
      ...[
        '北京。',
        '**',
        'https://x.example/a.b',
        '(',
        ')',
        '"',
        '“',
        '”',
        '«',
        '»',
        '…',
        'U.S.A.',
        'Abs. 2',
        'Anna:',
        '\nBen: ',
        ';',
        ':',
        'It',
        'They',
        '（',
      ],
      ...[
        'The council has approved the bridge.',
        'Der Senat hat es am 3. Mai beschlossen.',
        'Who pays? The city pays.',
        '| a | b |\n',
        '「はい。」',
      ],
    );
    const soup = fc.array(fc.oneof({ weight: 5, arbitrary: word }, fc.string({ unit: 'grapheme' })), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(soup, fc.constantFrom(' ', ''), (parts, glue) => {
        expect(faultsOf(parts.join(glue))).to.deep.equal([]);
      }),
      { numRuns: 500 },
    );
  });

  it('finds no fault in the summary of any part of the third-party texts', () => {
    const texts = [...readJudged(), ...readCorpus()].map(({ text }) => text);
    for (const text of texts) expect(faultsOf(text)).to.deep.equal([]);
    fc.assert(
      fc.property(
        fc.constantFrom(...texts),
        fc.nat(20_000),
        fc.integer({ min: 1, max: 4_000 }),
        (text, from, length) => {
          const start = from % text.length;
          expect(faultsOf(text.slice(start, start + length))).to.deep.equal([]);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('embedded summariser: the evaluation texts', () => {
  it('are 40 texts in at least 8 languages, each with its package and its licence', () => {
    const judged = readJudged();
    expect(judged).to.have.length(40);
    expect(new Set(judged.map(({ language }) => language)).size).to.be.at.least(8);
    for (const { id, package: from, licence, text } of judged) {
      expect(from, id).to.match(/^(?:npm|PyPI) \S+ \d/);
      expect(licence, id).to.not.equal('');
      expect(wordCount(summaryOf(text), 'en'), id).to.be.below(wordCount(text, 'en') / 2);
    }
  });
});

describe('embedded summariser: the corpus', () => {
  const corpus = readCorpus();
  const mean = (read: (entry: (typeof corpus)[number]) => number): number =>
    corpus.reduce((sum, entry) => sum + read(entry), 0) / corpus.length;

  it('has 60 texts of 60 to 900 words in ten languages', () => {
    expect(corpus).to.have.length(60);
    expect(new Set(corpus.map(({ language }) => language)).size).to.equal(10);
    for (const entry of corpus) {
      expect(wordCount(entry.text, entry.language), entry.id).to.be.within(60, 900);
      const whole = scoreOf(entry.text, entry);
      expect(whole.facts, `${entry.id} contains what is asked for`).to.equal(1);
      expect(whole.unwanted, `${entry.id} contains what is unwanted`).to.equal(entry.mustNot.length);
    }
  });

  it('has more facts in the summaries of its texts than in their first sentences', () => {
    expect(mean(text => scoreOf(summaryOf(text.text), text).facts)).to.be.above(
      mean(text => scoreOf(leadThree(text), text).facts),
    );
  });
});
