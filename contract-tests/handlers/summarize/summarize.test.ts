import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { extractSummary } from '../../../handlers/summarize/extract.js';
import { summarize, summarizeBy } from '../../../handlers/summarize/summarize.js';
import type { Summarizer } from '../../../handlers/summarize/summarizer.js';
import { settingFaults } from '../../support/setting-faults.js';

const CONTRACT = new URL('../../../../openapi.yaml', import.meta.url);

describe('An answer of summarize', () => {
  for (const method of ['extractive', 'model', 'described', 'whole'] as const)
    it(`says that its method is ${method}, as the contract declares`, async () => {
      const summarizer = {
        mock: false,
        summarize: async () => ({ summary: 'A text.', method }),
      } as unknown as Summarizer;
      const call = { body: { text: 'A text.' }, signal: new AbortController().signal, caller: undefined };
      const answer = await summarizeBy(summarizer)(call as never);
      expect(answer).to.deep.equal({ status: 200, body: { summary: 'A text.', method } });
      const { components } = parse(readFileSync(CONTRACT, 'utf8')) as {
        components: { schemas: { Summary: { properties: { method: { enum: string[] } } } } };
      };
      expect(components.schemas.Summary.properties.method.enum).to.include(method);
    });
});

describe('100 000 characters of noise', () => {
  for (const [name, alphabet] of [
    ['printed characters', Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index))],
    ['ideographs', Array.from({ length: 5_000 }, (_, index) => String.fromCharCode(0x4e00 + index))],
    ['one letter', ['a']],
  ] as const)
    it(`of ${name} get a description instead of sentences from the text`, () => {
      let state = 7;
      const next = (): string => {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
        return alphabet[state % alphabet.length] ?? '';
      };
      const text = Array.from({ length: 100_000 }, next).join('');
      const { sentences, method } = extractSummary(text) ?? { sentences: [] };
      expect(method).to.equal('described');
      expect(sentences.join()).to.match(/^A text of ≈ \d+ characters \(/);
    });
});

describe('The settings of summarize', () => {
  for (const env of [
    { SUMMARIZER_URL: 'http://s/v1' },
    { SUMMARIZER_MODEL: 'm' },
    { SUMMARIZER_URL: 'nowhere', SUMMARIZER_MODEL: 'm' },
  ])
    it(`are refused if one is missing or wrong: ${JSON.stringify(env)}`, () => {
      const [fault] = settingFaults(summarize, env as Record<string, string>);
      expect(fault).to.match(/^SUMMARIZER_(URL|MODEL)/);
    });

  it('may both be unset, or both be set', () => {
    expect(settingFaults(summarize, {})).to.deep.equal([]);
    expect(settingFaults(summarize, { SUMMARIZER_URL: 'http://s/v1', SUMMARIZER_MODEL: 'm' })).to.deep.equal(
      [],
    );
  });
});
