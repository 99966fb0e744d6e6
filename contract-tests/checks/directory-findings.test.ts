import { expect } from 'chai';
import { directoryFindings } from '../../src/checks/directory-findings.js';
import type { HeardVerdict } from '../../src/facilitators/listing-verdicts.js';

const AT = Date.UTC(2026, 5, 30, 15, 20);
const verdict = (change: Partial<HeardVerdict>): HeardVerdict => ({
  facilitator: 'pay.example',
  operation: 'summarize',
  transport: 'http',
  status: 'success',
  at: AT,
  ...change,
});

describe('the check of directories', () => {
  it('reports no error if a directory has reported nothing, because it may not have seen a sale', () => {
    expect(directoryFindings(['pay.example'], [verdict({ facilitator: 'other.example' })])).to.deep.equal([
      {
        level: 'ok',
        subject: 'directories',
        found: 'pay.example has not yet reported a listing; each sale through it requests one',
      },
    ]);
  });

  it('names what is listed, and what is not and why', () => {
    const heard = [
      verdict({ transport: 'mcp', status: 'processing' }),
      verdict({}),
      verdict({ operation: 'textToSpeech', status: 'rejected', why: 'info failed schema validation' }),
    ];
    expect(directoryFindings(['pay.example'], heard)).to.deep.equal([
      {
        level: 'ok',
        subject: 'directories',
        found: 'pay.example lists summarize (http), summarize (mcp)',
      },
      {
        level: 'warning',
        subject: 'directories',
        found:
          'pay.example does not list textToSpeech (http), since 2026-06-30T15:20:00.000Z: info failed schema validation',
        todo: 'correct its descriptions, schemas or examples in openapi.yaml, or set x-listed: false',
      },
    ]);
  });

  it('warns of a facilitator that refuses a request for a listing', () => {
    const [finding] = directoryFindings(['pay.example'], [verdict({ status: 'refused', why: 'status 400' })]);
    expect(finding).to.include({ level: 'warning' });
    expect(finding?.found).to.contain('refuses requests that ask to be listed');
  });
});
