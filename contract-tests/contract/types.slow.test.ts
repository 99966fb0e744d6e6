import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const HANDLERS = `${ROOT}handlers/index.ts`;

const IMPORT =
  "import type { operations } from '../generated/openapi.js';\nimport type { Handler } from '../src/contract/operation.js';\nexport type Used = Handler<operations['summarize']>;\n";
const summarize = (reply: string): string =>
  `${IMPORT}export const handler: Handler<operations['summarize']> = async ({ body }) => { void body; return ${reply}; };`;
const speak = (reply: string): string =>
  `${IMPORT}export const handler: Handler<operations['textToSpeech']> = async ({ body }) => { void body.voice_id; return ${reply}; };`;
const WAV_HEADERS = "headers: { 'X-TTS-Voice-Id': 'v', 'X-TTS-Format': 'f' }";

const index = readFileSync(HANDLERS, 'utf8');
/** The real table of handlers with one line changed. */
const indexWith = (from: string, to: string): string => {
  if (!index.includes(from)) throw new Error(`handlers/index.ts has no '${from}'`);
  return index.replace(from, to);
};

/** What must and must not compile, with part of the compiler's message. */
const CASES: Record<string, { code: string; complaint?: RegExp }> = {
  'the table of handlers as it is': { code: index },
  'a table with a handler under another name': {
    code: indexWith('  solMintInfo,', '  solTokenBrief2: solMintInfo,'),
    complaint: /solTokenBrief2/,
  },
  "a table with another operation's handler": {
    code: indexWith('  solMintInfo,', '  solMintInfo: summarize,'),
    complaint: /not assignable/,
  },
  'a right answer': { code: summarize('{ status: 200, body: { summary: body.text } }') },
  'a declared error': { code: summarize("{ status: 400, body: { error: 'no' } }") },
  'an answer without a required field': {
    code: summarize('{ status: 200, body: { mock: true, text: body.text } as { mock: boolean } }'),
    complaint: /'summary' is missing/,
  },
  'an answer with a field of another type': {
    code: summarize('{ status: 200, body: { summary: body.text.length } }'),
    complaint: /'number' is not assignable to type 'string'/,
  },
  'an error body with status 200': {
    code: summarize('{ status: 200, body: { error: body.text } }'),
    complaint: /not assignable|does not exist/,
  },
  'an undeclared status': {
    code: summarize('{ status: 404, body: { error: body.text } }'),
    complaint: /404/,
  },
  "a 402, which is the charge's business": {
    code: summarize('{ status: 402, body: { x402Version: 2, accepts: [] } }'),
    complaint: /402/,
  },
  'a 503 without Retry-After': {
    code: summarize('{ status: 503, body: { error: body.text } }'),
    complaint: /headers/,
  },
  'a 503 with Retry-After': {
    code: summarize("{ status: 503, body: { error: body.text }, headers: { 'Retry-After': '5' } }"),
  },
  'a field of the request that the contract does not have': {
    code: summarize('{ status: 200, body: { summary: body.title } }'),
    complaint: /'title' does not exist/,
  },
  'speech with its headers': { code: speak(`{ status: 200, body: new Uint8Array(1), ${WAV_HEADERS} }`) },
  'speech without its headers': {
    code: speak('{ status: 200, body: new Uint8Array(1) }'),
    complaint: /headers/,
  },
  'speech as JSON': {
    code: speak(`{ status: 200, body: { wav: '' }, ${WAV_HEADERS} }`),
    complaint: /not assignable|does not exist/,
  },
};

describe('The compiler', function () {
  this.timeout(120_000);
  const files = new Map(
    Object.values(CASES).map(({ code }, number) => [`${ROOT}handlers/case${number}.ts`, code]),
  );
  const complaints = new Map<string, string>();

  before(() => {
    const { config } = ts.readConfigFile(`${ROOT}tsconfig.json`, name => ts.sys.readFile(name)) as {
      config: object;
    };
    const parsed = ts.parseJsonConfigFileContent({ ...config, include: [], files: [HANDLERS] }, ts.sys, ROOT);
    const options: ts.CompilerOptions = {
      ...parsed.options,
      noEmit: true,
      incremental: false,
      types: ['node'],
    };
    delete options.tsBuildInfoFile;
    const host: ts.CompilerHost = {
      ...ts.createCompilerHost(options),
      fileExists: name => files.has(name) || ts.sys.fileExists(name),
      readFile: name => files.get(name) ?? ts.sys.readFile(name),
      getSourceFile: (name, version) => {
        const text = files.get(name) ?? ts.sys.readFile(name);
        return text === undefined ? undefined : ts.createSourceFile(name, text, version);
      },
    };
    const program = ts.createProgram([...files.keys()], options, host);
    for (const name of files.keys()) {
      const found = ts.getPreEmitDiagnostics(program, program.getSourceFile(name));
      complaints.set(
        name,
        found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')).join('\n'),
      );
    }
  });

  for (const [number, [name, { complaint }]] of Object.entries(CASES).entries()) {
    it(`${complaint ? 'rejects' : 'accepts'} ${name}`, () => {
      const said = complaints.get([...files.keys()][number]!);
      if (complaint) expect(said).to.match(complaint);
      else expect(said).to.equal('');
    });
  }
});
