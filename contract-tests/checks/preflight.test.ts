import { expect } from 'chai';
import { ConfigFault } from '../../src/config/setting-reader.js';
import type { NetworkName } from '../../src/rails/solana/networks.js';
import { heed, runChecks, sentenceOf, type Check, type Finding } from '../../src/checks/preflight.js';
import { publicUrlCheck } from '../../src/checks/public-url-check.js';

const ok = (subject: string): Check => ({
  subject,
  look: async () => [{ level: 'ok', subject, found: 'as it should be' }],
});

describe('preflight', () => {
  it('runs all checks, and reports “not checked” for one that throws or does not end', async () => {
    const found = await runChecks(
      [
        ok('one'),
        { subject: 'thrown', look: () => Promise.reject(new Error('nobody answers')) },
        { subject: 'endless', look: () => new Promise(() => {}) },
        ok('two'),
      ],
      50,
    );
    expect(found.map(({ level, subject }) => `${level} ${subject}`)).to.deep.equal([
      'ok one',
      'warning thrown',
      'warning endless',
      'ok two',
    ]);
    expect(sentenceOf(found[1]!)).to.equal('thrown: not checked: nobody answers');
    expect(sentenceOf(found[2]!)).to.include('not checked: not done within 50 ms');
  });

  const error = (subject: string, fatal = false): Finding => ({
    level: 'error',
    subject,
    found: 'is wrong',
    todo: 'put it right',
    fatal,
  });

  /** What is logged, and the message of the error. */
  function heeded(findings: Finding[], isSandbox: boolean): { logged: string[]; fault: string | undefined } {
    const logged: string[] = [];
    const note = (level: string) => (_: object, message: string) => void logged.push(`${level} ${message}`);
    const log = { info: note('info'), warn: note('warn'), error: note('error') };
    try {
      heed(findings, { isSandbox, log });
      return { logged, fault: undefined };
    } catch (thrown) {
      expect(thrown).to.be.instanceOf(ConfigFault);
      return { logged, fault: (thrown as Error).message };
    }
  }

  it('prevents startup outside the sandbox on any error, and reports all errors', () => {
    const warning: Finding = { level: 'warning', subject: 'C', found: 'is odd' };
    const { logged, fault } = heeded([error('A'), warning, error('B')], false);
    expect(fault).to.equal('A: is wrong: put it right\nB: is wrong: put it right');
    expect(logged).to.deep.equal(['warn C: is odd']);
  });

  it('logs errors in the sandbox, and stops only if nothing could be offered', () => {
    const { logged, fault } = heeded([error('A')], true);
    expect(fault).to.equal(undefined);
    expect(logged).to.have.length(1);
    expect(logged[0]).to.match(/^error A: is wrong: put it right/);
    expect(heeded([error('A'), error('B', true)], true).fault).to.equal('B: is wrong: put it right');
  });

  const urls: [NetworkName, string, Finding['level']][] = [
    ['mainnet', 'https://api.example.com', 'ok'],
    ['mainnet', 'https://93.184.216.34:8443', 'ok'],
    ['mainnet', 'https://[2606:2800:220:1::1]', 'ok'],
    ['mainnet', 'http://api.example.com', 'error'],
    ['mainnet', 'https://shop', 'error'],
    ['mainnet', 'https://localhost.', 'error'],
    ['mainnet', 'https://shop.internal', 'error'],
    ['mainnet', 'https://127.0.0.1', 'error'],
    ['mainnet', 'https://192.168.1.10', 'error'],
    ['mainnet', 'https://[::1]', 'error'],
    ['mainnet', 'https://[fd00::1]', 'error'],
    ['devnet', 'http://localhost:8402', 'warning'],
    ['devnet', 'https://api.example.com', 'ok'],
    ['sandbox', 'http://127.0.0.1:8402', 'ok'],
  ];
  for (const [network, url, level] of urls)
    it(`PUBLIC_URL ${url} on ${network}: ${level}`, async () => {
      const [finding] = await runChecks([publicUrlCheck(url, network)]);
      expect(finding).to.include({ level, subject: 'PUBLIC_URL' });
    });

  it('reports an unreachable PUBLIC_URL only as a note', async () => {
    const of = async (reach: () => Promise<void>) =>
      (await runChecks([publicUrlCheck('https://api.example.com', 'mainnet', reach)]))[0];
    expect(await of(async () => {})).to.include({ level: 'ok', found: 'https://api.example.com answers' });
    expect(await of(() => Promise.reject(new Error('no route')))).to.include({ level: 'ok' });
  });
});
