import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readable } from '../../src/cli/terminal.js';

const COINSLOT = fileURLToPath(new URL('../../src/cli/coinslot.js', import.meta.url));
/** A window title, colours, a cleared screen, C1's CSI, and a right-to-left override. */
const HOSTILE = '\u001b]0;owned\u0007\u001b[31m\u001b[2J\u009b31m \u202egnp.exe\u2066\u200f\u061c\r\u2028';
// eslint-disable-next-line no-control-regex -- these are the ones that a terminal obeys
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

describe('the output of a command', () => {
  it('has no control characters for a terminal, and keeps all other characters unchanged', () => {
    expect(OBEYED.test(readable(HOSTILE))).to.equal(false);
    expect(readable('\u001b[31m')).to.equal('\\u001b[31m');
    const harmless = 'Tab\tline\nÄ 日本 🙂 שלום';
    expect(readable(harmless)).to.equal(harmless);
  });

  it('can still be parsed to the same value if it is JSON', () => {
    expect(JSON.parse(readable(JSON.stringify({ error: HOSTILE })))).to.deep.equal({ error: HOSTILE });
  });

  it('is harmless even if the shop is hostile: buy and conformance', async function () {
    this.timeout(60_000);
    const shop = createServer((_request, response) => {
      response.writeHead(402, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: HOSTILE, accepts: [{ scheme: HOSTILE, network: HOSTILE }] }));
    });
    await new Promise<void>(done => shop.listen(0, '127.0.0.1', done));
    const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;
    try {
      for (const args of [
        ['conformance', url],
        ['buy', HOSTILE.replaceAll('\u0000', ''), '{}', '--url', url],
      ]) {
        const ran = await promisify(execFile)(process.execPath, [COINSLOT, ...args]).catch(
          (error: unknown) => error as { stdout: string; stderr: string },
        );
        expect(ran.stdout + ran.stderr, args[0]).not.to.equal('');
        expect(OBEYED.test(ran.stdout + ran.stderr), `${args[0]}: ${JSON.stringify(ran)}`).to.equal(false);
      }
    } finally {
      shop.close().closeAllConnections();
    }
  });
});
