import { formName } from '../contract/answer-forms.js';
import type { Contract, Parameter, PricedOperation, RequestBody } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { objectOf } from '../contract/references.js';
import { writtenExample } from '../contract/sent-body.js';
import { MCP_PATH, REFERENCE_PATH } from '../contract/reserved-names.js';
import { bodyFields, callShape, typeText } from '../methods/x402/describe-call.js';
import { quotaText } from '../contract/read-quota.js';
import { noteOf, type Selling } from './discovery.js';
import { resourceUrl } from '../methods/x402/requirements.js';
import { STATUS_MEANINGS } from './status-meanings.js';

/**
 * The information that a language model needs to buy here, in the format of llmstxt.org: a heading, a summary, how to pay, and lists of
 * links. Everything comes from the contract. `/llms.txt` has one line for each operation, `/llms-full.txt` its full description.
 */
export type LlmsTexts = { short: string; full: string };

export function llmsTexts(contract: Contract, selling: Selling): LlmsTexts {
  const head = [...introduction(contract), ...howToPay(selling)];
  const links = [...paidLinks(contract, selling), ...documentLinks(contract, selling)];
  const details = [
    ...contract.paid.flatMap(operation => operationText(contract, operation, selling)),
    ...answersText(contract, selling),
  ];
  return { short: pageOf([...head, ...links]), full: pageOf([...head, ...links, ...details]) };
}

const pageOf = (blocks: string[]): string => `${blocks.join('\n\n')}\n`;

/** A text on one line, because readers split llms.txt into lines. Empty if the value is not a string. */
export const line = (text: unknown): string =>
  typeof text === 'string' ? text.trim().replace(/\s+/g, ' ') : '';

const fenced = (value: unknown): string => `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``;

function introduction({ document }: Contract): string[] {
  const { title, summary, description } = objectOf(document.info);
  const text = line(description);
  return [`# ${line(title)}`, `> ${line(summary) || text}`, ...(line(summary) && text ? [text] : [])];
}

function howToPay({ methods }: Selling): string[] {
  const [first, ...others] = methods.all.map(method => method.documents().steps.join('\n'));
  return [
    'How to buy a call:',
    first ?? '',
    'What each status means for your money:',
    [
      ...STATUS_MEANINGS.map(([status, meaning]) => `- ${status}: ${meaning}`),
      '- `Location` of an answer: where it can be fetched again, free and without the payment. Keep it secret.',
    ].join('\n'),
    ...others,
  ];
}

function paidLinks({ paid }: Contract, selling: Selling): string[] {
  return ['## Paid operations', paid.map(operation => paidLink(operation, selling)).join('\n')];
}

/** The link, the price and the call, with an example that can be sent as it is. */
function paidLink(operation: PricedOperation, selling: Selling): string {
  const { summary, price, pricing, method, request, answers, flow, free } = operation;
  const terms = pricing.terms === undefined ? '' : `, ${pricing.terms}`;
  const given = free ? ` ${quotaText(free)}` : '';
  const [form] = answers;
  const example = request
    ? ` Example: \`${method} ${operation.examplePath} ${exampleBody(request)}\`.`
    : ` Example: \`${method} ${operation.examplePath}\`.`;
  const upfront = flow === 'upfront' ? ' Paid before the work, which can take minutes.' : '';
  return (
    `- [${line(summary)}](${resourceUrl(operation, selling)}): ${price.shown}${terms}. \`${callShape(operation)}\`, answers ` +
    `\`${formName(form)}\`.${given}${upfront}${example}`
  );
}

/** The body as sent, if that is one line of text. */
function exampleBody(request: RequestBody): string {
  const { kind, example } = request;
  return kind === 'form' ? String(writtenExample(request).body) : JSON.stringify(example);
}

function documentLinks({ free, paid, document }: Contract, selling: Selling): string[] {
  const { publicUrl } = selling;
  const paths = objectOf(document.paths);
  const link = (path: string): string => {
    const { summary, description } = objectOf(objectOf(paths[path]).get);
    const note = line(description);
    return `- [${line(summary)}](${publicUrl}${path})${note ? `: ${note}` : ''}`;
  };
  const first = free.filter(({ id }) => id === 'getOpenapi' || id === 'getDiscovery');
  const listed = free.filter(
    each => !first.includes(each) && !each.answers && !each.discovery && !each.health,
  );
  const hasReference = ![...free, ...paid].some(({ path }) => path === REFERENCE_PATH);
  return [
    '## Documents',
    [
      `- [Everything in one file](${publicUrl}/llms-full.txt): fields, limits, examples and errors of each operation.`,
      `- [Skill for agents](${publicUrl}/skill.md): what is sold, how to pay and how to resend, short enough for a prompt.`,
      ...first.map(({ path }) => link(path)),
      ...(hasReference
        ? [`- [API reference](${publicUrl}${REFERENCE_PATH}): the same description as a page for people.`]
        : []),
      `- [MCP](${publicUrl}${MCP_PATH}): the same operations as tools, over Streamable HTTP (POST).`,
    ].join('\n'),
    '## Optional',
    listed.map(({ path }) => link(path)).join('\n'),
  ];
}

function operationText({ document }: Contract, operation: PricedOperation, selling: Selling): string[] {
  const { id, path, method, summary, parameters, request, answers } = operation;
  const { description } = objectOf(objectOf(objectOf(document.paths)[path])[method.toLowerCase()]);
  const [form] = answers;
  const { kind, example } = form;
  const inUrl = parameters.map(each =>
    field({ name: each.name, schema: each.plain, required: each.required, where: each.in }),
  );
  const inBody = request?.objectArguments ? bodyFields(request.plain).map(field) : [];
  return [
    `## ${id}: ${line(summary)}`,
    `${line(description)} ${noteOf(operation, selling.methods)}`.trim(),
    `Call: \`${callShape(operation)}\` at ${resourceUrl(operation, selling)}`,
    ...(inUrl.length + inBody.length > 0 ? [[...inUrl, ...inBody].join('\n')] : []),
    ...(request ? ['Example of the body:', fenced(request.example)] : []),
    ...(kind === 'json' && example !== undefined
      ? ['Example of the answer:', fenced(example)]
      : [`The answer is ${formName(form)}.`]),
  ];
}

type Field = { name: string; schema: Json; required: boolean; where?: Parameter['in'] };

function field({ name, schema, required, where }: Field): string {
  const facts = [typeText(schema), required ? 'required' : 'optional', ...limitsOf(schema)];
  const text = line(schema.description);
  return `- \`${name}\` (${[...(where ? [`in the ${where}`] : []), ...facts].join(', ')})${text ? `: ${text}` : ''}`;
}

/** Limits in the wording of error messages. */
const LIMITS: [key: string, words: (limit: string) => string][] = [
  ['minLength', limit => `at least ${limit} ${limit === '1' ? 'character' : 'characters'}`],
  ['maxLength', limit => `at most ${limit} characters`],
  ['minimum', limit => `at least ${limit}`],
  ['maximum', limit => `at most ${limit}`],
  ['minItems', limit => `at least ${limit} ${limit === '1' ? 'item' : 'items'}`],
  ['maxItems', limit => `at most ${limit} items`],
  ['pattern', limit => `pattern ${limit}`],
  ['default', limit => `default ${limit}`],
];

function limitsOf(schema: Json): string[] {
  return LIMITS.flatMap(([key, words]) => {
    const limit = schema[key];
    if (limit === undefined) return [];
    return [words(typeof limit === 'string' ? limit : JSON.stringify(limit))];
  });
}

function answersText({ paid }: Contract, { methods }: Selling): string[] {
  const [operation] = paid;
  if (!operation) return [];
  return [
    '## An example of a challenge',
    `The 402 of \`${operation.id}\`; the one that you get has other addresses and extensions.`,
    fenced(JSON.parse(methods.first.example(operation).body.toString('utf8'))),
    '## How long answers are kept',
    'The same payment with the same body gets the same answer for 10 minutes after its delivery, for 24 hours where the payment ' +
      'carries a payment-identifier (an id of the buyer’s choice, 16 to 128 letters, digits, `_` and `-`, in ' +
      '`extensions["payment-identifier"].info.id` of the payment payload) and the answer is under 256 KB, and for 7 days where the ' +
      'operation is paid for before it does its work. A payment with an identifier is redeemed only with that same identifier; without one, anyone ' +
      'who reads the payment on the chain can fetch the answer while it is kept.',
  ];
}
