import { expect } from 'chai';
import { extractSummary } from '../../../handlers/summarize/extract.js';
import { countByMarks, joinSentences } from '../../../handlers/summarize/pack.js';
import { splitSentences } from '../../../handlers/summarize/sentences.js';
import {
  formFaults,
  leadAsLong,
  leadThree,
  readCorpus,
  scoreOf,
  wordCount,
  type CorpusText,
} from '../../support/summary-corpus.js';

const summaryOf = (text: string): string => joinSentences(extractSummary(text) ?? []);
const filler = (sentences: number, of: string): string =>
  Array.from(
    { length: sentences },
    (_, index) => `${of} in room ${index + 1} was quiet that afternoon.`,
  ).join(' ');

describe('embedded summariser: what it promises', () => {
  it('never cuts a sentence before its main clause', () => {
    const aside = Array.from({ length: 12 }, (_, index) => `any document of the ${index + 1}th kind`).join(
      ', ',
    );
    const cases: [string, RegExp][] = [
      [
        `Notwithstanding ${aside}, and except as stated elsewhere, the tenant shall pay the rent in advance.`,
        /^The tenant shall pay the rent in advance\.$/,
      ],
      [
        `Although ${aside.replaceAll('any', 'the')} had been read aloud by the clerk in a hall without heating, ` +
          'which took until the evening, the council has rejected the plan.',
        /the council has rejected the plan\.$/i,
      ],
      [
        `Ungeachtet ${aside.replaceAll('any document of the', 'sowie der Anlage')}, ` +
          'welche den Parteien vorlagen, hat der Mieter die Kosten zu tragen, der Vermieter darf nichts verlangen.',
        /der Vermieter darf nichts verlangen\.$/i,
      ],
    ];
    for (const [text, expected] of cases) {
      const summary = summaryOf(text);
      expect(wordCount(summary, 'en')).to.be.below(60);
      expect(summary).to.match(expected);
    }
  });

  it('keeps the result of a ruling', () => {
    const text =
      `The claimant sued the defendant before this court over a fence. ${filler(12, 'The hearing of a witness')} ` +
      'The appeal is dismissed and the defendant must pay 9,300 dollars to the claimant.';
    expect(summaryOf(text)).to.match(/appeal is dismissed .* must pay 9,300 dollars/);
  });

  it('keeps the result and the conclusion of an abstract', () => {
    const text =
      'Background: Tea is popular among patients. Methods: We enrolled 612 participants in a randomised trial. ' +
      `${filler(9, 'The ward')} Results: Participants who drank tea recovered 1.5 days earlier than the others. ` +
      'Conclusions: We conclude that tea should be offered to all patients.';
    expect(summaryOf(text)).to.match(/recovered 1\.5 days earlier.*tea should be offered/);
  });

  it('says what a licence or a contract grants and what it limits', () => {
    const text =
      'The licensor wrote this licence in a garden. The parties to this agreement met in spring and liked each other. ' +
      'The licence is kept in a drawer of the office. Permission is granted to copy and change the drawings free of charge. ' +
      `${filler(6, 'The party')} The licensor shall not be liable for any damage, and the drawings may not be sold.`;
    expect(summaryOf(text)).to.match(/Permission is granted to copy.*shall not be liable/);
  });

  it('keeps every fact of a short text', () => {
    const text =
      'Train 512 leaves at 9:14 from platform 7. It stops in Ghent. The trip takes 48 minutes. Bikes cost 5 euros. ' +
      'Dogs travel free. The buffet is closed.';
    const summary = summaryOf(text);
    for (const fact of [
      '512',
      '9:14',
      'platform 7',
      'Ghent',
      '48 minutes',
      '5 euros',
      'ogs travel free',
      'buffet',
    ])
      expect(summary).to.contain(fact);
    expect(formFaults(summary, 'en')).to.deep.equal([]);
  });

  it('makes one sentence of a list', () => {
    expect(summaryOf('Bring along:\n\n- a tent\n- a torch\n- two ropes\n- matches')).to.equal(
      'Bring along: a tent, a torch, two ropes, matches.',
    );
    const long = summaryOf(
      `Bring along:\n${Array.from({ length: 90 }, (_, index) => `- thing ${index}`).join('\n')}`,
    );
    expect(long).to.match(/^Bring along: thing 0, thing 1, .* \(\+\d+\)\.$/);
    expect(formFaults(long, 'en')).to.deep.equal([]);
  });

  it('ends a sentence at "thx."', () => {
    expect(splitSentences('keys are with anna thx. flight is at 6 pls. bring the map')).to.deep.equal([
      'keys are with anna thx.',
      'flight is at 6 pls.',
      'bring the map',
    ]);
  });

  it('puts no space after 。', () => {
    const summary = summaryOf('会议推迟到五月九日。地点改为二楼。请提前交材料。');
    expect(summary).to.equal('会议推迟到五月九日。地点改为二楼。请提前交材料。');
  });

  it('shortens Thai and Lao, which mark no end of a sentence', () => {
    const thai = readCorpus().find(({ id }) => id === 'th-news-rotfai')?.text ?? '';
    const lao = Array.from(
      { length: 12 },
      (_, index) => `ລົດໄຟອອກຈາກສະຖານີນະຄອນຫຼວງວຽງຈັນ ${index + 1} ໂມງຕອນເຊົ້າ`,
    ).join(' ');
    for (const text of [thai, lao]) {
      const summary = summaryOf(text);
      expect(summary.length).to.be.below(text.length * 0.7);
      expect(wordCount(summary, 'th')).to.be.below(60);
    }
  });

  it('answers at most three sentences of under 60 words, however they are counted', () => {
    const abbreviated = Array.from(
      { length: 30 },
      (_, index) => `Dr. A. Bo met Mr. No. ${index} of St. Ives e.g. at noon.`,
    );
    const run = `${'and the dog ran over the hill because the cat was there '.repeat(60)}end`;
    for (const text of [abbreviated.join(' '), run, 'Stop! '.repeat(40), 'well ok. '.repeat(50)])
      expect(formFaults(summaryOf(text), 'en'), text.slice(0, 40)).to.deep.equal([]);
    for (const { id, text, language } of readCorpus())
      expect(formFaults(summaryOf(text), language), id).to.deep.equal([]);
    expect(countByMarks('One. Two! Three? 四。五。')).to.equal(5);
  });
});

describe('embedded summariser: on the corpus', () => {
  const corpus = readCorpus();
  const mean = (texts: CorpusText[], read: (text: CorpusText) => number): number =>
    texts.reduce((sum, text) => sum + read(text), 0) / texts.length;

  it('has 60 texts of 60 to 900 words in ten languages, a third of them held back', () => {
    expect(corpus).to.have.length(60);
    expect(new Set(corpus.map(({ language }) => language)).size).to.equal(10);
    expect(new Set(corpus.map(({ kind }) => kind)).size).to.be.at.least(10);
    expect(corpus.filter(({ held }) => held)).to.have.length(20);
    for (const entry of corpus) {
      expect(wordCount(entry.text, entry.language), entry.id).to.be.within(60, 900);
      const whole = scoreOf(entry.text, entry);
      expect(whole.facts, `${entry.id} contains what is asked for`).to.equal(1);
      expect(whole.unwanted, `${entry.id} contains what is unwanted`).to.equal(entry.mustNot.length);
    }
  });

  for (const held of [false, true])
    it(`keeps more than the first sentences do, ${held ? 'on texts that were held back' : 'on texts it was tuned on'}`, () => {
      const texts = corpus.filter(text => text.held === held);
      const ours = mean(texts, text => scoreOf(summaryOf(text.text), text).score);
      const asLong = (text: CorpusText): string =>
        leadAsLong(text, scoreOf(summaryOf(text.text), text).words);
      expect(ours).to.be.above(mean(texts, text => scoreOf(leadThree(text), text).score) + 0.2);
      expect(ours).to.be.above(0.7);
      const facts = mean(texts, text => scoreOf(summaryOf(text.text), text).facts);
      expect(facts).to.be.above(mean(texts, text => scoreOf(asLong(text), text).facts));
    });
});
