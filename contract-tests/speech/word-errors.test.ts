import { expect } from 'chai';
import { wordErrors, wordsOf } from '../support/word-errors.js';
import { TEXTS } from './texts.js';

describe('The check of speech', () => {
  it('counts words that were changed, added and left out, whatever their case and punctuation', () => {
    const cases: [said: string, heard: string, wrong: number][] = [
      ['Dr. Brown left, at noon!', 'doctor brown left at noon', 0],
      ['one two three', 'one too three', 1],
      ['one two three', 'one three', 1],
      ['one two three', 'one two and three', 1],
      ['one two three', '', 3],
      ['', 'one two', 2],
      ['one two three', 'three two one', 2],
    ];
    for (const [said, heard, wrong] of cases)
      expect(wordErrors(wordsOf(said), wordsOf(heard)), `${said} / ${heard}`).to.equal(wrong);
  });

  it('has thirty texts, each with a transcription in letters only', () => {
    expect(TEXTS).to.have.length(30);
    for (const { text, said = text } of TEXTS)
      for (const word of wordsOf(said)) expect(word, text).to.match(/^[a-z']+$/);
  });
});
