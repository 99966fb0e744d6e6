/**
 * Descriptions of the environment variables that the server itself reads: the source of docs/reference/settings.md. `values` and `fallback`
 * describe what `readConfig` cannot show; `see` is the page in docs/ that says more.
 */
type SettingText = { what: string; values?: string; fallback?: string; see?: string };

const FACILITATOR_CREDENTIALS: SettingText = { what: '', see: 'how-to/backends.md#facilitators' };
const FEE_PAYER: SettingText = { what: '', see: 'how-to/backends.md#your-own-facilitator' };
const REFUNDS: SettingText = { what: '', see: 'how-to/refunds.md#automatic-refunds' };
const ADMIN: SettingText = { what: '', see: 'how-to/operating.md#the-admin-listener' };

export const SETTING_TEXTS: Readonly<Record<string, SettingText>> = {
  NETWORK: { what: 'the Solana network of the payments' },
  PAY_TO: {
    what: 'the address that receives the USDC. Required outside the sandbox',
    values: 'Solana address',
    see: 'how-to/backends.md#changing-the-receiver',
  },
  OWN_WALLETS: {
    what: 'your own wallets: the operator page, metrics and reports show their purchases separately',
    values: 'Solana addresses, comma-separated',
    fallback: 'none',
    see: 'how-to/operating.md#your-own-purchases',
  },
  CANARY_KEYPAIR: {
    what: 'the key pair of the wallet that `coinslot canary` buys with; it counts as one of `OWN_WALLETS`',
    values: 'path',
    fallback: 'none',
    see: 'how-to/canary.md',
  },
  BLOCKED_PAYERS: {
    what: 'the file with the wallets to which nothing is sold, one per line; it is reread when it changes',
    values: 'path',
    fallback: 'none',
    see: 'how-to/operating.md#abuse',
  },
  EXPLORER: {
    what: 'the explorer that the operator page, receipts and `ledger show` link transactions and addresses to; unused in the sandbox',
  },
  PUBLIC_URL: {
    what: 'the public URL of the server, without a path. Required outside the sandbox',
    values: 'URL',
    fallback: 'from `HOST` and `PORT`',
  },
  HOST: { what: 'the address on which the server listens', fallback: '`127.0.0.1`' },
  PORT: { what: 'the port on which the server listens; 0 chooses any free port' },
  SITE_URL: {
    what: 'the URL of your website, which the documents name',
    values: 'URL',
    fallback: '`PUBLIC_URL`',
  },
  ADMIN_HOST: { ...ADMIN, what: 'the address of the listener for operators', fallback: '`127.0.0.1`' },
  ADMIN_PORT: {
    ...ADMIN,
    what: 'the port of the listener for operators; 0 chooses any free port, which is also the default with `PORT=0`',
    values: '0–65535',
    fallback: '8404',
  },
  ADMIN_URL: {
    ...ADMIN,
    what: 'the URL of the listener for operators, if it is behind a proxy',
    values: 'URL',
  },
  ADMIN_TOKEN: {
    ...ADMIN,
    what: 'the token that opens the operator page; must differ from the tokens of other pages, such as `PANEL_TOKEN`',
    values: 'at least 16 characters',
    fallback: 'generated',
  },
  TRUST_PROXY: {
    what: "how many proxies are in front of the server, each of which appends its caller's address to `X-Forwarded-For`",
    see: 'how-to/operating.md#limits-per-address',
  },
  SHOP_DIR: {
    what: 'the directory of the shop: its `openapi.yaml`, and its handlers, compiled in `dist/`',
    fallback: 'the current directory',
  },
  STATE_DIR: {
    what: "the directory of the ledger, and of the sandbox's chain and keys",
    fallback: '`.coinslot`',
  },
  DATABASE_URL: {
    what: 'the location of the ledger; PostgreSQL to run several processes or machines, also with a primary and standbys: `postgres://user@one:5432,two:5432/ledger?target_session_attrs=read-write`',
    values: '`file:…`, `postgres://…`',
    fallback: 'SQLite in `STATE_DIR`',
    see: 'how-to/backends.md#postgresql-that-survives-the-loss-of-its-primary',
  },
  DATABASE_READ_URL: {
    what: 'a streaming replica of the PostgreSQL database, from which the sales on the operator page and the reports of `ledger` are read while it is at most ten seconds behind; no decision about money uses it',
    values: '`postgres://…`',
    fallback: 'none',
    see: 'how-to/backends.md#reports-from-a-replica',
  },
  DATABASE_DIRECT_URL: {
    what: 'the same PostgreSQL database, without a connection pooler; needed if `DATABASE_URL` points to PgBouncer or another pooler',
    values: '`postgres://…`',
    fallback: '`DATABASE_URL`',
    see: 'how-to/backends.md#a-pooler-in-front-of-postgresql',
  },
  SOLANA_RPC_URL: {
    what: 'Solana RPC servers in order of preference. A server for another network is named in the log and never used. A user name, password or query in a URL is sent with each request and never shown',
    values: 'URLs, comma-separated',
    fallback: "the network's public server",
    see: 'how-to/backends.md#rpc-servers',
  },
  FACILITATOR_URL: {
    what: 'x402 v2 facilitators for Solana in order of preference. A user name, password or query in a URL is sent with each request and never shown',
    values: 'URLs or `embedded`, comma-separated',
    fallback: 'a public facilitator that needs no key',
    see: 'how-to/backends.md#facilitators',
  },
  'FACILITATOR_<n>_HEADER': {
    ...FACILITATOR_CREDENTIALS,
    what: 'a header sent with each request to the n-th facilitator',
    values: '`Name: value`',
  },
  'FACILITATOR_<n>_RATE': {
    ...FACILITATOR_CREDENTIALS,
    what: 'how many requests per second the n-th facilitator allows',
    values: '1–1000000',
  },
  CDP_API_KEY_ID: { ...FACILITATOR_CREDENTIALS, what: "the id of the key for Coinbase's facilitator" },
  CDP_API_KEY_SECRET: {
    ...FACILITATOR_CREDENTIALS,
    what: "the secret of the key for Coinbase's facilitator",
  },
  METHODS: {
    what: 'the payment protocols: x402, optionally with MPP',
    values: '`x402`, `x402,mpp`',
    fallback: '`x402`',
    see: 'how-to/mpp.md',
  },
  MPP_SECRET: {
    what: 'with `mpp` in `METHODS`: the secret that signs the challenges of MPP, the same on all servers. If there are several, the first signs and all are accepted. Required outside the sandbox',
    values: 'at least 32 characters each, comma-separated',
    fallback: 'generated in the sandbox',
    see: 'how-to/mpp.md#the-secret',
  },
  RECEIPT_KEY: {
    what: 'the Ed25519 key that signs receipts, as PEM; put it into a file and set `RECEIPT_KEY_FILE` to its path',
    values: 'PEM (PKCS #8)',
    fallback: 'generated in `STATE_DIR`',
    see: 'how-to/receipts.md#the-key',
  },
  FEE_PAYER_KEYPAIR: {
    ...FEE_PAYER,
    what: 'with `embedded` in `FACILITATOR_URL`: the file with the key pair that pays the fees',
    fallback: 'generated in the sandbox',
  },
  FEE_PAYER_SECOND_KEYPAIR: {
    what: 'the file with a second key pair, the new or the old one, while the key is being changed: it signs payments that name it, but is not offered',
    see: 'how-to/rotate.md#the-fee-payer',
  },
  FEE_PAYER_FLOOR: { ...FEE_PAYER, what: 'the balance in lamports below which the fee payer signs nothing' },
  FEE_PAYER_HOURLY_CAP: {
    ...FEE_PAYER,
    what: 'the maximum number of lamports that the fee payer may spend per hour',
  },
  ORDER_ATTEMPTS: {
    what: 'how many times an order is attempted before only the operator can retry it',
    see: 'how-to/operating.md#orders-that-failed',
  },
  REFUND_OWED_AFTER: {
    ...REFUNDS,
    what: 'the minutes after which the server itself refunds an order that was given up',
    values: '0–43200',
    fallback: 'never: only you refund',
  },
  REFUND_KEYPAIR: {
    ...REFUNDS,
    what: 'the file with the key pair of the wallet that pays automatic refunds',
  },
  REFUND_DAILY_CAP: {
    ...REFUNDS,
    what: 'the most USDC that automatic refunds may pay in 24 hours, across all servers',
    values: 'USDC',
  },
  REFUND_FLOOR: {
    ...REFUNDS,
    what: 'the USDC that automatic refunds leave in their wallet',
    values: 'USDC',
    fallback: '0',
  },
  HOLD_SECONDS: {
    what: 'how long the server holds a call that waits for an order, or for work that another request began',
  },
  ORDER_MINUTES: {
    what: "how long an attempt at an order may take, for example to collect people's replies; a handler may extend it once",
    see: 'how-to/people.md',
  },
  MAX_UNSETTLED_PER_PAYER: { what: 'how many unsettled calls one payer may have' },
  UNSOLD_CALLS_PER_HOUR: {
    what: 'how many calls per hour to one backend may end without a sale, in addition to the allowances of the buyers themselves',
    see: 'how-to/sell-an-existing-api.md#what-unsold-calls-cost',
  },
  ANSWER_STORE_MB: {
    what: 'space in the ledger for paid answers until they expire. A speech of 2 500 characters typically takes 7 MB for 10 minutes. An answer that was given as a link over MCP is kept for a day, unless more than half the space is used. When the space is used up, calls get 503',
  },
  RETENTION_DAYS: {
    what: 'days after which the ledger deletes the requests of finished orders, what people wrote for them, and request ids; 0: never',
    see: 'how-to/operating.md#what-the-ledger-keeps',
  },
  PAYER_RETENTION_DAYS: {
    what: 'days after which the ledger deletes the payer of a finished call, which can then no longer be refunded; 0: never',
    see: 'how-to/operating.md#what-the-ledger-keeps',
  },
  LISTED: {
    what: '`false` keeps all operations out of the directories of facilitators; `x-listed: false` in the contract does so for one operation',
    see: 'how-to/operating.md#being-listed',
  },
  CATALOGUE_FACILITATORS: {
    what: 'x402 facilitators that settle the first sale of each operation, and then one every few hours, so that their directories list it: for shops with `FACILITATOR_URL=embedded`. A user name, password or query in a URL is sent with each request and never shown',
    values: 'URLs, comma-separated',
    fallback: 'none',
    see: 'how-to/operating.md#being-listed-with-your-own-facilitator',
  },
  CATALOGUE_HOURS: {
    what: 'the hours between two sales of an operation through `CATALOGUE_FACILITATORS`',
    see: 'how-to/operating.md#being-listed-with-your-own-facilitator',
  },
  WEBHOOK_URLS: {
    what: 'where events are sent: webhooks, Slack, Discord and Telegram by their URLs, mailboxes as `smtps://user:password@host?to=…`. `#` and event types joined by `+` choose the events of a target',
    values: 'URLs, comma-separated; a secret',
    fallback: 'none',
    see: 'how-to/be-told.md',
  },
  WEBHOOK_SECRET: {
    what: 'the key that signs webhooks as defined by Standard Webhooks; two keys while one replaces the other',
    values: '`whsec_…`, comma-separated',
    see: 'how-to/be-told.md#check-the-signature',
  },
  ALLOW_PRIVATE_WEBHOOKS: {
    what: '`true` allows private addresses as targets in `WEBHOOK_URLS`',
    see: 'how-to/be-told.md#addresses',
  },
  ALLOW_PRIVATE_UPSTREAMS: {
    what: '`true` allows private addresses for the APIs that the contract sells',
    see: 'how-to/sell-an-existing-api.md#addresses',
  },
  SANDBOX_RPC_PORT: { what: "the port of the sandbox's chain" },
  SANDBOX_FACILITATOR_PORT: { what: "the port of the sandbox's facilitator" },
  LOG_LEVEL: {
    what: 'how much is logged to stdout: as readable lines on a terminal, otherwise as JSON lines; `debug` shows what is decided for each payment',
    see: 'how-to/operating.md#the-log',
  },
};
