import type { ValidateFunction } from 'ajv';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import { absolute } from './ajv.js';
import type { RequestBody } from './contract.js';
import { valueFault } from './fault-words.js';
import { formTexts } from './form-body.js';
import type { Json } from './json.js';
import { copied, misreadParameter } from './parameter-texts.js';
import { QueryFault } from './query-styles.js';

/** What a form holds, or what is wrong with it. */
type Read = { ok: true; value: object | undefined } | { ok: false; error: string };

/** Reads forms, which openapi-backend would take for JSON: texts become values by the types of their schema, as those of a query do. */
export class FormReader {
  readonly #ajv: Ajv2020;
  readonly #checks = new WeakMap<Json, ValidateFunction>();

  /** @param ajv coerces types and sets defaults */
  constructor(ajv: Ajv2020) {
    this.#ajv = ajv;
  }

  /** Compiles the validator of a form. */
  check({ schema }: RequestBody): ValidateFunction {
    const check = this.#checks.get(schema) ?? this.#ajv.compile(absolute(schema));
    this.#checks.set(schema, check);
    return check;
  }

  /** @param sent the text of a form; anything else is none */
  read(request: RequestBody, sent: unknown): Read {
    if (typeof sent !== 'string')
      return request.required ? { ok: false, error: 'the body is missing' } : { ok: true, value: undefined };
    try {
      const texts = formTexts(request.form ?? [], sent);
      const value = copied(texts);
      const check = this.check(request);
      const wrong = check(value) ? misreadParameter(texts, value) : valueFault(check.errors);
      return wrong === undefined ? { ok: true, value } : { ok: false, error: wrong };
    } catch (error) {
      if (error instanceof QueryFault) return { ok: false, error: error.message };
      throw error;
    }
  }
}
