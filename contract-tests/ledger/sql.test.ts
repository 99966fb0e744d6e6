import { expect } from 'chai';
import { clockOf } from '../../src/ledger/clock.js';
import { POSTGRES, SQLITE } from '../../src/ledger/engine.js';
import { claimView } from '../../src/ledger/queries/claims.js';
import { list, one, raw, sql } from '../../src/ledger/sql.js';
import type { Query, Value } from '../../src/ledger/sql.js';

describe('The SQL of the ledger', () => {
  it('keeps values separate from the query text, whatever they are', () => {
    const query = one`select * from payments where id = ${"it's"} and claim = ${1} and reason = ${null}`;
    expect(query).to.deep.equal({
      sql: 'select * from payments where id = ? and claim = ? and reason = ?',
      parameters: ["it's", 1, null],
      single: true,
    });
  });

  it('puts a query inside another with its values in their places', () => {
    const inner = sql`b = ${2} and c = ${3}`;
    const query = sql`select ${raw('a')} from t where a = ${1} and ${inner} and d in (${list([4, raw('e')])})`;
    expect(query.sql).to.equal('select a from t where a = ? and b = ? and c = ? and d in (?, e)');
    expect(query.parameters).to.deep.equal([1, 2, 3, 4]);
  });

  it('has the right text each time, if one template is used with different queries or with a value in place of a query', () => {
    const select = (what: Value | Query): string => sql`select ${what}`.sql;
    expect(['a', raw('a'), raw('b'), 'b', raw('b')].map(select)).to.deep.equal([
      'select ?',
      'select a',
      'select b',
      'select ?',
      'select b',
    ]);
  });

  it('is generated for both engines from one source', () => {
    const text = 'select id from payments where id = ? and claim = ? for update of payments skip locked';
    expect(SQLITE.spell(text)).to.equal('select id from payments where id = ? and claim = ?');
    expect(POSTGRES.spell(text)).to.equal(
      'select id from payments where id = $1 and claim = $2 for update of payments skip locked',
    );
    const now = clockOf(POSTGRES)();
    const view = claimView({ id: 'i', payer: 'p', operation: 'o', request_hash: 'h', now });
    expect(POSTGRES.spell(view.sql)).to.include(`$${view.parameters.length}`).and.not.include('?');
  });

  it('takes the time from the database if servers share it, and from the server if it is alone', () => {
    expect(clockOf(POSTGRES)()).to.deep.equal({
      sql: 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint',
      parameters: [],
    });
    const before = Date.now();
    expect(clockOf(SQLITE)().parameters[0]).to.be.within(before, Date.now());
    for (const dialect of [SQLITE, POSTGRES])
      expect(clockOf(dialect, () => 77)().parameters, 'a clock of its own').to.deep.equal([77]);
  });
});
