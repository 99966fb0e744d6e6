import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { operationsForSale } from './challenges.js';

// The program always exits with 0: its JSON has the result.
const program = fileURLToPath(new URL('node_modules/@agentcash/discovery/bin/discovery.js', import.meta.url));
const output = execFileSync(process.execPath, [program, 'discover', process.env.COINSLOT_URL, '--json'], {
  timeout: 90_000,
  maxBuffer: 8 << 20,
});
const { ok, resources, warnings } = JSON.parse(output.toString());
const paid = resources.filter(({ authHint, protocols }) => authHint === 'paid' && protocols.includes('x402'));
const serious = warnings.filter(({ severity }) => severity !== 'info');
for (const text of new Set(serious.map(({ code, severity, message }) => `${severity} ${code}: ${message}`))) {
  process.stderr.write(`${text}\n`);
}
if (!ok) throw new Error('nothing was discovered');
const { length: wanted } = await operationsForSale();
if (paid.length !== wanted) throw new Error(`${paid.length} paid operations instead of ${wanted}`);
if (serious.length > 0) throw new Error(`${serious.length} complaints`);
