import { setImmediate as nextTurn } from 'node:timers/promises';

/** Runs of this many characters that a secret and a text have in common are removed from the text. */
const RUN = 6;
/** A shorter value is a word such as `1` or `eu`, which is common in text. */
const MIN_CONCEALED_LENGTH = 4;
/** A shorter value may occur in an answer by chance. */
const MIN_FOUND_LENGTH = 8;
const HIDDEN = '…';
/** Up to this many bytes are searched in less than a millisecond. */
const PIECE_BYTES = 1024 * 1024;

/**
 * Keys and tokens from the environment, in every form in which another service may repeat them: as they are, percent-encoded, in base64
 * (also within a longer text), in hexadecimal, as a JSON string, and decoded if they are base64 themselves.
 */
export class Secrets {
  readonly #whole: readonly Buffer[];
  readonly #short: readonly string[];
  /** In lower case. */
  readonly #runs: ReadonlySet<string>;

  constructor(values: Iterable<string>) {
    const all = [...new Set([...values].flatMap(formsOf))].filter(
      form => form.length >= MIN_CONCEALED_LENGTH,
    );
    this.#whole = all.filter(form => form.length >= MIN_FOUND_LENGTH).map(form => Buffer.from(form));
    this.#short = all.filter(form => form.length < RUN).map(form => form.toLowerCase());
    this.#runs = new Set(all.flatMap(form => runsOf(form.toLowerCase())));
  }

  /** The text without the secrets and without parts of them of at least 6 characters, in upper or lower case. */
  conceal(text: string): string {
    const lower = text.toLowerCase();
    // A few letters change their length in lower case. A text that contains one is hidden completely.
    if (lower.length !== text.length) return HIDDEN;
    const hidden = new Uint8Array(text.length);
    for (let at = 0; at + RUN <= text.length; at++)
      if (this.#runs.has(lower.slice(at, at + RUN))) hidden.fill(1, at, at + RUN);
    for (const short of this.#short)
      for (let at = lower.indexOf(short); at >= 0; at = lower.indexOf(short, at + 1))
        hidden.fill(1, at, at + short.length);
    let shown = '';
    for (let at = 0; at < text.length; at++) {
      if (!hidden[at]) shown += text[at];
      else if (!hidden[at - 1]) shown += HIDDEN;
    }
    return shown;
  }

  /** Whether there are secrets long enough for `foundIn`. */
  get some(): boolean {
    return this.#whole.length > 0;
  }

  /**
   * Whether the bytes contain a whole secret of at least 8 characters in one of its forms. Searches in steps, so that other work can run in
   * between.
   */
  async foundIn(bytes: Buffer): Promise<boolean> {
    for (const form of this.#whole) {
      if (bytes.includes(form)) return true;
      if (bytes.length > PIECE_BYTES) await nextTurn();
    }
    return false;
  }
}

function formsOf(value: string): string[] {
  // `Bearer abc` holds the secret `abc`, and `user:password` two.
  const parts = [value, ...value.split(/[\s:,;=]+/)].filter(part => part.length >= MIN_CONCEALED_LENGTH);
  return parts.flatMap(part => [
    part,
    encodeURIComponent(part),
    JSON.stringify(part).slice(1, -1),
    JSON.stringify(part).slice(1, -1).replaceAll('/', '\\/'),
    Buffer.from(part).toString('hex'),
    Buffer.from(part).toString('hex').toUpperCase(),
    ...base64Forms(Buffer.from(part)),
    ...decodedForms(part),
  ]);
}

/** The base64 forms that the value has inside a longer encoded text, without the characters at its ends that depend on the neighbouring text. */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap(offset => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replaceAll('=', '');
    const first = offset === 0 ? 0 : offset + 1;
    const last = (offset + bytes.length) % 3 === 0 ? encoded.length : encoded.length - 1;
    const inner = encoded.slice(first, last);
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

/** The decoded text of a base64 value, if it is text; a user and a password, for example. */
function decodedForms(value: string): string[] {
  if (!/^[\w+/-]{8,}={0,2}$/.test(value)) return [];
  const text = Buffer.from(value, 'base64').toString('utf8');
  return /^[ -~]+$/.test(text) ? [text, ...text.split(/[\s:,;=]+/)] : [];
}

function runsOf(form: string): string[] {
  const runs: string[] = [];
  for (let at = 0; at + RUN <= form.length; at++) runs.push(form.slice(at, at + RUN));
  return runs;
}
