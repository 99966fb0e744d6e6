import { readFileSync } from 'node:fs';
import ts from 'typescript';

const TESTS = new URL('../../../contract-tests/', import.meta.url);

/** The titles of suites and tests in a file of contract-tests/. Template strings are returned as in the source. */
export function titlesOf(file: string): string[] {
  const text = readFileSync(new URL(file, TESTS), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
  const titles: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && /^(it|describe|context)\b/.test(node.expression.getText(source))) {
      const [title] = node.arguments;
      if (title && ts.isStringLiteralLike(title)) titles.push(title.text);
      else if (title) titles.push(title.getText(source).slice(1, -1));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return titles;
}
