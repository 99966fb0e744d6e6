import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Json } from '../../src/contract/json.js';
import { isObject, objectOf } from '../../src/contract/references.js';
import { until } from '../support/faults.js';
import { call, openWorld, post, receiptOf, signFor, type Answer, type World } from '../support/world.js';
import { SOLD } from '../support/sold.js';

/** A changed limit of a field, with a value that is just within it and one that is just outside. */
type Limit = {
  operation: string;
  path: string;
  field: string;
  keyword: string;
  limit: unknown;
  /** If undefined, the field is left out. */
  within: unknown;
  beyond?: unknown;
};
type Change = (schema: Json, name: string | undefined) => Omit<Limit, 'operation' | 'path' | 'field'>;

const HANDLERS = fileURLToPath(new URL('../../handlers', import.meta.url));
const FORBIDDEN = 'zz';
const PROSE = 'The harbour bridge will close for repairs on Monday. Ferries run every ten minutes. ';

/** Prose of this many characters. It contains two ship emojis, each of which has two UTF-16 units and must count as one character. */
function prose(length: number): string {
  const text = PROSE.repeat(Math.ceil(length / PROSE.length)).slice(0, length);
  return length < 20 ? text : `🚢 ${text.slice(2, -2)}🚢.`;
}

/**
 * How each keyword is changed. The limit of free text is raised; a field that names an existing thing (`name`) gets
 * exactly the length of that name.
 */
const CHANGES: Record<string, Change> = {
  minLength: ({ minLength }, name) => {
    const limit = name?.length ?? Number(minLength) + 1;
    const within = name ?? prose(limit);
    return { keyword: 'minLength', limit, within, beyond: within.slice(1) };
  },
  maxLength: ({ maxLength }, name) => {
    const limit = name?.length ?? Math.ceil(Number(maxLength) * 1.2);
    return {
      keyword: 'maxLength',
      limit,
      within: name ?? prose(limit),
      beyond: name === undefined ? prose(limit + 1) : `${name}a`,
    };
  },
  pattern: ({ pattern }, name = '') => ({
    keyword: 'pattern',
    limit: `^(?!${FORBIDDEN})${String(pattern).replace(/^\^/, '')}`,
    within: name,
    beyond: FORBIDDEN + name.slice(FORBIDDEN.length),
  }),
  minimum: ({ minimum }) => {
    const limit = Number(minimum) + 1;
    return { keyword: 'minimum', limit, within: limit, beyond: limit - 1 };
  },
  maximum: ({ maximum }) => {
    const limit = Number(maximum) + 10;
    return { keyword: 'maximum', limit, within: limit, beyond: limit + 1 };
  },
  default: ({ default: value }) => ({ keyword: 'default', limit: Number(value) + 2, within: undefined }),
};
/** Keywords that limit nothing. */
const NO_LIMITS = ['type', 'description', 'title', 'examples'];

/** Changes every limit in the bodies of paid operations. @param nameOf what a field names, if it names something that exists */
function changeAll(document: Json, nameOf: (field: string) => string | undefined): Limit[] {
  const changed: Limit[] = [];
  for (const [path, item] of Object.entries(objectOf(document.paths)))
    for (const operation of Object.values(objectOf(item)).filter(isObject)) {
      if (!('x-price' in operation)) continue;
      const { content } = objectOf(operation.requestBody);
      const { schema } = objectOf(objectOf(content)['application/json']);
      for (const [field, limits] of Object.entries(objectOf(objectOf(schema).properties))) {
        const before = { ...objectOf(limits) };
        for (const keyword of Object.keys(before).filter(each => !NO_LIMITS.includes(each))) {
          const change = CHANGES[keyword];
          if (!change) throw new Error(`${path} ${field}: this test does not know how to change ${keyword}`);
          const made = change(before, nameOf(field));
          objectOf(limits)[keyword] = made.limit;
          changed.push({ operation: String(operation.operationId), path, field, ...made });
        }
      }
    }
  return changed;
}

/** The limits in the contract: each gets a test of its own. */
const LIMITS = changeAll(structuredClone(SOLD.document), () => undefined);

describe('every limit is in the contract alone: a server with another contract has other limits', function () {
  this.timeout(120_000);
  let folder: string;
  let world: World;
  let limits: Limit[];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coinslot-limits-'));
    const document = structuredClone(SOLD.document);
    const mint = String(objectOf(exampleOf('solMintInfo')).mint);
    const names: Record<string, string> = { mint, voice_id: 'en_US-rms-medium' };
    limits = changeAll(document, field => names[field]);
    await writeFile(join(folder, 'openapi.yaml'), JSON.stringify(document));
    await mkdir(join(folder, 'dist'));
    await symlink(HANDLERS, join(folder, 'dist', 'handlers'));
    world = await openWorld({ SHOP_DIR: folder });
  });
  after(async () => {
    await world.close();
    await rm(folder, { recursive: true, force: true });
  });

  function exampleOf(operation: string): Json {
    return objectOf(SOLD.paid.find(({ id }) => id === operation)?.request?.example);
  }

  async function send({ operation, path, field, keyword }: Limit, value: unknown): Promise<Answer> {
    const body = { ...exampleOf(operation), [field]: value };
    // An order is accepted as soon as it is paid, but a default can be seen only in the answer.
    const wait = keyword === 'default' ? 60 : 0;
    return post(world.url + path, body, { Prefer: `wait=${wait}`, ...(await signFor(world, path)) });
  }

  /** Sells a call. On a busy machine, work may be refused or take too long, which costs nothing: such a call is made again. */
  async function sell(limit: Limit): Promise<Answer> {
    let answer: Answer;
    await until(
      `${limit.operation} is sold`,
      async () => {
        answer = await send(limit, limit.within);
        return answer.headers.has('payment-response') || answer.status < 500;
      },
      60_000,
    );
    return answer!;
  }

  const changed = ({ operation, field, keyword }: Limit): Limit => {
    const found = limits.find(
      each => each.operation === operation && each.field === field && each.keyword === keyword,
    );
    if (!found) throw new Error(`${operation}: ${keyword} of ${field} was not changed`);
    return found;
  };

  for (const each of LIMITS) {
    const { operation, field, keyword } = each;
    it(`${operation}: ${keyword} of ${field}`, async () => {
      const limit = changed(each);
      const sold = await sell(limit);
      const accepted = sold.status === 200 || (sold.status === 503 && receiptOf(sold).success);
      expect(accepted, `${sold.status} ${sold.body.subarray(0, 200).toString()}`).to.equal(true);
      if (keyword === 'default') expect(sold.json()).to.have.property(field, limit.limit);
      if (limit.beyond === undefined) return;
      const refused = await send(limit, limit.beyond);
      expect(refused.status, refused.body.subarray(0, 200).toString()).to.equal(400);
      expect(refused.json().error).to.match(WORDS[keyword]!(limit.limit, field));
    });
  }

  it('and publishes these limits in its own openapi.json', async () => {
    const { paths } = (await call(`${world.url}/openapi.json`)).json();
    for (const { path, field, keyword, limit } of limits) {
      const { requestBody } = objectOf(objectOf(objectOf(paths)[path]).post);
      const { schema } = objectOf(objectOf(objectOf(requestBody).content)['application/json']);
      expect(objectOf(objectOf(objectOf(schema).properties)[field])[keyword]).to.equal(limit);
    }
  });
});

/** The server's own error for each violated limit. A backend would word it differently. */
const WORDS: Record<string, (limit: unknown, field: string) => RegExp> = {
  minLength: (limit, field) => new RegExp(`^${field} must have at least ${String(limit)} characters`),
  maxLength: (limit, field) => new RegExp(`^${field} must have at most ${String(limit)} characters`),
  minimum: (limit, field) => new RegExp(`^${field} must be at least ${String(limit)}\\.`),
  maximum: (limit, field) => new RegExp(`^${field} must be at most ${String(limit)}\\.`),
  pattern: (_limit, field) => new RegExp(`^${field} must (be a base58 address|match the pattern)`),
};
