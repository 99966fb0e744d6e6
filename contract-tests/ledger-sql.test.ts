import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { LEDGER_SQL } from '../generated/ledger.js';
import { POSTGRES, SQLITE } from '../src/ledger/engine.js';
import type { Query } from '../src/ledger/engine.js';
import { LEDGER_SQL_FILE, renderLedgerSql } from '../src/ledger/generate.js';
import { compilerOf } from '../src/ledger/kysely.js';
import { metaTable, MIGRATIONS } from '../src/ledger/migrations.js';
import { compileStatements } from '../src/ledger/statements.js';

type Statement = (values: object) => Query;

/** A value of its own under every name. */
const VALUES = new Proxy({}, { get: (_target, name) => `it's the "${String(name)}"` });

describe('The SQL of the ledger', () => {
  it('is what its queries and migrations give today (make generate renews it)', () => {
    expect(readFileSync(LEDGER_SQL_FILE, 'utf8') === renderLedgerSql()).to.equal(true);
  });

  for (const dialect of [SQLITE, POSTGRES]) {
    const db = compilerOf(dialect);
    const generated = LEDGER_SQL[dialect.name];

    it(`asks ${dialect.name} what the query builder would, with the same values in the same places`, () => {
      const written = compileStatements(db, dialect) as Record<string, Statement>;
      const names = Object.keys(written);
      expect(names).to.have.length.above(60);
      expect(Object.keys(generated.statements)).to.deep.equal(names);
      for (const name of names) {
        const run = (generated.statements as Record<string, Statement>)[name];
        expect(run?.(VALUES), name).to.deep.equal(written[name]?.(VALUES));
      }
    });

    it(`creates on ${dialect.name} the tables of every version`, () => {
      const written = MIGRATIONS.map(steps => steps(db, dialect).map(step => step.compile().sql));
      expect(generated.migrations).to.deep.equal(written);
      expect(generated.metaTable).to.equal(metaTable(db).compile().sql);
    });
  }
});
