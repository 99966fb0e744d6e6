import type { Mutant } from './mutants.js';

type Change = Omit<Mutant, 'file' | 'test'>;

const of = (file: string, test: string, changes: readonly Change[]): readonly Mutant[] =>
  changes.map(change => ({ ...change, file: `src/${file}.js`, test }));

/** What proves that money moved or did not, and which sources are believed. */
export const evidenceMutants: readonly Mutant[] = [
  ...of('rails/solana/find-transfer', 'rails/solana/find-transfer', [
    {
      name: 'a gap between two pages of the history is overlooked',
      find: 'if (last !== undefined && listed[0]?.signature !== last)',
      replace: 'if (false)',
      grep: 'does not prove absence',
    },
    {
      name: 'a second page of the history leaves out part of it',
      find: '.slice(-2).map(({ signature }) => signature)',
      replace: '.slice(-1).flatMap(({ signature }) => [signature, undefined])',
      grep: 'does not prove absence',
    },
    {
      name: 'a history that is too long to be read counts as complete',
      find: "    }\n    return { kind: 'unclear' };\n}\n/**",
      replace: "    }\n    return { kind: 'absent' };\n}\n/**",
      grep: 'proves nothing from a history longer than ten pages',
    },
    {
      name: 'a transfer that landed before the claim counts as this payment’s',
      find: 'if (entry.slot <= row.after)',
      replace: 'if (entry.slot < row.after)',
      grep: 'ends at transfers that landed no later than the claim',
    },
  ]),
  ...of('facilitators/facilitator-trust', 'facilitators/facilitator-trust', [
    {
      name: 'an unknown facilitator is believed',
      find: 'return name === undefined || liars.has(name);',
      replace: 'return name !== undefined && liars.has(name);',
      grep: 'exclude an unknown one',
    },
    {
      name: 'a lie is not stored for other servers',
      find: 'await ledger.setMeta(keyOf(facilitator), new Date().toISOString());',
      replace: '',
      grep: 'until it has lied',
    },
    {
      name: 'lies that other servers found are not read',
      find: 'liars.add(facilitator);\n                log.warn(',
      replace: 'log.warn(',
      grep: 'until it has lied',
    },
  ]),
  ...of('sale/reconciler', 'rails/toy-rail', [
    {
      name: 'a payment whose fate is unknown is released',
      find: "if (fate.kind === 'unknown')\n            return;",
      replace:
        "if (fate.kind === 'unknown')\n            return this.#release(row, { why: '', final: false });",
      grep: 'releases a payment only once the rail proves that its money never',
    },
  ]),
  ...of('offers/offers', 'methods/x402/challenge', [
    {
      name: 'challenges outlive the hints that they contain',
      find: 'if (hints !== this.#hints)',
      replace: 'if (this.#hints === undefined)',
      grep: 'keeps its challenges until the fee payer or the blockhash changes',
    },
  ]),
  ...of('rails/solana/transfer-fates', 'sale/reconciler', [
    {
      name: 'a failed transfer that was reported as settled does not count as a lie',
      find: 'return finding.failed\n',
      replace: 'return false\n',
      grep: 'a success reported for a transfer that failed is a false report',
    },
    {
      name: 'an absent transfer that was reported as settled does not count as a lie',
      find: "if (finding.kind === 'unclear')",
      replace: "if (finding.kind !== 'found')",
      grep: 'a success reported for a transfer that does not exist is a false',
    },
  ]),
  ...of('sale/reconciler', 'sale/reconciler', [
    {
      name: 'a payer that the chain proves unpaid stays known',
      find: 'await ledger.recordRefusal(payer);',
      replace: '',
      grep: 'a payer whose payment proves to be unpaid is unknown again',
    },
  ]),
  ...of('facilitators/send-until-landed', 'facilitators/embedded-facilitator', [
    {
      name: '`processed` counts as landed in the last check',
      find: "if (!status || status.finality === 'processed')",
      replace: 'if (!status)',
      grep: 'does not count, in its last check, a transaction that is only processed',
    },
  ]),
  ...of('rails/solana/signature-watch', 'rails/solana/sending', [
    {
      name: '`processed` counts as landed',
      find: "if (status && status.finality !== 'processed')",
      replace: 'if (status)',
      grep: 'even if it is only processed at first',
    },
  ]),
  ...of('rails/solana/rpc-results', 'rails/solana/sending', [
    {
      name: 'a status without its finality counts as confirmed',
      find: "named === 'confirmed' || named === 'finalized' ? named : 'processed'",
      replace: "named === 'processed' || named === 'finalized' ? named : 'confirmed'",
      grep: 'reads statuses, blockhashes and balances',
    },
  ]),
];
