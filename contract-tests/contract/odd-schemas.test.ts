import { expect } from 'chai';
import { compileContract } from '../../src/contract/compile-contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { Routes, type AskedCheck } from '../../src/contract/routes.js';
import { sentTo } from '../support/sent-to.js';

/** Schemas whose references openapi-backend fails to resolve. */
const ODD = `
openapi: 3.1.0
info: { title: Odd schemas, version: 1.0.0 }
paths:
  /links:
    parameters:
      - { name: size, in: query, schema: { type: integer } }
      - { name: PAYMENT-SIGNATURE, in: header, schema: { type: string } }
    post:
      operationId: link
      x-price: { mode: fixed, currency: USD, amount: '0.01', flow: authorization }
      parameters:
        - { name: size, in: query, schema: { enum: [1, 2] } }
      requestBody:
        required: true
        content:
          application/json:
            schema: { $ref: '#/components/schemas/Link' }
            example: { name: a, file: b, 'a/b~c': { name: c, file: d } }
      responses:
        '200': { description: OK, content: { application/json: { schema: { $ref: '#/components/schemas/Again' }, example: { name: a, file: b } } } }
        '400': &failed { description: Failed, content: { application/json: { schema: { type: object } } } }
        '402': *failed
        '502': *failed
        '503': *failed
components:
  schemas:
    Again: { $ref: '#/components/schemas/Link' }
    Name: { type: string }
    Link:
      type: object
      required: [name, file]
      properties:
        name: { $ref: '#/components/schemas/Name', maxLength: 3 }
        file: { type: string, format: binary }
        next: { $ref: '#/components/schemas/Link' }
        a/b~c: { $ref: '#/components/schemas/Link' }
`;

describe("Schemas that openapi-backend can't resolve", () => {
  let routes: Routes;
  const check = (body: object | undefined, query = ''): AskedCheck => {
    const route = routes.match('POST', '/links');
    if (route.kind !== 'operation') throw new Error(route.kind);
    return routes.checkAsked(route, query, sentTo(route, body));
  };
  before(async () => {
    routes = await Routes.create(parseContract(await compileContract(ODD).then(() => ODD)));
    await routes.warm();
  });
  const link = { name: 'a', file: 'b' };

  it('may be recursive, in a field of any name', () => {
    expect(check({ ...link, next: { ...link, next: link }, 'a/b~c': link })).to.have.property('ok', true);
    expect(check({ ...link, next: { ...link, next: { name: 'a' } } })).to.have.property(
      'error',
      'next.next.file is missing',
    );
    expect(check({ ...link, 'a/b~c': 5 })).to.have.property('ok', false);
    const route = routes.routeOf('link')!;
    expect(routes.checkReply(route, { status: 200, body: { ...link, next: {} } })).to.equal(
      'next.name and next.file are missing',
    );
  });

  it('keep keywords next to a reference', () => {
    expect(check({ ...link, name: 'abcd' })).to.have.property(
      'error',
      'name must have at most 3 characters, and has 4',
    );
  });

  it('keep fields of the format binary required', () => {
    expect(check({ name: 'a' })).to.have.property('error', 'file is missing');
  });

  it('override those that the path declares for the same parameter, and keep numbers in an enum as numbers', () => {
    expect(check(link, 'size=2')).to.have.deep.nested.property('asked.query', { size: 2 });
    expect(check(link, 'size=3')).to.have.property('error', 'size must be one of [1,2]');
  });

  it('are not applied to payment headers, but a missing body is reported', () => {
    expect(check(link)).to.have.property('ok', true);
    expect(check(undefined)).to.have.property('error', 'the body is missing');
  });
});
