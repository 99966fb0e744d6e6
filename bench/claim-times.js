import { createHash, randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { median } from './figures.js';
import { payers } from './filled-ledger.js';
import { NETWORK, PAYERS } from './terms.js';

const AT_ONCE = 64;
const limits = { maxUnsettledPerPayer: 256, maxUnsettledAmountPerPayer: 100_000_000n, maxRuns: 3 };
/** @param {number} number */
function request(number) {
  return {
    id: randomBytes(32).toString('hex'),
    operation: 'summarize',
    requestHash: createHash('sha256').update(String(number)).digest('hex'),
    payer: payers[number % PAYERS],
    amount: 10_000n,
    network: NETWORK,
    method: 'x402-v2',
    evidence: randomBytes(300).toString('base64'),
    flow: 'authorization',
    after: 1_000,
    position: 1_000,
    leaseMs: 90_000,
    limits,
  };
}

/**
 * How long claims of new payments take, in µs: one after the other, and 64 at a time. Each claim is then freed, which is not measured.
 * @param {import('../dist/src/ledger/store.js').Ledger} ledger @param {number} count
 */
export async function claimTimes(ledger, count) {
  const alone = [];
  const together = [];
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
  return { alone: median(alone), together: median(together) };
}
