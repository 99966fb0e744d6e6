import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Json } from '../../contract/json.js';
import { isObject, textOf } from '../conformance/http-call.js';
import type { Standing } from './directory.js';
import { nameOf, type ReadShop } from './read-shop.js';

/** The files for pay-skills can't be written; the message says why. */
export class PaySkillsFault extends Error {}

const DIRECTORY = 'pay-skills';
const REPOSITORY = 'https://github.com/solana-foundation/pay-skills';
/** The categories that pay-skills' CONTRIBUTING.md allows. */
const CATEGORIES =
  'ai_ml cloud compute data devtools finance identity maps media messaging other productivity search security shopping storage translation'.split(
    ' ',
  );
const NAME = /^[a-z0-9][a-z0-9-]*\/[a-z0-9][a-z0-9-]*$/;
const MAX_TEXT = 255;
const MIN_DESCRIPTION = 64;
const MIN_USE_CASE = 32;
/** A placeholder for values that only the seller knows. The catalogue's checks refuse this word, so it can't be forgotten. */
const CHOOSE = 'CHOOSE';

/** The shop's standing in this catalogue, for a command that writes no files. */
export function paySkillsUnwritten(): Standing {
  const next = [
    `coinslot list <url> --pay-skills <operator>/<name> --category <one of ${CATEGORIES.join(', ')}> writes the files of a pull request`,
  ];
  return {
    directory: DIRECTORY,
    state: 'unknown',
    found: 'entries are added by pull request; `pay` then finds them',
    next,
  };
}

/**
 * Writes the provider file and the description of a shop in the form that the catalogue requires.
 * @param provider `operator/name`
 * @throws PaySkillsFault
 */
export function writeProvider(shop: ReadShop, folder: string, provider: string, category = CHOOSE): Standing {
  if (!NAME.test(provider))
    throw new PaySkillsFault(
      `--pay-skills ${provider} is not <operator>/<name> in lower-case letters, digits and hyphens.`,
    );
  if (category !== CHOOSE && !CATEGORIES.includes(category))
    throw new PaySkillsFault(`--category ${category} is not one of ${CATEGORIES.join(', ')}.`);
  const { document } = shop.catalogue;
  if (!document) throw new PaySkillsFault('The shop has no /openapi.json, which the catalogue needs.');
  const at = join(folder, 'providers', provider);
  const file = join(at, 'PAY.md');
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, 'openapi.json'), `${JSON.stringify(document, null, 2)}\n`);
  const text = providerText(shop, provider, category);
  // The seller may have edited the file, so it is not overwritten.
  const kept = existsSync(file) && readFileSync(file, 'utf8') !== text;
  if (!kept) writeFileSync(file, text);
  const next = [
    ...(kept
      ? []
      : text.includes(CHOOSE)
        ? [`replace every ${CHOOSE} in ${file}: the catalogue's checks refuse this word`]
        : []),
    `copy ${join(folder, 'providers', provider)} into a fork of ${REPOSITORY}`,
    `pay catalog check providers/${provider}/PAY.md, and open a pull request`,
  ];
  const found = kept
    ? `openapi.json was rewritten; ${file} was edited by hand and is left unchanged`
    : `${file} and openapi.json are written`;
  return { directory: DIRECTORY, state: 'not listed', found, next };
}

/** PAY.md: data for the catalogue, and a text for agents. */
function providerText({ catalogue }: ReadShop, provider: string, category: string): string {
  const { base, sold } = catalogue;
  const { info } = catalogue.document ?? {};
  const { title, summary, description, version } = isObject(info) ? info : ({} as Json);
  const offers = sold.map(operation => `${textOf(operation.described?.['summary'] ?? nameOf(operation))}`);
  const about = [summary, description].find(text => typeof text === 'string' && text !== '');
  const head = {
    name: provider.split('/')[1],
    title: textOf(title),
    description: described(lineOf(about ?? title), offers),
    use_case: shortened(atLeast(`Use for ${offers.join('; ')}`, MIN_USE_CASE)),
    category,
    service_url: base,
    version: textOf(version),
    openapi: { path: 'openapi.json' },
  };
  const prices = sold.map(
    operation =>
      `- \`${nameOf(operation)}\`: ${operation.amount ?? 'the 402 says how many'} USDC. ${lineOf(operation.described?.['summary'])}`,
  );
  return [
    `---\n${stringify(head, { lineWidth: 0 })}---`,
    `${lineOf(description) || lineOf(title)}`,
    '## Prices',
    prices.join('\n'),
    '## Spend-aware usage',
    '- A call that is refused or fails costs nothing. The same payment sent again with the same call gets the same answer.',
    '',
  ].join('\n\n');
}

function described(text: string, offers: readonly string[]): string {
  if (text.length >= MIN_DESCRIPTION) return shortened(text);
  return shortened(atLeast(`${text.replace(/\.$/, '')}: ${offers.join('; ')}`, MIN_DESCRIPTION));
}

/** Adds a sentence about payment to a text that is too short for the catalogue. */
function atLeast(text: string, length: number): string {
  return text.length < length
    ? `${text}. Paid per call in USDC on Solana over x402, without keys or accounts.`
    : text;
}

function lineOf(text: unknown): string {
  return typeof text === 'string' ? text.trim().replace(/\s+/g, ' ') : '';
}

/** The text, cut after the last whole word that fits. */
function shortened(text: string): string {
  if (text.length <= MAX_TEXT) return text;
  const kept = text.slice(0, MAX_TEXT - 1);
  return `${kept.slice(0, kept.lastIndexOf(' ')).trimEnd()}…`;
}
