import { expect } from 'chai';
import { imageOf } from '../../src/http/documents.js';

describe('A document that is generated on request', () => {
  it('is generated again for the next request if generating it failed', async () => {
    let fails = true;
    const draw = (): Buffer => {
      if (fails) throw new Error('no memory');
      return Buffer.from('image');
    };
    const image = imageOf(draw, 'image/png', '');
    const failed = await image.encoded('plain').catch((error: Error) => error.message);
    expect(failed).to.equal('no memory');
    fails = false;
    expect((await image.encoded('plain')).body.toString()).to.equal('image');
  });
});
