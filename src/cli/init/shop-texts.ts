import { TEMPLATE_NAME } from '../../shop/shop-name.js';
import type { NewOperation } from '../operation/describe-operation.js';

/** The operation of a new shop, so that it can sell immediately. */
export const EXAMPLE: { operation: NewOperation; handler: string } = {
  operation: {
    id: 'textStats',
    method: 'post',
    path: '/v1/text-stats',
    summary: 'Count the words of a text',
    price: { mode: 'fixed', amount: '0.01' },
    flow: 'authorization',
    request: { text: 'One coin, one call.' },
    answer: { words: 4, characters: 19 },
  },
  handler: `import { UpstreamFailure, type Entry } from 'coinslot';
import type { operations } from '../generated/openapi.js';

/** Sells the number of words and characters of a text. */
export const textStats: Entry<operations['textStats']> = () => ({
  call: async ({ body }) => {
    const words = body.text.match(/[\\p{L}\\p{N}]+/gu) ?? [];
    // A call that is refused is not charged: 'invalid' becomes 400, 'failed' 502, 'unavailable' 503.
    if (words.length === 0) throw new UpstreamFailure('invalid', 'text has no word');
    return { status: 200, body: { words: words.length, characters: [...body.text].length } };
  },
});
`,
};

/** The rest is added by the build; `coinslot contract` prints it. */
const CONTRACT = `openapi: 3.1.0
info: { title: ${TEMPLATE_NAME} }
paths:
`;

const INDEX = `import type { HandlersOf } from 'coinslot';
import type { operations } from '../generated/openapi.js';

/** What this shop sells, by operationId. */
export const handlers = {} satisfies HandlersOf<operations>;
`;

const TSCONFIG = `{
  "compilerOptions": {
    "target": "ES2022",
    "lib": ["ES2023"],
    "module": "NodeNext",
    "moduleResolution": "NodeNext",
    "rootDir": ".",
    "outDir": "dist",
    "types": ["node"],
    "strict": true,
    "noUncheckedIndexedAccess": true,
    "verbatimModuleSyntax": true,
    "skipLibCheck": true
  },
  "include": ["handlers", "generated", "test"]
}
`;

const README = `# My shop

API calls for software agents, paid per call with [x402](https://www.x402.org) in USDC on Solana. Built with Coinslot.

    npm install       # once
    npm test          # builds, and runs the tests of the handlers
    npm start         # sells, in a sandbox on this machine: no key and no money needed
    npx coinslot dev  # the same while you write: what you save is on sale within seconds

In a second terminal, buy one call:

    npx coinslot buy textStats '{"text":"One coin, one call."}'

\`openapi.yaml\` is the contract: what is sold, at what price, with what schemas. The build adds the parts common to all
paid calls, and the server's own documents; \`npx coinslot contract\` prints the result. To change what is sold:

    npx coinslot operation add quote --price 0.02 --answer '{"text":"…"}'            # writes handlers/quote.ts, which you complete
    npx coinslot operation add weather --price 0.01 --upstream https://api.example.com/weather   # sells an existing API
    npx coinslot operation remove textStats
    npx coinslot build

\`handlers/\` and \`test/\` are TypeScript; \`generated/\` and \`dist/\` are written by \`coinslot build\`. Settings come from the
environment, or from a file \`.env\` here. To sell for real: \`npm ci --omit=dev\`, which leaves out the sandbox and the compilers, and
\`NETWORK=mainnet\`, \`PAY_TO\`, \`PUBLIC_URL\`.
`;

/** The other files of a new shop. */
export const FILES: Record<string, string> = {
  'openapi.yaml': CONTRACT,
  'handlers/index.ts': INDEX,
  'tsconfig.json': TSCONFIG,
  '.gitignore': 'node_modules/\ndist/\ngenerated/\n.coinslot/\n.env\n',
  'README.md': README,
};
