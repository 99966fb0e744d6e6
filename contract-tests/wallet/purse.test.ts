import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Purse, PurseFault } from '../../src/wallet/purse.js';
import { aPayment } from '../support/wallet-payment.js';

const EVENING = Date.parse('2026-11-22T23:59:59Z');
const CENT = 10_000n;

describe('the purse of the wallet', () => {
  let folder: string;
  let now: number;
  let purse: Purse;
  beforeEach(() => {
    folder = join(mkdtempSync(join(tmpdir(), 'coinslot-purse-')), 'own');
    now = EVENING;
    purse = open();
  });
  afterEach(() => {
    purse.close();
    rmSync(join(folder, '..'), { recursive: true, force: true });
  });
  const open = (): Purse => new Purse(folder, () => now);
  const add = (to: Purse, name: string, budget = 2n * CENT) =>
    to.add(aPayment({ id: name, call: name, amount: String(CENT) }), budget);

  it('counts signed payments against the budget, even for a wallet that is opened later', () => {
    expect(add(purse, 'one')).to.equal(undefined);
    expect(add(purse, 'two')).to.equal(undefined);
    const other = open();
    expect(add(other, 'three')).to.deep.equal({ kind: 'budget', left: 0n });
    expect(other.left(5n * CENT)).to.equal(3n * CENT);
    other.close();
  });

  it('an answered payment stays spent; one that was never settled is credited to the day of its signature', () => {
    add(purse, 'one');
    add(purse, 'two');
    purse.answered('one', 'signature');
    expect(purse.left(2n * CENT)).to.equal(0n);
    purse.release('two');
    expect(purse.left(2n * CENT)).to.equal(CENT);
    add(purse, 'three');
    now += 1_000;
    expect(purse.left(2n * CENT), 'a new day').to.equal(2n * CENT);
    purse.release('three');
    expect(purse.left(2n * CENT)).to.equal(2n * CENT);
    now -= 1_000;
    expect(purse.left(2n * CENT)).to.equal(CENT);
    expect(purse.pending()).to.deep.equal([]);
  });

  it('keeps one payment for a call, whichever wallet signed first', () => {
    add(purse, 'one');
    const other = open();
    const refused = other.add(aPayment({ id: 'another', call: 'one', amount: String(CENT) }), 9n * CENT);
    expect(refused).to.have.property('kind', 'known');
    expect(other.find('one')).to.include({ id: 'one' });
    expect(other.left(9n * CENT)).to.equal(8n * CENT);
    other.close();
  });

  it('keeps only as many payments, and as many bytes, as it can rewrite with each payment', () => {
    const one = aPayment({ amount: '1' });
    const many = Array.from({ length: 500 }, (_, n) => ({ ...one, id: `${n}`, call: `${n}` }));
    writeFileSync(join(folder, 'wallet.json'), JSON.stringify({ version: 1, spent: {}, pending: many }));
    expect(add(purse, 'one more')).to.deep.equal({ kind: 'full' });
    purse.release('499');
    expect(add(purse, 'one more')).to.equal(undefined);
    purse.release('498');
    const payment = 'x'.repeat(8 * 1024 * 1024);
    expect(purse.add(aPayment({ id: 'long', call: 'long', payment }), 9n * CENT)).to.deep.equal({
      kind: 'full',
    });
    expect(purse.find('long')).to.equal(undefined);
  });

  it('finds the payments that version 1.0.0 kept, and what it had spent', () => {
    const [day] = new Date(EVENING).toISOString().split('T');
    const kept = { ...aPayment({ id: 'old', call: 'old', signedAt: EVENING - 1_000 }), pickUp: 'its key' };
    const state = { version: 1, spent: { [day!]: '10000' }, pending: [kept] };
    writeFileSync(join(folder, 'wallet.json'), JSON.stringify(state));
    expect(purse.find('old')).to.deep.equal(kept);
    expect(purse.left(2n * CENT)).to.equal(CENT);
    expect(add(purse, 'old')).to.deep.equal({ kind: 'known', pending: kept });
  });

  it('lists each step in the statement, and survives a line that a crash left incomplete', () => {
    const file = join(folder, 'statement.jsonl');
    add(purse, 'one');
    writeFileSync(file, '{"torn', { flag: 'a' });
    purse.update('one', { landed: 'signature' });
    purse.answered('one', undefined);
    expect(purse.lines(9).map(({ event }) => event)).to.deep.equal(['signed', 'landed', 'answered']);
    expect(purse.lines(1)).to.have.lengthOf(1);
    expect(readFileSync(file, 'utf8')).to.include('{"torn\n');
  });

  it('other users can read neither the folder nor its files', () => {
    add(purse, 'one');
    expect(statSync(folder).mode & 0o777).to.equal(0o700);
    for (const name of ['wallet.json', 'statement.jsonl'])
      expect(statSync(join(folder, name)).mode & 0o777, name).to.equal(0o600);
  });

  for (const text of [
    '',
    '{}',
    '{"version":2,"spent":{},"pending":[]}',
    '{"version":1,"spent":{"x":"-1"},"pending":[]}',
  ])
    it(`a state file with ${text || 'nothing'} is an error, and does not count as an empty wallet`, () => {
      writeFileSync(join(folder, 'wallet.json'), text);
      expect(() => add(purse, 'one')).to.throw(PurseFault, 'Nothing is paid until it is restored');
    });
});
