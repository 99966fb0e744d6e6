import type { ValidateFunction } from 'ajv';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import { absolute } from './ajv.js';
import { valueFault } from './fault-words.js';
import { formTexts } from './form-body.js';
import type { Json } from './json.js';
import { copied, misreadParameter } from './parameter-texts.js';
import { QueryFault, readQuery } from './query-styles.js';
import { isObject } from './references.js';
import { formsOf, type BodyForm, type RequestBody } from './request-body.js';
import { partsIn, type SentBody } from './sent-body.js';
import { dataUrl, type SentFile } from './sent-file.js';

/** The value of a valid body, and its type unless that is the operation's first type; or what is wrong with the body. */
export type CheckedBody = { ok: true; value: unknown; type?: string } | { ok: false; error: string };

type Read = { ok: true; value: unknown } | { ok: false; error: string };

/**
 * Checks bodies of all types, and sets defaults. Values in JSON are not coerced. The strings of a form are
 * converted to the types that their schema names, like the strings of a query.
 */
export class BodyCheck {
  readonly #json: Ajv2020;
  readonly #texts: Ajv2020;
  readonly #checks = new WeakMap<BodyForm, ValidateFunction>();

  /** @param json sets defaults; `texts` also coerces types */
  constructor(json: Ajv2020, texts: Ajv2020) {
    this.#json = json;
    this.#texts = texts;
  }

  /** Compiles the validators for a body. */
  warm(request: RequestBody): void {
    for (const form of formsOf(request)) this.#checkOf(form);
  }

  /** @param sent undefined if there is no body */
  read(request: RequestBody, sent: SentBody | undefined): CheckedBody {
    if (!sent)
      return request.required ? { ok: false, error: 'the body is missing' } : { ok: true, value: undefined };
    const read = this.#read(sent);
    if (!read.ok || sent.type === request.mimeType) return read;
    return { ...read, type: sent.type };
  }

  #checkOf(form: BodyForm): ValidateFunction {
    const coerced = form.kind === 'form' || form.kind === 'multipart';
    const check =
      this.#checks.get(form) ?? (coerced ? this.#texts : this.#json).compile(absolute(form.schema));
    this.#checks.set(form, check);
    return check;
  }

  #read(sent: SentBody): Read {
    const { form, value } = sent;
    try {
      if (form.kind === 'form') return this.#readForm(form, readQuery(String(value)), {});
      if (form.kind === 'multipart') return this.#readMultipart(sent);
      if (form.kind === 'binary') return this.#readBytes(form, value as Buffer);
    } catch (error) {
      if (error instanceof QueryFault) return { ok: false, error: error.message };
      throw error;
    }
    return this.#checked(form, value);
  }

  #checked(form: BodyForm, value: unknown): Read {
    if (form.object && !isObject(value)) return { ok: false, error: 'the body must be an object' };
    const check = this.#checkOf(form);
    return check(value) ? { ok: true, value } : { ok: false, error: valueFault(check.errors) };
  }

  /** minLength and maxLength count bytes: checked on a string with one character per byte. */
  #readBytes(form: BodyForm, bytes: Buffer): Read {
    const checked = this.#checked(form, bytes.toString('latin1'));
    return checked.ok ? { ok: true, value: bytes.toString('base64') } : checked;
  }

  /** @param others fields that are not strings */
  #readForm(form: BodyForm, sent: URLSearchParams, others: Json): Read {
    const texts = formTexts(form.form ?? [], sent);
    const value: Json = { ...copied(texts), ...others };
    const check = this.#checkOf(form);
    const wrong = check(value) ? misreadParameter(texts, value) : valueFault(check.errors);
    return wrong === undefined ? { ok: true, value } : { ok: false, error: wrong };
  }

  #readMultipart(sent: SentBody): Read {
    const { form } = sent;
    const texts = new URLSearchParams();
    const found = new Map<string, unknown[]>();
    const files = new Map<string, SentFile[]>();
    for (const part of partsIn(sent)) {
      const { name } = part;
      const as = form.form?.find(field => field.name === name)?.as;
      const is = 'file' in part ? 'file' : 'json' in part ? 'json' : undefined;
      if (is !== as) throw new QueryFault(WRONG_PART[as ?? 'text'](name));
      if ('text' in part) texts.append(name, part.text);
      if ('json' in part) add(found, name, part.json);
      if ('file' in part) {
        add(files, name, part.file);
        add(found, name, part.file.bytes.toString('latin1'));
      }
    }
    const listed = (all: Map<string, unknown[]>): [string, unknown][] =>
      [...all].map(([name, items]) => [name, this.#oneOrAll(form, name, items)]);
    const read = this.#readForm(form, texts, Object.fromEntries(listed(found)));
    if (!read.ok) return read;
    const urls = [...files].map(([name, all]): [string, unknown] => [
      name,
      this.#oneOrAll(form, name, all.map(dataUrl)),
    ]);
    return { ok: true, value: { ...(read.value as Json), ...Object.fromEntries(urls) } };
  }

  #oneOrAll({ form = [] }: BodyForm, name: string, items: unknown[]): unknown {
    if (form.find(field => field.name === name)?.list) return items;
    if (items.length > 1) throw new QueryFault(`${name} must be sent only once`);
    return items[0];
  }
}

const WRONG_PART = {
  file: (name: string) => `${name} must be a file`,
  json: (name: string) => `${name} must be JSON`,
  text: (name: string) => `${name} must be text, not a file`,
};

function add<T>(all: Map<string, T[]>, name: string, item: T): void {
  const known = all.get(name);
  if (known) known.push(item);
  else all.set(name, [item]);
}
