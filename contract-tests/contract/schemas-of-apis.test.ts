import { expect } from 'chai';
import { compileContract } from '../../src/contract/compile-contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { Routes } from '../../src/contract/routes.js';
import { sentTo } from '../support/sent-to.js';

/** Constructs that document generators write: variants with a discriminator, recursion through lists, formats. */
const SHOP = `
info: { title: Schemas of APIs }
paths:
  /shapes:
    post:
      operationId: draw
      x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: '#/components/schemas/Drawing' } } }
      responses: { '200': { content: { application/json: { schema: { type: object } } } } }
components:
  schemas:
    Drawing:
      type: object
      required: [shape]
      properties:
        shape: { $ref: '#/components/schemas/Shape' }
        by: { type: string, format: email }
        on: { type: string, format: date }
        at: { type: string, format: date-time }
        id: { type: string, format: uuid }
        count: { type: integer, format: int64 }
        like: { type: [string, 'null'], format: of-their-own }
    Shape:
      oneOf:
        - { $ref: '#/components/schemas/Circle' }
        - { $ref: '#/components/schemas/Group' }
      discriminator: { propertyName: kind, mapping: { circle: '#/components/schemas/Circle', group: '#/components/schemas/Group' } }
    Circle: { type: object, required: [kind, radius], properties: { kind: { const: circle }, radius: { type: number } } }
    Group:
      type: object
      required: [kind, of]
      properties: { kind: { const: group }, of: { type: array, items: { $ref: '#/components/schemas/Shape' } } }
`;

describe('Schemas like those in public API documents', () => {
  let check: (body: object) => string;
  before(async () => {
    await compileContract(SHOP);
    const routes = await Routes.create(parseContract(SHOP));
    const route = routes.match('POST', '/shapes');
    if (route.kind !== 'operation') throw new Error(route.kind);
    check = body => {
      const checked = routes.checkAsked(route, '', sentTo(route, body));
      return checked.ok ? 'ok' : checked.error;
    };
  });
  const circle = { kind: 'circle', radius: 1 };

  it('can be recursive variants with a discriminator', () => {
    expect(check({ shape: circle })).to.equal('ok');
    expect(check({ shape: { kind: 'group', of: [circle, { kind: 'group', of: [] }] } })).to.equal('ok');
    for (const shape of [{ kind: 'square' }, { radius: 1 }, { kind: 'group', of: [{ kind: 'circle' }] }])
      expect(check({ shape }), JSON.stringify(shape)).to.match(/^shape/);
  });

  it('can have formats; those that JSON Schema defines are checked', () => {
    const right = {
      by: 'a@example.com',
      on: '2026-02-28',
      at: '2026-02-28T12:00:00Z',
      id: '123e4567-e89b-42d3-a456-426614174000',
      count: 7,
      like: null,
    };
    expect(check({ shape: circle, ...right })).to.equal('ok');
    for (const wrong of [{ by: 'a' }, { on: '2026-02-30' }, { at: 'noon' }, { id: '1' }, { count: 1.5 }])
      expect(check({ shape: circle, ...wrong }), JSON.stringify(wrong)).to.match(
        new RegExp(`^${Object.keys(wrong)[0]} must `),
      );
  });
});
