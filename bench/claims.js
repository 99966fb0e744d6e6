import { createHash, randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import Database from 'libsql';
import { openLedger } from '../dist/src/ledger/store.js';
import { median } from './figures.js';
import { addressOf, NETWORK, PAY_TO, PAYERS } from './terms.js';

/**
 * A process that claims payments in a ledger and says how long that took. Told `{ fill, rows }` it fills a ledger with payments that
 * were sold long ago; told `{ claim, count }` it claims new ones, one after the other and then 64 at a time.
 */

const AT_ONCE = 64;
const limits = { maxUnsettledPerPayer: 256, maxUnsettledAmountPerPayer: 100_000_000n, maxRuns: 3 };
const open = file => openLedger({ url: `file:${file}`, payTo: PAY_TO, network: NETWORK });
const payers = Array.from({ length: PAYERS }, (_, index) => addressOf(`payer ${index}`));

/** A tenth of the payments is of the payers that go on buying, the others of ten thousand that came once in a while. */
const FILL = `
  INSERT INTO payments (id, operation, request_hash, payer, amount, network, x402_version, signed_transaction, flow, state, claim, owner,
    lease_until, caller_until, runs, asks, claim_slot, claim_height, settlement, created_at, settling_at, settled_at, decided_at,
    written_at, audited_at, callers, written_to, unwritten)
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :rows)
  SELECT randomblob(32), 'summarize', lower(hex(randomblob(32))),
    CASE WHEN i % 10 = 0 THEN (SELECT payer FROM regulars WHERE rowid = i / 10 % ${PAYERS} + 1) ELSE printf('payer-%05d', abs(random()) % 10000) END,
    '10000', '${NETWORK}', 2, hex(randomblob(250)), 'authorization', 'delivered', i, 'somebody', 0, 0, 1, 1, i, i,
    hex(randomblob(44)), :began + i * 30, :began + i * 30, :began + i * 30, :began + i * 30, :began + i * 30, :began + i * 30, 1, 1, 0
  FROM n`;

/** @param {string} file @param {number} rows @returns {Promise<{ seconds: number }>} */
async function fill(file, rows) {
  await (await open(file)).close();
  const began = performance.now();
  const db = new Database(file);
  db.exec('CREATE TEMP TABLE regulars (payer TEXT)');
  for (const payer of payers) db.prepare('INSERT INTO regulars VALUES (?)').run(payer);
  db.exec('PRAGMA cache_size = -400000');
  db.exec('BEGIN');
  db.prepare(
    FILL.replaceAll(':rows', String(rows)).replaceAll(':began', String(Date.now() - 40 * 86_400_000)),
  ).run();
  db.exec('COMMIT');
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.exec('ANALYZE');
  db.close();
  return { seconds: (performance.now() - began) / 1_000 };
}

/** @param {number} number */
function request(number) {
  return {
    id: randomBytes(32).toString('hex'),
    operation: 'summarize',
    requestHash: createHash('sha256').update(String(number)).digest('hex'),
    payer: payers[number % PAYERS],
    amount: 10_000n,
    network: NETWORK,
    x402Version: 2,
    transaction: randomBytes(300).toString('base64'),
    flow: 'authorization',
    slot: 1_000,
    height: 1_000,
    leaseMs: 90_000,
    limits,
  };
}

/** Each claim is freed again, outside the time that counts. */
async function claims(file, count) {
  const ledger = await open(file);
  const alone = [];
  const together = [];
  try {
    const claimed = [];
    const claim = async number => {
      const asked = request(number);
      const result = await ledger.claim(asked);
      if (result.kind !== 'claimed') throw new Error(`a claim was ${result.kind}`);
      claimed.push([asked.id, result.claim]);
    };
    const free = () =>
      Promise.all(claimed.splice(0).map(([id, of]) => ledger.freeClaim(id, of, { keepRun: false })));
    for (let number = 0; number < count; number++) {
      const began = performance.now();
      await claim(number);
      alone.push((performance.now() - began) * 1_000);
      if (claimed.length >= AT_ONCE) await free();
    }
    for (let group = 0; group < count / AT_ONCE; group++) {
      await free();
      const began = performance.now();
      await Promise.all(Array.from({ length: AT_ONCE }, (_, number) => claim(number)));
      together.push(((performance.now() - began) * 1_000) / AT_ONCE);
    }
    await free();
  } finally {
    await ledger.close();
  }
  return { alone: median(alone), together: median(together) };
}

process.on('disconnect', () => process.exit(0));
process.on('message', ({ fill: toFill, claim, rows, count }) => {
  (toFill ? fill(toFill, rows) : claims(claim, count)).then(
    result => process.send({ result }),
    error => process.send({ error: String(error.stack ?? error) }),
  );
});
