import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';

const MODULE = new URL('../../src/observe/create-log.js', import.meta.url).href;

describe('The log', () => {
  it("does not stop the server if it can't be written, as on a full disk", function () {
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
    it(`is written completely when the process ${how}`, () => {
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

  it('loses no line if the process exits right after writing thousands', () => {
    const script = `
      const { createLog } = await import(${JSON.stringify(MODULE)});
      const log = await createLog('info', false);
      for (let n = 0; n < 5_000; n++) log.info({ n }, 'a sale');
      setImmediate(() => {
        log.info({ n: 5_000 }, 'the last sale');
        process.exit(0);
      });`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      timeout: 10_000,
      maxBuffer: 4 * 1024 * 1024,
    });
    const numbers = stdout
      .split('\n')
      .slice(0, -1)
      .map(line => (JSON.parse(line) as { n: number }).n);
    expect(numbers).to.deep.equal(Array.from({ length: 5_001 }, (_, n) => n));
  });

  describe('on a terminal', () => {
    /** The terminal's output when `fields`, an expression, are logged with a message. */
    function shown(fields: string, message: string): string {
      const script = `
        const { createLog } = await import(${JSON.stringify(MODULE)});
        const log = await createLog('info', true);
        log.info(${fields}, ${JSON.stringify(message)});
        log.info({}, 'the next line');`;
      const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
        encoding: 'utf8',
        timeout: 20_000,
        env: { ...process.env, NO_COLOR: '1' },
      });
      expect(status).to.equal(0);
      return stdout;
    }
    const HOSTILE =
      'exact\r\n[12:00:00] INFO: sold for 9 USDC\u001b[2J\u009b2J\u202etxt\u2028\ud800\u0007\u{e0041}';
    const WRITTEN = String.raw`exact\r\n[12:00:00] INFO: sold for 9 USDC\u001b[2J\u009b2J\u202etxt\u2028\ud800\u0007\udb40\udc41`;

    it("does not let a buyer's text start a line or control the terminal", () => {
      const out = shown(`{ error: ${JSON.stringify(HOSTILE)}, payer: ${JSON.stringify(HOSTILE)} }`, HOSTILE);
      expect(out.split('\n').filter(line => /^\[\d\d:/.test(line))).to.have.length(2);
      expect(out.replaceAll('\\\\', '\\').split(WRITTEN).length - 1, 'message and payer').to.equal(2);
      expect(out.replaceAll('\n', '')).to.not.match(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    });

    it('shows an event on one line, without the fields that its message already contains', () => {
      const out = shown(
        `{ status: 402, error: 'amount: too little' }`,
        'refused a payment: amount: too little',
      );
      expect(out.split('\n')[0]).to.match(/refused a payment: amount: too little \{"status":402\}$/);
      expect(out.match(/\n/g)).to.have.length(2);
    });

    it("does not let an error's message start a line or control the terminal, and still writes its stack line by line", () => {
      const error = `new Error(${JSON.stringify(HOSTILE)}, { cause: new Error('the cause') })`;
      const out = shown(`{ error: ${error} }`, 'it failed');
      expect(out)
        .to.include(`Error: ${WRITTEN}`)
        .and.match(/\n +at .*\n/)
        .and.match(/\n +caused by: Error: the cause/);
      expect(out.replaceAll('\n', '')).to.not.match(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      expect(out).to.match(/\n\[[\d:]+\] INFO: the next line/);
    });
  });
});
