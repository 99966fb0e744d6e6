import { expect } from 'chai';
import { KeptAnswers } from '../../src/sale/kept-answers.js';

describe('kept answers', () => {
  it('are read only once while copies of them are still being sent, and a payment without a kept answer gets none', async () => {
    let reads = 0;
    const stored = { status: 200, headers: { 'X-Kept': 'yes' }, expiresAt: Infinity };
    const answers = new KeptAnswers({
      answer: async id => {
        reads += 1;
        return id === 'gone' ? undefined : { ...stored, body: Buffer.alloc(100_000, id) };
      },
    });
    const first = await answers.get('a');
    const copies = await Promise.all(Array.from({ length: 100 }, () => answers.get('a')));
    for (const copy of copies) expect(copy?.body === first?.body).to.equal(true);
    expect(copies[0]).to.include({ status: 200 }).and.to.have.property('headers', stored.headers);
    expect(reads).to.equal(1);
    expect((await answers.get('b'))?.body.toString('latin1', 0, 2)).to.equal('bb');
    expect(await answers.get('gone')).to.equal(undefined);
  });

  it('are read only once if many copies request them at the same time', async () => {
    let reads = 0;
    const answers = new KeptAnswers({
      answer: async () => {
        reads += 1;
        return { status: 200, headers: {}, body: Buffer.alloc(10), expiresAt: Infinity };
      },
    });
    const copies = await Promise.all(Array.from({ length: 100 }, () => answers.get('a')));
    expect(reads).to.equal(1);
    for (const copy of copies) expect(copy?.body === copies[0]?.body).to.equal(true);
  });
});
