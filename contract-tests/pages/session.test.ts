import { expect } from 'chai';
import { Sessions } from '../../src/pages/session.js';
import { createMemoryNotes } from '../support/memory-reply-store.js';

describe('the sessions of a page', () => {
  it('refuse a token that is short enough to be guessed', () => {
    expect(() => new Sessions('short', createMemoryNotes(), Date.now, 'panel')).to.throw(RangeError, '16');
  });

  it('of one page are not valid for another page with the same token', async () => {
    const token = 'a-token-that-nobody-guesses';
    const [panel, other] = ['panel', 'another page'].map(
      page => new Sessions(token, createMemoryNotes(), Date.now, page),
    );
    const cookie = panel?.write(await panel.begin(undefined));
    expect(panel?.read(cookie)).to.be.an('object');
    expect(other?.read(cookie)).to.equal(undefined);
  });
});
