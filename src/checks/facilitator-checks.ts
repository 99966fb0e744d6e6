import type { SolanaChain } from '../rails/solana/rpc.js';
import { EMBEDDED } from '../facilitators/embedded-facilitator.js';
import { FacilitatorUnreachable } from '../facilitators/facilitator.js';
import type { Facilitators } from '../facilitators/facilitators.js';
import { inSol } from '../facilitators/fee-payer-guard.js';
import type { Check, Finding } from './preflight.js';
import type { Terms } from '../methods/x402/requirements.js';

/** Enough for about 4 000 settlements, at about 10 000 lamports each, and four times the default FEE_PAYER_FLOOR. */
const NEARLY_EMPTY_LAMPORTS = 40_000_000n;
const subject = 'FACILITATOR_URL';

type Asked = Pick<Facilitators, 'names' | 'nameOf' | 'feePayers' | 'refresh' | 'isForDirectory'>;

/**
 * Whether each facilitator supports the offers (x402 v2, scheme `exact`, our network) and names a fee payer, which must have SOL left.
 * Asks each once; `facilitators` keeps the answers.
 * @param hadAnswer whether a facilitator's fee payer is known from an earlier run: then the server can start even if none answers
 */
export function facilitatorCheck(
  facilitators: Asked,
  chain: Pick<SolanaChain, 'balance'>,
  { network }: Terms,
  hadAnswer: boolean,
): Check {
  return {
    subject,
    async look(signal) {
      const failures = await facilitators.refresh(network);
      const answering = facilitators.names.filter(name => !failures.has(name));
      const selling = answering.filter(name => !facilitators.isForDirectory(name));
      const failed = [...failures].map(([name, error]): Finding => {
        if (facilitators.isForDirectory(name)) return unlisted(error as Error);
        const isOutage = error instanceof FacilitatorUnreachable;
        const level = isOutage && (hadAnswer || selling.length > 0) ? 'warning' : 'error';
        return { level, subject, ...adviceOn(error as Error), fatal: level === 'error' };
      });
      const feePayers = facilitators.feePayers.filter(each =>
        answering.includes(facilitators.nameOf(each) ?? ''),
      );
      const funds = await Promise.all(
        feePayers.map(each => lookAtFunds(facilitators.nameOf(each) ?? '', each, chain, signal)),
      );
      return [...failed, ...funds];
    },
  };
}

/** A facilitator that is used only for its directory can't prevent sales, so this is a warning. */
function unlisted({ message }: Error): Finding {
  const todo = 'wait until it answers, or remove it from CATALOGUE_FACILITATORS; it lists nothing until then';
  return { level: 'warning', subject: 'CATALOGUE_FACILITATORS', found: message, todo };
}

/**
 * What to report about a facilitator that fails: if it is merely unusable, the error's message already says
 * what to do.
 */
function adviceOn(error: Error): Pick<Finding, 'found' | 'todo'> {
  if (!(error instanceof FacilitatorUnreachable)) return { found: error.message };
  return { found: error.message, todo: 'start it, or set FACILITATOR_URL to one that answers' };
}

async function lookAtFunds(
  name: string,
  feePayer: string,
  chain: Pick<SolanaChain, 'balance'>,
  signal: AbortSignal,
): Promise<Finding> {
  const found = `${name} supports every offer, and pays the fees from ${feePayer}`;
  try {
    const lamports = await chain.balance(feePayer, signal);
    const holds = `${found}, which holds ${inSol(lamports)} SOL`;
    if (lamports >= NEARLY_EMPTY_LAMPORTS) return { level: 'ok', subject, found: holds };
    const todo = name === EMBEDDED ? 'send it SOL' : 'tell its operator, or add another facilitator';
    return { level: 'warning', subject, found: holds, todo };
  } catch (error) {
    return {
      level: 'warning',
      subject,
      found: `${found}; its balance was not checked: ${(error as Error).message}`,
    };
  }
}
