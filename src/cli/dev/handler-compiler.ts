import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import type TypeScript from 'typescript';
import { BuildFault, compilerOf } from '../build/shop-compilers.js';
import type { Changes } from './changed-files.js';

type Compiler = typeof TypeScript;
type Builder = TypeScript.EmitAndSemanticDiagnosticsBuilderProgram;

const MAX_FAULTS = 20;

/**
 * Compiles the handlers and the tests of a shop with the TypeScript that is installed there, and keeps its state between builds, so that
 * later builds check only what a change affects.
 */
export class HandlerCompiler {
  readonly #folder: string;
  readonly #ts: Compiler;
  readonly #sources = new Map<string, TypeScript.SourceFile>();
  #builder: Builder | undefined;
  #roots = '';

  private constructor(folder: string, ts: Compiler) {
    this.#folder = folder;
    this.#ts = ts;
  }

  /** @throws BuildFault if no such compiler is installed */
  static async load(folder: string): Promise<HandlerCompiler> {
    const { default: ts } = await compilerOf<{ default: Compiler }>(folder, 'typescript');
    if (typeof ts?.createEmitAndSemanticDiagnosticsBuilderProgram === 'function')
      return new HandlerCompiler(folder, ts);
    throw new BuildFault(
      'The package typescript that is installed here can only be run as a command, but coinslot dev needs its API: ' +
        'npm install --save-dev typescript@5',
    );
  }

  /**
   * @returns the compiled files that changed since the last time
   * @throws BuildFault that lists all compile errors, each with file and line. The next call then looks up all modules again
   */
  compile(): Changes {
    const ts = this.#ts;
    const { fileNames, options, projectReferences, errors } = this.#configuration();
    const roots = JSON.stringify(fileNames);
    const host = this.#host(options, roots !== this.#roots);
    this.#builder = ts.createEmitAndSemanticDiagnosticsBuilderProgram(
      fileNames,
      options,
      host,
      this.#builder ?? ts.readBuilderProgram(options, host),
      errors,
      projectReferences,
    );
    const faults = this.#faults(this.#builder);
    // Modules that could not be found are looked up again.
    this.#roots = faults.length > 0 ? '' : roots;
    if (faults.length > 0) throw new BuildFault(faults.join('\n'));
    const compiled = new Map<string, string>();
    this.#builder.emit(undefined, (file, text) => void compiled.set(file, text));
    return compiled;
  }

  #configuration(): TypeScript.ParsedCommandLine {
    const ts = this.#ts;
    const file = join(this.#folder, 'tsconfig.json');
    if (!existsSync(file))
      throw new BuildFault(
        `There is no tsconfig.json in ${this.#folder}; it is needed to compile handlers/.`,
      );
    const failed = (diagnostic: TypeScript.Diagnostic): void => {
      throw new BuildFault(this.#sentence(diagnostic));
    };
    const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: failed };
    const parsed = ts.getParsedCommandLineOfConfigFile(file, { noEmitOnError: true }, host);
    if (!parsed) throw new BuildFault(`${file} can't be read.`);
    return parsed;
  }

  /** Parses a file only if its text has changed. */
  #host(options: TypeScript.CompilerOptions, lookAgain: boolean): TypeScript.CompilerHost {
    const host = this.#ts.createIncrementalCompilerHost(options);
    const parse = host.getSourceFile.bind(host);
    host.getSourceFile = (file, ...rest) => {
      const known = this.#sources.get(file);
      if (known && known.text === host.readFile(file)) return known;
      const parsed = parse(file, ...rest);
      if (parsed) this.#sources.set(file, parsed);
      else this.#sources.delete(file);
      return parsed;
    };
    host.hasInvalidatedResolutions = () => lookAgain;
    return host;
  }

  #faults(builder: Builder): string[] {
    const found = [
      ...builder.getConfigFileParsingDiagnostics(),
      ...builder.getOptionsDiagnostics(),
      ...builder.getSyntacticDiagnostics(),
      ...builder.getGlobalDiagnostics(),
      ...builder.getSemanticDiagnostics(),
    ].filter(({ category }) => category === this.#ts.DiagnosticCategory.Error);
    const sentences = found.slice(0, MAX_FAULTS).map(each => this.#sentence(each));
    return found.length > MAX_FAULTS ? [...sentences, `and ${found.length - MAX_FAULTS} more`] : sentences;
  }

  /** A fault as `handlers/quote.ts:12:5 Type 'string' is not assignable to type 'number'.`, which terminals turn into a link. */
  #sentence({ file, start = 0, messageText }: TypeScript.Diagnostic): string {
    const message = this.#ts.flattenDiagnosticMessageText(messageText, '\n  ');
    if (!file) return message;
    const { line, character } = file.getLineAndCharacterOfPosition(start);
    return `${relative(this.#folder, file.fileName)}:${line + 1}:${character + 1} ${message}`;
  }
}
