import { expect } from 'chai';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { buyCommand, commandLine, startCommand } from '../../src/config/command-line.js';
import { bannerOf, linksOf } from '../../src/observe/banner.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url)).replace(/\/$/, '');
const LINKS = { operator: 'http://127.0.0.1:8404/?token=x', pages: [], buy: 'npx coinslot buy' };
const SOLD = [{ id: 'quote', request: { example: { text: "It's one." } } }] as unknown as Parameters<
  typeof bannerOf
>[2];

describe('The command that a person is told to type', () => {
  it('is an npm script in the repository, and coinslot in the folder of a shop', () => {
    expect(commandLine('buy', ROOT)).to.equal('npm run --silent buy --');
    for (const shop of [tmpdir(), `${ROOT}/examples/petstore`, `${ROOT}-shop`])
      expect([commandLine('buy', shop), startCommand(shop)], shop).to.deep.equal([
        'npx coinslot buy',
        'npm start',
      ]);
    expect(startCommand(ROOT)).to.equal('make run');
  });

  it('names the state folder if a buyer would otherwise look in another one', () => {
    expect(buyCommand(`${ROOT}/.coinslot`, ROOT)).to.equal('npm run --silent buy --');
    expect(buyCommand('/srv/my shop', ROOT)).to.equal("STATE_DIR='/srv/my shop' npm run --silent buy --");
  });

  it('is shown in the banner, with an example quoted for the shell', () => {
    expect(bannerOf('http://127.0.0.1:8402', LINKS, SOLD)).to.contain(
      String.raw`  Buy a call  npx coinslot buy quote '{"text":"It'\''s one."}'` + '\n',
    );
  });

  it('is not shown if there is no terminal, and the links that are logged instead contain no token', () => {
    const pages = [{ name: 'Panel', url: 'http://127.0.0.1:8402/panel/#secret' }];
    expect(linksOf('http://127.0.0.1:8402', { ...LINKS, pages })).to.deep.equal({
      shop: 'http://127.0.0.1:8402/',
      reference: 'http://127.0.0.1:8402/docs',
      operator: 'http://127.0.0.1:8404/',
      Panel: 'http://127.0.0.1:8402/panel/',
    });
  });
});
