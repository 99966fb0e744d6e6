const SPACE = /[ \t\n\r]*/y;
const LITERAL = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
/**
 * Characters that do not stand for themselves in a JSON string: quotes, backslashes and control characters.
 */
const NOT_PLAIN = /["\\\u0000-\u001f]/g; // eslint-disable-line no-control-regex

/** What may come next, apart from a closing bracket. */
type Next = 'value' | 'name' | 'colon' | 'comma';

/**
 * Where a text stops being valid JSON. Lines and columns count from 1, as in an editor. Takes time linear
 * in the length.
 */
export function positionOfFault(text: string): { line: number; column: number } {
  const lines = text.slice(0, new Scan(text).fault()).split('\n');
  return { line: lines.length, column: [...(lines.at(-1) ?? '')].length + 1 };
}

class Scan {
  readonly #text: string;
  readonly #open: string[] = [];
  #at = 0;
  #next: Next = 'value';
  /** Nothing has followed the last opening bracket yet, so it may be closed. */
  #isFresh = false;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * The index of the first character that is not valid JSON, or the length of the text if it merely ends too
   * early.
   */
  fault(): number {
    this.#skip(SPACE);
    while (this.#at < this.#text.length && this.#step()) this.#skip(SPACE);
    return this.#at;
  }

  #step(): boolean {
    const sign = this.#text.charAt(this.#at);
    if (sign === '}' || sign === ']') return this.#close(sign);
    this.#isFresh = false;
    if (this.#next === 'value') return this.#value(sign);
    if (this.#next === 'name') return sign === '"' && this.#string('colon');
    const [wanted, after] = this.#next === 'colon' ? [':', 'value' as const] : [',', this.#member()];
    return sign === wanted && after !== undefined && this.#take(after);
  }

  #value(sign: string): boolean {
    if (sign === '"') return this.#string('comma');
    if (sign === '{' || sign === '[') {
      this.#open.push(sign);
      this.#isFresh = true;
      return this.#take(sign === '{' ? 'name' : 'value');
    }
    if (!this.#skip(LITERAL)) return false;
    this.#next = 'comma';
    return true;
  }

  #close(sign: string): boolean {
    const fits = this.#open.at(-1) === (sign === '}' ? '{' : '[');
    if (!fits || !(this.#isFresh || this.#next === 'comma')) return false;
    this.#open.pop();
    this.#isFresh = false;
    return this.#take('comma');
  }

  /** What follows a comma; undefined outside all brackets, where no comma is allowed. */
  #member(): Next | undefined {
    const inside = this.#open.at(-1);
    return inside === undefined ? undefined : inside === '{' ? 'name' : 'value';
  }

  #string(next: Next): boolean {
    this.#at++;
    for (;;) {
      NOT_PLAIN.lastIndex = this.#at;
      const found = NOT_PLAIN.exec(this.#text);
      this.#at = found?.index ?? this.#text.length;
      if (found?.[0] === '"') return this.#take(next);
      if (found?.[0] !== '\\' || !this.#skip(ESCAPE)) return false;
    }
  }

  #take(next: Next): true {
    this.#at++;
    this.#next = next;
    return true;
  }

  /** @returns whether anything was read */
  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const length = pattern.exec(this.#text)?.[0].length ?? 0;
    this.#at += length;
    return length > 0;
  }
}
