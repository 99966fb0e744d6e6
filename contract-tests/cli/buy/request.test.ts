import { expect } from 'chai';
import { BuyFault, requestOf, type Listing } from '../../../src/wallet/shop-client.js';

const at = (url: string, method = 'GET', parameters: Listing['parameters'] = []): Listing => ({
  method,
  url: `http://shop${url}`,
  priced: true,
  upfront: false,
  hasBody: method === 'POST' || method === 'PATCH',
  parameters,
});

describe('npm run buy puts the members of the JSON where the operation declares them', () => {
  const quote = at('/quotes/{symbol}', 'GET', [
    { name: 'symbol', in: 'path' },
    { name: 'days', in: 'query' },
    { name: 'tag', in: 'query' },
  ]);

  it('in path and query', () => {
    const { url, init } = requestOf(quote, '{"symbol":"A/B","days":7,"tag":["a b","c"]}', {
      'x-payment': 'p',
    });
    expect(url).to.equal('http://shop/quotes/A%2FB?days=7&tag=a+b&tag=c');
    expect(init).to.deep.equal({ method: 'GET', headers: { 'x-payment': 'p' } });
    expect(requestOf(quote, '{"symbol":"A"}').url).to.equal('http://shop/quotes/A');
    expect(() => requestOf(quote, '{}')).to.throw(BuyFault, /symbol is missing/);
  });

  it('and the others in the body; if no parameters are declared, the text becomes the body unchanged', () => {
    const tree = at('/trees/{id}', 'POST', [{ name: 'id', in: 'path' }]);
    const sent = requestOf(tree, '{"id":7,"name":"a"}');
    expect([sent.url, sent.init.body]).to.deep.equal(['http://shop/trees/7', '{"name":"a"}']);
    expect(requestOf(at('/a', 'POST'), '{ "text": 1.0 }').init.body).to.equal('{ "text": 1.0 }');
    expect(requestOf(at('/a', 'POST'), 'no JSON').init.body).to.equal('no JSON');
    const pruned = at('/trees/{id}', 'PATCH', [{ name: 'id', in: 'path' }]);
    expect(requestOf(pruned, '{"id":7,"name":"a"}').init).to.deep.equal({
      method: 'PATCH',
      headers: { 'Content-Type': 'application/json' },
      body: '{"name":"a"}',
    });
    const felled = at('/trees/{id}', 'DELETE', [{ name: 'id', in: 'path' }]);
    expect(requestOf(felled, '{"id":7}')).to.deep.equal({
      url: 'http://shop/trees/7',
      init: { method: 'DELETE', headers: {} },
    });
  });
});
