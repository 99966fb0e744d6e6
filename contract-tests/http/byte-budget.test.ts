import { expect } from 'chai';
import { ByteBudget, type BudgetOwner } from '../../src/http/byte-budget.js';
import { sourceOf } from '../../src/http/request-source.js';

const owner = (payment: string, payer = payment, source = payer): BudgetOwner => ({ payment, payer, source });

describe('a budget of bytes', () => {
  it('gives a payment an eighth, a payer a quarter and a source half of all bytes', () => {
    for (const [limit, owners] of [
      [100, ['same same same', 'same same same']],
      [200, ['a same same', 'b same same', 'c same same']],
      [400, ['a a same', 'b b same', 'c c same', 'd d same', 'e e same']],
      [800, Array.from({ length: 9 }, (_, n) => `${n} ${n} ${n}`)],
    ] as const) {
      const budget = new ByteBudget(800, Infinity);
      const taken = owners.map(names => {
        const [payment = '', payer, source] = names.split(' ');
        return budget.open(owner(payment, payer, source), () => {}).grow(100);
      });
      expect(taken, `${limit}`).to.deep.equal(owners.map((_, index) => (index + 1) * 100 <= limit));
      expect(budget.held).to.equal(limit);
    }
  });

  it('evicts the request that has made no progress for the longest time among those that share the exceeded limit', () => {
    const budget = new ByteBudget(800, 0);
    const evicted: string[] = [];
    const open = (name: string, ...as: [string, string?, string?]) => {
      const hold = budget.open(owner(...as), () => evicted.push(name));
      expect(hold.grow(50)).to.equal(true);
      return hold;
    };
    open('elsewhere', 'other');
    const first = open('first', 'one');
    open('second', 'one');
    first.progress();
    open('third', 'one');
    expect(evicted).to.deep.equal(['second']);
    open('fourth', 'one');
    expect(evicted).to.deep.equal(['second', 'first']);
    expect(budget.held).to.equal(150);
  });

  it('evicts no request that made progress recently, and refuses the new one instead', () => {
    const budget = new ByteBudget(800, 1_000);
    const hold = budget.open(owner('one'), () => expect.fail('evicted'));
    expect(hold.grow(100)).to.equal(true);
    const newcomer = budget.open(owner('one'), () => {});
    expect(newcomer.grow(1)).to.equal(false);
    hold.close();
    hold.close();
    expect(newcomer.grow(1)).to.equal(true);
    newcomer.close();
    expect(budget.held).to.equal(0);
  });

  it('counts the addresses of one IPv6 /64 as one source, and a mapped IPv4 address as itself', () => {
    expect(sourceOf('192.0.2.1')).to.equal('192.0.2.1');
    expect(sourceOf('::ffff:192.0.2.1')).to.equal('192.0.2.1');
    expect(sourceOf('2001:db8:1:2:3:4:5:6')).to.equal('2001:db8:1:2');
    expect(sourceOf('2001:db8:1:2::6')).to.equal(sourceOf('2001:db8:1:2:ffff::1'));
    expect(sourceOf('2001:db8::6')).to.equal('2001:db8:0:0');
    expect(sourceOf('2001:db8::6')).to.not.equal(sourceOf('2001:db8:0:1::6'));
    expect(sourceOf('fe80::1%eth0')).to.equal('fe80:0:0:0');
    expect(sourceOf('::1')).to.equal('0:0:0:0');
    expect(sourceOf(undefined)).to.equal('');
  });
});
