import { setMaxListeners } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect } from 'chai';
import fc from 'fast-check';
import { UpstreamFailure } from '../../../src/net/failure.js';
import { createEmbeddedSummarizer } from '../../../handlers/summarize/embedded.js';
import { extractSummary as extract } from '../../../handlers/summarize/extract.js';
import { toBlocks } from '../../../handlers/summarize/plain-text.js';
import { readingOf } from '../../../handlers/summarize/sentences.js';
import type { Summarizer } from '../../../handlers/summarize/summarizer.js';

const TEXTS = new URL('../../../../contract-tests/fixtures/texts/', import.meta.url);
const text = (name: string): Promise<string> => readFile(new URL(name, TEXTS), 'utf8');
const normalised = (input: string): string =>
  toBlocks(input)
    .map(block => block.text)
    .join(' ');
const extractSummary = (input: string): string[] | null => extract(input)?.sentences ?? null;
const splitSentences = (input: string): string[] => readingOf(input).sentencesOf(input);
const never = new AbortController().signal;
setMaxListeners(0, never);

/** Checks the form of a summary and, unless it describes the text, that each of its sentences is in the text. */
function checkInvariants(input: string, sentences: string[]): void {
  expect(sentences.length, 'number of sentences').to.be.within(1, 3);
  const described = extract(input)?.method === 'described';
  const whole = normalised(input);
  for (const sentence of sentences) {
    expect(sentence.trim(), 'no blank sentence').to.not.equal('');
    expect(sentence).to.not.match(/[\r\n\t]| {2}/);
    // There is no space between an ideographic full stop and a letter.
    expect(
      described || whole.replaceAll(' ', '').includes(sentence.replace(/[.。]$/u, '').replaceAll(' ', '')),
      `not found in the text: ${sentence}`,
    ).to.equal(true);
    expect(sentence, 'well-formed Unicode').to.not.match(/\p{Surrogate}/u);
  }
}

const failureOf = async (promise: Promise<unknown>): Promise<UpstreamFailure> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(UpstreamFailure);
  return error as UpstreamFailure;
};

describe('embedded summariser: its output', () => {
  it('quotes one to three sentences from every kind of text', async () => {
    const names = await readdir(TEXTS);
    expect(names.length).to.be.greaterThan(10);
    for (const name of names) {
      const input = await text(name);
      const sentences = extractSummary(input);
      expect(sentences, name).to.not.equal(null);
      checkInvariants(input, sentences ?? []);
      expect((sentences ?? []).join(' ').length, `${name} is cut down`).to.be.at.most(920);
    }
  });

  it('says what a news report is about, and keeps numbers and abbreviations whole', async () => {
    const summary = (extractSummary(await text('news.txt')) ?? []).join(' ');
    expect(summary).to.match(/council voted 9-4/);
    expect(summary).to.match(/\$3\.5 million project/);
  });

  it('gives the news in an e-mail, not its headers, greeting, signature or quoted question', async () => {
    const summary = (extractSummary(await text('mail.txt')) ?? []).join(' ');
    expect(summary).to.include('is postponed from 14 to 21 November');
    expect(summary).to.not.match(/From:|Message-ID|Hi all|Thanks|Head of Operations|wrote:|^>/);
  });

  it('ignores tags, scripts, styles and comments in HTML', async () => {
    const summary = (extractSummary(await text('page.html')) ?? []).join(' ');
    expect(summary).to.match(/More than 400 hives .* just 35 in 2015, and the city’s honey harvest/);
    expect(summary).to.not.match(/[<>]|Buy now|color|editor|All rights reserved|&nbsp;/);
    expect(extractSummary('Use List<String> where a < b, or mail <ann@example.org>.')).to.deep.equal([
      'Use List<String> where a < b, or mail <ann@example.org>.',
    ]);
    expect(
      extractSummary('The angle &Delta;&nbsp;is &frac12; of &#x3b1;, R&D says &unknown;.'),
    ).to.deep.equal(['The angle Δ is ½ of α, R&D says &unknown;.']);
    for (const open of ['<!--', '<script>', '<a x=">'])
      expect(
        extractSummary(`It begins with ${open} somewhere.\n\n<p>What follows is read.</p>`)?.join(' '),
      ).to.contain('What follows is read.');
  });

  it("removes markdown's list, heading and link marks", async () => {
    const summary = (extractSummary(await text('changelog.md')) ?? []).join(' ');
    expect(summary).to.match(/^Changes by version, .*Streaming uploads: files above 64 MB/);
    expect(summary).to.not.match(/\*\*|\]\(|^[-*#]| [*#] /);
  });

  it('says what a piece of source code defines', async () => {
    expect(extract(await text('code.txt'))?.method).to.equal('described');
  });

  it('never cuts a sentence, however long', async () => {
    for (const name of ['run-on.txt', 'legal.txt'])
      for (const sentence of extractSummary(await text(name)) ?? []) expect(sentence).to.not.match(/…/);
  });

  it('summarises languages that are written without spaces', async () => {
    expect(extractSummary(await text('cjk.txt'))?.[0]).to.match(/^北京市政府周二宣布.*。$/);
    expect(extractSummary(await text('thai.txt'))?.join(' ')).to.match(/^กรุงเทพมหานคร/);
  });

  it('finds nothing to summarise in blanks, markup and bare punctuation', () => {
    for (const input of [
      '',
      ' \n\t\u00a0',
      '<p> </p><!-- hello -->',
      '<script>alert("hello")</script>',
      '?! … ---',
      '&nbsp;\u200b',
      '\ud800',
    ]) {
      expect(extractSummary(input), JSON.stringify(input)).to.equal(null);
    }
  });
});

describe('sentence boundaries', () => {
  const cases: [string, string[]][] = [
    ['Dr. Smith met Mrs. Jones. They left.', ['Dr. Smith met Mrs. Jones.', 'They left.']],
    [
      'He lives in the U.S.A. and likes it. She lives in Kent. The end.',
      ['He lives in the U.S.A. and likes it.', 'She lives in Kent.', 'The end.'],
    ],
    ['It works, e.g. Firefox does. Pi is 3.14 or so.', ['It works, e.g. Firefox does.', 'Pi is 3.14 or so.']],
    [
      'Use v1.2.3 of foo.bar. See https://a.example/b.c?d=e&F=!G. Then stop.',
      ['Use v1.2.3 of foo.bar.', 'See https://a.example/b.c?d=e&F=!G.', 'Then stop.'],
    ],
    ['J. R. R. Tolkien wrote it. I agree.', ['J. R. R. Tolkien wrote it.', 'I agree.']],
    [
      'See Fig. 3 and No. 5 on p. 12. Then I will not.',
      ['See Fig. 3 and No. 5 on p. 12.', 'Then I will not.'],
    ],
    ['"Really?" he asked. "Yes!" she said.', ['"Really?" he asked.', '"Yes!" she said.']],
    ['1. Install it. 2. Run it.', ['1. Install it.', '2. Run it.']],
    [
      'Am 3. Oktober, z. B. in Bonn. Es kostet 5 Mio. Euro.',
      ['Am 3. Oktober, z. B. in Bonn.', 'Es kostet 5 Mio. Euro.'],
    ],
    [
      'Acme Inc. Chairman Bo spoke at 5 p.m. on Monday. The U.S. Army agreed.',
      ['Acme Inc. Chairman Bo spoke at 5 p.m. on Monday.', 'The U.S. Army agreed.'],
    ],
    [
      'call me?? its the flat. i moved out. dont tell mum!! ok bye',
      ['call me??', 'its the flat.', 'i moved out.', 'dont tell mum!!', 'ok bye'],
    ],
    [
      'It costs approx. five euros incl. tax etc. and so on... or not.',
      ['It costs approx. five euros incl. tax etc. and so on... or not.'],
    ],
    [
      'Read the file. <Name> is its name. (See above.) It ends.',
      ['Read the file.', '<Name> is its name.', '(See above.)', 'It ends.'],
    ],
    ['今天很好。明天呢？后天！', ['今天很好。', '明天呢？', '后天！']],
    ['Done (see below.) Next.', ['Done (see below.)', 'Next.']],
  ];
  for (const [input, expected] of cases) {
    it(`of ${JSON.stringify(input)}`, () => expect(splitSentences(input)).to.deep.equal(expected));
  }

  it('are the same if a sentence spans two of the windows in which text is segmented', () => {
    const long = Array.from(
      { length: 400 },
      (_, index) => `Sentence number ${index} costs 3.5 euros, says Dr. Ames.`,
    );
    expect(splitSentences(long.join(' '))).to.deep.equal(long);
  });
});

describe('embedded summariser: any input', () => {
  const word = fc.constantFrom(
    'alpha',
    'Dr.',
    'e.g.',
    '3.5',
    'v1.2.3',
    'beta,',
    'gamma.',
    'Delta!',
    'why?',
    '12,000',
    '\n',
    '\n\n',
    '- ',
    '> ',
    '<p>',
    '</p>',
    '&amp;',
    '😀',
    '北京。',
    '**',
    'https://x.example/a.b',
    '(',
    '"',
    '…',
    'U.S.A.',
    '\u0301',
    '\ud83d',
  );
  const soup = fc.array(fc.oneof(word, fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' })), {
    maxLength: 60,
  });

  it('gives the same answer every time: one to three sentences of the text, or null if the text says nothing', () => {
    fc.assert(
      fc.property(soup, fc.constantFrom(' ', ''), (parts, glue) => {
        const input = parts.join(glue);
        const sentences = extractSummary(input);
        if (sentences !== null) checkInvariants(input, sentences);
        else expect(normalised(input)).to.not.match(/[a-z0-9]/i);
        expect(extractSummary(input)).to.deep.equal(sentences);
      }),
      { numRuns: 300 },
    );
  });

  it('processes 100 000 characters of anything without a stall', () => {
    const units = [
      'a',
      '汉',
      '😀',
      '👨‍👩‍👧‍👦',
      '\u0301',
      ' ',
      '\n',
      'a\n',
      '<',
      '<a "',
      '<a x="> ',
      '<script>',
      '<!--',
      '[x](',
      '[',
      '**',
      '_a ',
      '> ',
      '- a\n',
      '| a ',
      'a; ',
      '1,000 ',
      '. ',
      'Dr. ',
      'A. ',
      '1. ',
      'Is it? ',
      'hello world ',
      '\ud83d',
      '&#',
      'กรุงเทพ ',
      'مرحبا بالعالم. ',
      'x = f(y);\n',
    ];
    for (const unit of units) {
      const input = unit.repeat(Math.ceil(100_000 / unit.length)).slice(0, 100_000);
      const started = performance.now();
      const sentences = extractSummary(input);
      // A quadratic step would take minutes; the limit leaves room for slow machines.
      expect(performance.now() - started, JSON.stringify(unit)).to.be.below(10_000);
      if (sentences !== null) checkInvariants(input, sentences);
    }
  }).timeout(120_000);
});

describe('embedded summariser: workers', () => {
  let summarizer: Summarizer;
  const long = Array.from({ length: 6_000 }, (_, i) => `Word${i % 977} of item ${i}.`)
    .join(' ')
    .slice(0, 100_000);

  before(() => {
    summarizer = createEmbeddedSummarizer({ threads: 1, maxQueue: 2 });
  });
  after(() => summarizer.close());

  it('answer like the function that runs in them, and are not marked as a mock', async () => {
    const input = await text('news.txt');
    expect(await summarizer.summarize(input, never)).to.deep.equal({
      summary: extractSummary(input)?.join(' '),
      method: 'extractive',
    });
    expect(summarizer.mock).to.equal(false);
  });

  it("reject text that says nothing as the caller's error", async () => {
    const failure = await failureOf(summarizer.summarize('<p>  </p>', never));
    expect(failure.kind).to.equal('invalid');
    expect(failure.message).to.match(/nothing to summarize.*send text/);
  });

  it('keep the main thread free while 100 000 characters are processed', async () => {
    await summarizer.summarize('Warm up.', never);
    const delay = monitorEventLoopDelay({ resolution: 2 });
    let turns = 0;
    const ticking = setInterval(() => (turns += 1), 2);
    delay.enable();
    const started = performance.now();
    await Promise.all([summarizer.summarize(long, never), summarizer.summarize(long, never)]);
    const took = performance.now() - started;
    delay.disable();
    clearInterval(ticking);
    expect(turns, 'turns of the event loop during the work').to.be.greaterThan(3);
    expect(delay.percentile(50) / 1e6, 'typical delay').to.be.below(took / 2);
  });

  it('refuse as busy when their queue is full, and recover', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => summarizer.summarize(long, never)),
    );
    const refused = results
      .filter(result => result.status === 'rejected')
      .map(result => result.reason as UpstreamFailure);
    expect(refused).to.have.length(5);
    for (const failure of refused) {
      expect(failure.kind).to.equal('unavailable');
      expect(failure.retryAfterSeconds).to.be.greaterThan(0);
    }
    expect((await summarizer.summarize('Still here.', never)).summary).to.equal('Still here.');
  });

  it('stop work whose caller left or whose time is up, and continue with the next', async () => {
    const running = failureOf(summarizer.summarize(long, AbortSignal.timeout(5)));
    const waiting = new AbortController();
    const queued = failureOf(summarizer.summarize(long, waiting.signal));
    waiting.abort();
    expect((await running).kind).to.equal('failed');
    expect((await queued).kind).to.equal('failed');
    expect((await summarizer.summarize('Next one please.', never)).summary).to.equal('Next one please.');
  });
});
