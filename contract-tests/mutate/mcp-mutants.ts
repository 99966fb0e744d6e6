import type { Mutant } from './mutants.js';

const HOSTS = 'who may call over MCP';
const PURSE = 'the purse of the wallet';
const FATE = 'what the chain shows of a payment';

/** Guards of the MCP endpoint, of answer keys, and of the wallet for hosts. */
export const mcpMutants: readonly Mutant[] = [
  {
    name: 'MCP: any Host is served',
    file: 'src/mcp/allowed-hosts.js',
    find: 'name === undefined || !(isAddress(name) || isLocal(name) || name === own)',
    replace: 'name === undefined',
    test: 'mcp/allowed-hosts',
    grep: HOSTS,
  },
  {
    name: 'MCP: any web page may call',
    file: 'src/mcp/allowed-hosts.js',
    find: 'return welcome ? undefined',
    replace: 'return welcome || page ? undefined',
    test: 'mcp/allowed-hosts',
    grep: HOSTS,
  },
  {
    name: 'MCP: a name that begins like localhost is local',
    file: 'src/net/host-names.js',
    find: '|\\[::1\\])$/.test(name)',
    replace: '|\\[::1\\])/.test(name)',
    test: 'mcp/allowed-hosts',
    grep: HOSTS,
  },
  {
    name: 'MCP: an error that goes out instead of an answer counts as the answer',
    file: 'src/mcp/mcp-exchange.js',
    find: 'void sale.lost();\n            throw error;',
    replace: 'void sale.written();\n            throw error;',
    test: 'mcp/carried-sales',
    grep: 'can not be built',
  },
  {
    name: 'a made-up key opens an answer',
    file: 'src/payments/answer-keys.js',
    find: "return timingSafeEqual(bytes.subarray(ID_BYTES), this.#macOf(id)) ? id.toString('hex') : undefined;",
    replace: "return id.toString('hex');",
    test: 'mcp/pick-up',
    grep: 'key',
  },
  {
    name: 'an answer may be asked for as often as anybody likes',
    file: 'src/http/serve-pick-up.js',
    find: 'if (wait > 0) {',
    replace: 'if (wait > 1e9) {',
    test: 'mcp/pick-up',
    grep: 'asked for too often',
  },
  {
    name: 'wallet: the budget is not looked at',
    file: 'src/cli/mcp/purse.js',
    find: 'if (BigInt(payment.amount) > left)',
    replace: 'if (BigInt(payment.amount) < 0n)',
    test: 'cli/mcp/purse',
    grep: PURSE,
  },
  {
    name: 'wallet: a second payment for a call that has one',
    file: 'src/cli/mcp/purse.js',
    find: "if (known)\n                return { kind: 'known', pending: known };",
    replace: '',
    test: 'cli/mcp/purse',
    grep: PURSE,
  },
  {
    name: 'wallet: an answer gives its price back',
    file: 'src/cli/mcp/purse.js',
    find: "event === 'released' && ",
    replace: '',
    test: 'cli/mcp/purse',
    grep: PURSE,
  },
  {
    name: 'wallet: a damaged state is an empty one',
    file: 'src/cli/mcp/purse.js',
    find: 'if (!state)\n            throw',
    replace:
      'if (!state)\n            return { version: 1, spent: {}, pending: [] };\n        if (!state)\n            throw',
    test: 'cli/mcp/purse',
    grep: PURSE,
  },
  {
    name: 'wallet: a young payment with an unknown blockhash is dead',
    file: 'src/cli/mcp/fate.js',
    find: 'lives || age < YOUNG_MS',
    replace: 'lives',
    test: 'cli/mcp/fate',
    grep: FATE,
  },
  {
    name: 'wallet: a payment whose blockhash lives is dead',
    file: 'src/cli/mcp/fate.js',
    find: 'lives || age < YOUNG_MS',
    replace: 'age < YOUNG_MS',
    test: 'cli/mcp/fate',
    grep: FATE,
  },
  {
    name: 'wallet: absence in a history that is behind counts',
    file: 'src/cli/mcp/fate.js',
    find: "finality: 'finalized', minContextSlot: slot,",
    replace: "finality: 'finalized',",
    test: 'cli/mcp/fate',
    grep: FATE,
  },
];
