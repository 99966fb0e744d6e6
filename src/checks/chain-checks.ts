import { toDecimal } from '../price/amount.js';
import { toAddress } from '../rails/solana/address.js';
import { readChainClock } from '../rails/solana/chain-clock.js';
import { networkOf, TOKEN_PROGRAM } from '../rails/solana/networks.js';
import type { SolanaChain, SurveyedServer } from '../rails/solana/rpc.js';
import type { Account } from '../rails/solana/rpc-results.js';
import type { Check, Finding } from './preflight.js';
import type { Terms } from '../methods/x402/requirements.js';
import { receiverAccount } from '../rails/solana/transaction.js';

/** The layout of a token account of the Token program. */
const TOKEN_ACCOUNT = { bytes: 165, mint: 0, owner: 32, amount: 64, state: 108 };
const FROZEN = 2;
/** The chain's own clock may be seconds off, and has been half an hour off. */
const CLOCK_OFF_MS = { warning: 60_000, error: 3_600_000 };

/** Whether the RPC servers serve the configured network, judged by their genesis hashes. */
export function rpcCheck(chain: Pick<SolanaChain, 'survey'>, { network }: Terms): Check {
  const subject = 'SOLANA_RPC_URL';
  return {
    subject,
    async look(signal) {
      const servers = await chain.survey(signal);
      const foreign = servers.filter(server => isForeign(server, network));
      const answering = servers.filter(({ genesis }) => genesis !== undefined);
      if (foreign.length > 0 && foreign.length === answering.length) {
        const each = foreign.map(({ name, genesis }) => `${name} (genesis ${genesis})`);
        const found = `must serve ${network}, not another network: ${each.join(', ')}`;
        return [{ level: 'error', subject, found, todo: 'set it to a server for that network' }];
      }
      return servers.map(server => findingOf(server, network, subject));
    },
  };
}

function isForeign({ genesis }: SurveyedServer, network: string): boolean {
  return genesis !== undefined && networkOf(genesis) !== network;
}

function findingOf(server: SurveyedServer, network: string, subject: string): Finding {
  const { name, genesis } = server;
  if (genesis === undefined)
    return {
      level: 'warning',
      subject,
      found: `the RPC server ${name} does not answer`,
      todo: 'check its URL and its key; while no RPC server answers, paid calls get 503',
    };
  if (isForeign(server, network))
    return {
      level: 'warning',
      subject,
      found: `the RPC server ${name} does not serve ${network} and is ignored`,
      todo: 'remove it',
    };
  return { level: 'ok', subject, found: `the RPC server ${name} serves ${network}` };
}

/** Whether the receiver can be paid: its USDC account exists, belongs to it, and is not frozen. */
export function receiverCheck(chain: Pick<SolanaChain, 'account'>, terms: Terms): Check {
  const subject = 'PAY_TO';
  return {
    subject,
    async look(signal) {
      const address = receiverAccount(terms);
      const account = await chain.account(address, signal, TOKEN_ACCOUNT.bytes);
      return [{ subject, ...judgeReceiver(account, address, terms) }];
    },
  };
}

function judgeReceiver(
  account: Account | null,
  address: string,
  { payTo, asset }: Terms,
): Omit<Finding, 'subject'> {
  // Lamports sent to the address before the account was created leave an account that can't hold USDC.
  if (account?.owner !== TOKEN_PROGRAM || account.data.length < TOKEN_ACCOUNT.bytes)
    return {
      level: 'error',
      found: `${payTo} has no USDC token account (${address})`,
      todo:
        'create it, for instance with ' +
        `spl-token create-account ${asset} --owner ${payTo} --fee-payer <your keypair>`,
    };
  const { data } = account;
  const keyAt = (offset: number): string => toAddress(data.subarray(offset, offset + 32));
  const mint = keyAt(TOKEN_ACCOUNT.mint);
  const owner = keyAt(TOKEN_ACCOUNT.owner);
  if (mint !== asset)
    return {
      level: 'error',
      found: `its token account ${address} is for ${mint}, not for USDC ${asset}`,
      todo: 'use another address',
    };
  if (owner !== payTo)
    return {
      level: 'error',
      found: `its USDC account ${address} was handed over to ${owner}, so ${payTo} can't spend what is paid`,
      todo: 'use another address',
    };
  if (data[TOKEN_ACCOUNT.state] === FROZEN)
    return {
      level: 'error',
      found: `the USDC account ${address} of ${payTo} is frozen, so no payment can be settled`,
      todo: 'ask the issuer of USDC, or use another address',
    };
  const held = toDecimal(data.readBigUInt64LE(TOKEN_ACCOUNT.amount));
  return { level: 'ok', found: `${payTo} is paid in account ${address}, which holds ${held} USDC` };
}

/** Compares the clock of this machine with the time of the chain's last block. */
export function clockCheck(chain: Pick<SolanaChain, 'account'>, now: () => number = Date.now): Check {
  const subject = 'clock';
  return {
    subject,
    async look(signal) {
      const { time } = await readChainClock(chain, 'confirmed', signal);
      const ahead = now() - time;
      const off = Math.abs(ahead);
      const found = `this machine is ${Math.round(off / 1_000)} s ${ahead < 0 ? 'behind' : 'ahead of'} the chain`;
      if (off <= CLOCK_OFF_MS.warning) return [{ level: 'ok', subject, found }];
      const level = off > CLOCK_OFF_MS.error ? 'error' : 'warning';
      const todo = 'synchronise its clock (NTP); if it is right, the RPC server is behind, or the chain is';
      return [{ level, subject, found, todo }];
    },
  };
}
