import { performance } from 'node:perf_hooks';
import Database from 'libsql';
import { openLedger } from '../dist/src/ledger/store.js';
import { addressOf, NETWORK, PAY_TO, PAYERS } from './terms.js';

export const DAY_MS = 86_400_000;
/** @param {string} file */
export const open = file => openLedger({ url: `file:${file}`, payTo: PAY_TO, network: NETWORK });
export const payers = Array.from({ length: PAYERS }, (_, index) => addressOf(`payer ${index}`));

/** A tenth of the payments come from the payers that the benchmark buys with, the others from ten thousand occasional ones. */
const FILL = `
  INSERT INTO payments (id, operation, request_hash, payer, amount, network, x402_version, signed_transaction, flow, state, claim, owner,
    lease_until, caller_until, runs, asks, claim_slot, claim_height, settlement, created_at, settling_at, settled_at, decided_at,
    written_at, audited_at, callers, written_to, unwritten)
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :rows)
  SELECT randomblob(32), 'summarize', lower(hex(randomblob(32))),
    CASE WHEN i % 10 = 0 THEN (SELECT payer FROM regulars WHERE rowid = i / 10 % ${PAYERS} + 1) ELSE printf('payer-%05d', abs(random()) % 10000) END,
    '10000', '${NETWORK}', 2, hex(randomblob(250)), 'authorization', 'delivered', i, 'somebody', 0, 0, 1, 1, i, i,
    hex(randomblob(44)), :began + i * :every, :began + i * :every, :began + i * :every, :began + i * :every, :began + i * :every, :began + i * :every, 1, 1, 0
  FROM n`;

/**
 * Fills a new ledger with sales, one every `everyMs` from `began` on.
 * @param {string} file @param {number} rows @param {{ began: number, everyMs: number }} when @returns {Promise<{ seconds: number }>}
 */
export async function fill(file, rows, { began: first, everyMs }) {
  await (await open(file)).close();
  const began = performance.now();
  const db = new Database(file);
  db.exec('CREATE TEMP TABLE regulars (payer TEXT)');
  for (const payer of payers) db.prepare('INSERT INTO regulars VALUES (?)').run(payer);
  db.exec('PRAGMA cache_size = -400000');
  db.exec('BEGIN');
  db.prepare(
    FILL.replaceAll(':rows', String(rows))
      .replaceAll(':began', String(first))
      .replaceAll(':every', String(everyMs)),
  ).run();
  db.exec('COMMIT');
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.exec('ANALYZE');
  db.close();
  return { seconds: (performance.now() - began) / 1_000 };
}
