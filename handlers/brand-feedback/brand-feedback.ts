import type { operations } from '../../generated/openapi.js';
import {
  openPayer,
  setting,
  UpstreamFailure,
  withSettings,
  type Body,
  type Handler,
  type HandlerContext,
  type Log,
  type OrderRef,
  type Ready,
  type Served,
  type ValuesOf,
} from 'coinslot';
import { createBrandFeedback } from './aggregate.js';
import { withOpinions } from './with-opinions.js';
import { finishingWhereBegun } from './begun-elsewhere.js';
import { openPanel } from './open-panel.js';
import { orderReplies } from './order-replies.js';
import { createPanelPeople, type PanelPeopleOptions } from './panel-people.js';
import type { PartialRule, People } from './people.js';
import { REPLY_TABLES, replyStoreOn } from './reply-store.js';
import { Respondents } from './respondents.js';
import { createSandboxPeople } from './sandbox-people.js';
import type { SentimentModel } from './sentiment-model.js';
import type { Reply, ReplyStore } from './replies.js';

const VISIBLE = /[\p{L}\p{N}\p{P}\p{S}]/u;

type BrandFeedback = operations['brandFeedback'];

/** How many people an order asks. The default is in the contract, and is filled in before the handler is called. */
function respondentsWanted({ n }: Pick<Body<BrandFeedback>, 'n'>): number {
  if (n === undefined) throw new Error('n of brandFeedback must have a default in openapi.yaml');
  return n;
}

const DOLLARS = { pattern: /^\d{1,6}(\.\d{1,6})?$/, form: 'an amount in dollars such as 0.40' };
const KEY_PAIR = /^\s*\[\s*(?:\d{1,3}\s*,\s*){63}\d{1,3}\s*\]\s*$/;

const SETTINGS = {
  people: setting.oneOf(
    'PEOPLE',
    'who answers: the panel, its sample respondents (sandbox), or a marketplace',
    {
      values: ['panel', 'sandbox', 'rapidata', 'wurk'],
    },
  ),
  partial: setting.oneOf('PARTIAL', 'what happens to an order that fewer than half of the people answered', {
    values: ['deliver', 'owe'],
    default: 'deliver',
  }),
  panelToken: setting.token(
    'PANEL_TOKEN',
    'the token that signs people in to the panel, the page on which they answer',
  ),
  respondentMinutes: setting.integer(
    'RESPONDENT_MINUTES',
    'how long orders are still sold after somebody was last seen on the panel',
    { min: 1, max: 10_080, default: 10 },
  ),
  clientId: setting.text('RAPIDATA_CLIENT_ID', 'the client ID at Rapidata'),
  clientSecret: setting.text('RAPIDATA_CLIENT_SECRET', 'the client secret at Rapidata', { secret: true }),
  rapidataUrl: setting.url('RAPIDATA_URL', "the address of Rapidata's API (default https://api.rapidata.ai)"),
  rapidataAuthUrl: setting.url(
    'RAPIDATA_AUTH_URL',
    "the address of Rapidata's token server (default https://auth.rapidata.ai)",
  ),
  modelUrl: setting.url(
    'SUMMARIZER_URL',
    'the API whose model infers opinions that respondents did not state',
  ),
  model: setting.text('SUMMARIZER_MODEL', 'the model to use at `SUMMARIZER_URL`'),
  modelKey: setting.text('SUMMARIZER_API_KEY', 'the key for `SUMMARIZER_URL`', { secret: true }),
  budget: setting.text('RAPIDATA_BUDGET', 'the most that an order may cost at Rapidata, in dollars', {
    default: '0.40',
    ...DOLLARS,
  }),
  wurkKey: setting.text('WURK_SECRET_KEY', 'the wallet that pays WURK: the 64 numbers of a key pair file', {
    secret: true,
    pattern: KEY_PAIR,
    form: 'a JSON array of 64 numbers, as solana-keygen writes it',
  }),
  wurkUrl: setting.url('WURK_URL', 'the address of WURK (default https://wurkapi.fun)'),
  wurkReward: setting.text('WURK_REWARD', 'the reward for a reply at WURK, in dollars', {
    default: '0.025',
    ...DOLLARS,
  }),
  wurkMaxPrice: setting.text(
    'WURK_MAX_PRICE',
    'the most that a reply may cost at WURK, including fees, in dollars',
    {
      default: '0.05',
      ...DOLLARS,
    },
  ),
  wurkBudget: setting.text('WURK_BUDGET', 'the most that an order may cost at WURK, in dollars', {
    default: '0.40',
    ...DOLLARS,
  }),
  wurkFeePayer: setting.text(
    'WURK_FEE_PAYER',
    'the fee payer of payments to WURK if its challenge names none',
  ),
  rpcUrl: setting.text('SOLANA_RPC_URL', 'used to look up the outcome of payments to WURK'),
};
type Values = ValuesOf<typeof SETTINGS>;

/** Sells people's opinions. */
export const brandFeedback = withSettings(SETTINGS, open, faultsOf);

function faultsOf({ people, clientId, clientSecret, wurkKey }: Values, network: string): string[] {
  if (people === 'wurk' && wurkKey === undefined)
    return ['WURK_SECRET_KEY: must be set: PEOPLE=wurk needs a wallet that pays'];
  if ((clientId === undefined) !== (clientSecret === undefined))
    return ['RAPIDATA_CLIENT_ID and RAPIDATA_CLIENT_SECRET: set both or neither'];
  if (people === 'sandbox' && network !== 'sandbox')
    return [
      'PEOPLE: sample respondents are only available in the sandbox; set it to panel, rapidata or wurk',
    ];
  return people === 'rapidata' && clientId === undefined
    ? ['RAPIDATA_CLIENT_ID: must be set: PEOPLE=rapidata needs RAPIDATA_CLIENT_ID and RAPIDATA_CLIENT_SECRET']
    : [];
}

async function open(context: HandlerContext<Values>): Promise<Served<BrandFeedback>> {
  const { settings, notes, shopName, publicUrl } = context;
  const replyStore = replyStoreOn(await context.openStore(REPLY_TABLES), context);
  const presence = new Respondents({ notes, presentMs: settings.respondentMinutes * 60_000 });
  const people = await createPeople(context, { replyStore, presence });
  const model = await createModel(settings);
  return {
    call: brandFeedbackBy(people, replyStore, settings.partial, { model, log: context.log }),
    ready: brandFeedbackReady(people),
    wanted: ({ body }) => respondentsWanted(body),
    backend: 'people',
    health: async () => {
      const { status, detail } = await people.health();
      return status === 'ok' ? { detail: people.name } : { status, detail: `${people.name}: ${detail}` };
    },
    pages: openPanel({
      ...{ replyStore, presence, notes, publicUrl },
      shop: shopName,
      panelToken: settings.panelToken,
      signal: context.closing,
    }),
    admin: orderReplies(replyStore),
    close: async () => {
      await Promise.all([people.close(), model?.close()]);
    },
  };
}

/** The model that reads the opinion of a reply if its author did not state one, and the log for the model's failures. */
type Opinions = { model?: SentimentModel | undefined; log?: Log };

/**
 * Asks until enough people have replied or the deadline has passed. If fewer than half of them have replied by then, extends the time
 * once. Answers with the replies received so far, unless they are still fewer than half and `PARTIAL=owe` is set: the order then stays
 * owed. Safe to run again for the same order, because replies are stored.
 */
export function brandFeedbackBy(
  people: People,
  replyStore: ReplyStore,
  partial: PartialRule,
  { model, log }: Opinions = {},
): Handler<BrandFeedback> {
  return async ({ body, signal, order }) => {
    if (!order) throw new Error('brandFeedback must run as an order');
    const asked = { brand: body.brand, question: body.question, wanted: respondentsWanted(body) };
    const repliesTo = async ({ id, deadline, attempt }: OrderRef): Promise<Reply[]> => {
      await people.ask({ id, deadline, attempt, ...asked }, signal);
      return replyStore.replies(id);
    };
    let replies = await repliesTo(order);
    if (tooFew(replies, asked)) {
      const extended = await order.extend();
      if (extended) replies = await repliesTo(extended);
    }
    if (replies.length === 0) throw new UpstreamFailure('failed', 'Nobody answered before the deadline.');
    if (partial === 'owe' && tooFew(replies, asked))
      throw new UpstreamFailure(
        'failed',
        `Only ${replies.length} of ${asked.wanted} people answered before the deadline.`,
      );
    const { mock, ...feedback } = createBrandFeedback(asked, await withOpinions(replies, model, signal, log));
    return { status: 200, body: mock ? { ...feedback, mock } : feedback };
  };
}

/** Whether fewer than half of the paid replies have arrived. */
function tooFew(replies: Reply[], { wanted }: { wanted: number }): boolean {
  return replies.length * 2 < wanted;
}

/** Rejects an order before the payment if it is invalid or no people are available. */
export function brandFeedbackReady(people: People): Ready<BrandFeedback> {
  return async ({ body }) => {
    const { brand, question } = body;
    const blank = Object.entries({ brand, question }).filter(([, text]) => !VISIBLE.test(text));
    if (blank.length > 0) {
      const names = blank.map(([name]) => name).join(' and ');
      throw new UpstreamFailure('invalid', `${names} must contain at least one letter, digit or symbol`);
    }
    await people.ready(respondentsWanted(body), { brand, question });
  };
}

async function createModel({
  modelUrl: url,
  model,
  modelKey: apiKey,
}: Values): Promise<SentimentModel | undefined> {
  if (url === undefined || model === undefined) return undefined;
  const { createSentimentModel } = await import('./sentiment-model.js');
  return createSentimentModel({ url, model, apiKey });
}

/** Chooses the people to ask. Unused adapters are not loaded. */
async function createPeople(context: HandlerContext<Values>, panel: PanelPeopleOptions): Promise<People> {
  const { network, settings } = context;
  const { people = network.name === 'sandbox' ? 'sandbox' : 'panel' } = settings;
  const marketplace = await openMarketplace(people, context, panel);
  const onPanel = people === 'sandbox' ? createSandboxPeople : createPanelPeople;
  const chosen = typeof marketplace === 'string' ? onPanel(panel) : marketplace;
  return finishingWhereBegun(chosen, {
    replyStore: panel.replyStore,
    open: name => openMarketplace(name, context, panel),
  });
}

/** @returns a message for the operator if there is no such marketplace, or if its settings are missing */
async function openMarketplace(
  name: string,
  { network, settings }: HandlerContext<Values>,
  panel: PanelPeopleOptions,
): Promise<People | string> {
  if (name === 'wurk')
    return settings.wurkKey === undefined
      ? 'set WURK_SECRET_KEY again'
      : createWurk(settings, network, panel);
  if (name === 'rapidata') return createRapidata(settings, panel);
  return 'start the version of Coinslot that knows this marketplace';
}

async function createRapidata(
  { clientId, clientSecret, budget, rapidataUrl: apiUrl, rapidataAuthUrl: authUrl }: Values,
  { replyStore }: PanelPeopleOptions,
): Promise<People | string> {
  if (clientId === undefined || clientSecret === undefined)
    return 'set RAPIDATA_CLIENT_ID and RAPIDATA_CLIENT_SECRET again';
  const { createRapidataPeople } = await import('./rapidata.js');
  const urls = { ...(apiUrl ? { apiUrl } : {}), ...(authUrl ? { authUrl } : {}) };
  return createRapidataPeople({ clientId, clientSecret, budget, replyStore, ...urls });
}

async function createWurk(
  { wurkKey = '', wurkUrl, wurkReward, wurkMaxPrice, wurkBudget, wurkFeePayer, rpcUrl }: Values,
  { caip2 }: HandlerContext['network'],
  { replyStore }: PanelPeopleOptions,
): Promise<People> {
  const { createWurkPeople } = await import('./wurk.js');
  const secretKey = Uint8Array.from(JSON.parse(wurkKey) as number[]);
  const options = { secretKey, network: caip2, rpcUrl: rpcUrl?.split(',')[0], feePayer: wurkFeePayer };
  const payer = await openPayer(options, 'PEOPLE=wurk');
  const limits = { reward: wurkReward, maxPrice: wurkMaxPrice, budget: wurkBudget };
  return createWurkPeople({ replyStore, payer, url: wurkUrl ?? 'https://wurkapi.fun', ...limits });
}
