import { expect } from 'chai';
import { readDocument } from '../../../src/cli/import/read-document.js';
import { TestUpstream } from '../../support/upstream-shop.js';

describe('Reading a document that is imported', () => {
  let here: TestUpstream;
  let elsewhere: TestUpstream;
  before(async () => {
    [here, elsewhere] = [await TestUpstream.open(), await TestUpstream.open()];
    here.answer = ({ url }, response) => {
      const location = url === '/near' ? '/read' : elsewhere.url;
      if (url === '/read') response.writeHead(200).end('{}');
      else response.writeHead(302, { location }).end();
    };
  });
  after(() => {
    here.close();
    elsewhere.close();
  });

  it('does not fetch a referenced file from another origin, not even through a redirect', async () => {
    const read = (path: string): Promise<string> =>
      readDocument(new URL(path, here.url), new URL(here.url).origin).then(
        ({ text }) => text,
        (error: unknown) => (error as Error).message,
      );
    expect(await read('/near')).to.equal('{}');
    expect(await read('/far')).to.contain('only files next to the document are read');
    expect(elsewhere.calls).to.deep.equal([]);
    expect((await readDocument(new URL('/far', here.url))).text).to.equal('{"value":1}');
  });
});
