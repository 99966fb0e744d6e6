import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';

const MODULE = new URL('../../src/observe/create-log.js', import.meta.url).href;

describe('The log', () => {
  it('that cannot be written, as on a full disk, does not end the server', function () {
    if (!existsSync('/dev/full')) return this.skip();
    const script = `
      const { createLog } = await import(${JSON.stringify(MODULE)});
      const log = await createLog('info', false);
      for (let n = 0; n < 3; n++) {
        log.info({ n }, 'a sale');
        await new Promise(resolve => setTimeout(resolve, 50));
      }
      process.stderr.write('still here');
      process.exit(0);`;
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
      encoding: 'utf8',
      timeout: 10_000,
    });
    expect(stderr).to.equal('still here');
    expect(status).to.equal(0);
  });

  for (const [how, end] of [
    ['exits', 'process.exit(1)'],
    ['crashes', "throw new Error('a bug')"],
  ] as const)
    it(`that was not written yet is written when the process ${how}`, () => {
      const script = `
        const { createLog } = await import(${JSON.stringify(MODULE)});
        (await createLog('info', false)).info({ n: 1 }, 'a sale');
        ${end};`;
      const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
        encoding: 'utf8',
        timeout: 10_000,
      });
      expect(status).to.equal(1);
      expect(JSON.parse(stdout)).to.include({ n: 1, msg: 'a sale' });
    });
});
