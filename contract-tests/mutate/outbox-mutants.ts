import type { Mutant } from './mutants.js';

const LEDGER = 'ledger/outbox';
const TARGETS = 'webhooks/tell-targets';

/** Events for webhooks: `src/ledger/outbox.ts` and `src/webhooks/`. */
export const outboxMutants: readonly Mutant[] = [
  {
    name: 'a later event of a payment does not wait for an earlier one',
    file: 'src/ledger/queries/outbox.js',
    find: 'and earlier.seq < own.seq)',
    replace: 'and earlier.seq < 0)',
    test: LEDGER,
    grep: 'gives the second event of a payment only once',
  },
  {
    name: 'an event that is being delivered is taken again',
    file: 'src/ledger/queries/outbox.js',
    find: 'lease_until = ${p.now} + ${p.leaseMs}',
    replace: 'lease_until = 0 * ${p.leaseMs}',
    test: LEDGER,
    grep: 'gives an event to one server at a time',
  },
  {
    name: 'a server that took too long ends the attempt of another',
    file: 'src/ledger/queries/outbox.js',
    find: "outcome = 'told', answer = ${p.answer}\n  where seq = ${p.seq} and attempts = ${p.attempt}",
    replace: "outcome = 'told', answer = ${p.answer}\n  where seq = ${p.seq} and ${p.attempt} > 0",
    test: LEDGER,
    grep: 'gives an event to one server at a time',
  },
  {
    name: 'an event is sent to a private address',
    file: 'src/webhooks/http-target.js',
    find: 'publicOnly: !allowPrivate,',
    replace: 'publicOnly: false,',
    test: TARGETS,
    grep: 'with a private address gets nothing',
  },
  {
    name: 'a redirect counts as delivered',
    file: 'src/webhooks/http-target.js',
    find: 'status <= 299',
    replace: 'status <= 399',
    test: TARGETS,
    grep: 'that redirects is not followed',
  },
];
