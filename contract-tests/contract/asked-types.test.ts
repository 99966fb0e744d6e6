import { expect } from 'chai';
import type { Asked, Body } from '../../src/contract/operation.js';

/** An operation as openapi-typescript describes it. */
type Sent<C> = {
  requestBody: { content: C };
  responses: { 200: { content: { 'application/json': string } } };
};
type Note = { text: string };
type Several = Sent<{
  'application/json': Note;
  'application/x-www-form-urlencoded': { count: number };
  'multipart/form-data': { photo: string };
  'text/csv': unknown;
  'image/png': unknown;
}>;
type WithHeaders = Sent<{ 'application/json': number[] }> & {
  parameters: { header?: { 'X-Region'?: 'eu' | 'us'; 'PAYMENT-SIGNATURE'?: string } };
};

/** Is `true` if the two types are the same. Otherwise `true satisfies Same<A, B>` does not compile. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
describe('The type of a call that a handler gets', () => {
  it('has a body of each content type that the contract declares, with texts and bytes as strings', () => {
    expect(
      true satisfies Same<Body<Several>, Note | { count: number } | { photo: string } | string>,
    ).to.equal(true);
    expect(true satisfies Same<Body<Sent<{ 'application/json': Note }>>, Note>).to.equal(true);
    expect(true satisfies Same<Body<Sent<{ 'application/merge-patch+json': Note }>>, Note>).to.equal(true);
    expect(true satisfies Same<Body<Sent<{ 'application/octet-stream': unknown }>>, string>).to.equal(true);
    expect(
      true satisfies Same<Body<{ requestBody?: { content: { 'text/plain': string } } }>, string | undefined>,
    ).to.equal(true);
    expect(true satisfies Same<Body<{ requestBody?: never }>, undefined>).to.equal(true);
  });

  it('has the headers by name, except those of the payment, and the content type that was sent', () => {
    const asked: Asked<WithHeaders> = { params: {}, query: {}, body: [1], headers: { 'X-Region': 'eu' } };
    expect(true satisfies Same<(typeof asked)['headers'], { 'X-Region'?: 'eu' | 'us' }>).to.equal(true);
    expect(true satisfies Same<Asked<Several>['type'], string | undefined>).to.equal(true);
    expect(asked.headers['X-Region']).to.equal('eu');
  });
});
