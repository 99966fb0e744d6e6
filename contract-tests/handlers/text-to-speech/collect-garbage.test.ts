import { expect } from 'chai';
import { collectGarbage } from '../../../handlers/text-to-speech/collect-garbage.js';

describe('voices: memory that the engine leaves behind', () => {
  it('is freed by a garbage collection', async () => {
    const buffers = Array.from({ length: 5 }, () => new WeakRef(new ArrayBuffer(1_000_000)));
    // A WeakRef keeps its target until the current job has ended.
    await new Promise(resolve => setTimeout(resolve, 5));
    collectGarbage();
    expect(buffers.filter(buffer => buffer.deref() !== undefined)).to.deep.equal([]);
  });
});
