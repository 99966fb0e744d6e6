import { setTimeout as sleep } from 'node:timers/promises';
import { LedgerFault } from './fault.js';

/** The delays, in ms, between attempts to free a claim. Together they are shorter than the lease of a claim. */
const RETRY_MS = [1_000, 4_000, 10_000, 20_000, 30_000];

/**
 * Makes a claim. If it is unknown whether the claim was committed, frees it in the background, because no server is working on it and none
 * could claim the payment until its lease ends.
 * @param free must free this claim only
 */
export async function claimedForCertain<T>(claim: Promise<T>, free: () => Promise<unknown>): Promise<T> {
  try {
    return await claim;
  } catch (error) {
    if (error instanceof LedgerFault && error.code === 'unknown') void freeLater(free);
    throw error;
  }
}

/** Frees a claim. If that fails, tries again in the background until the ledger answers. */
export async function freedForCertain<T>(free: () => Promise<T>): Promise<T> {
  try {
    return await free();
  } catch (error) {
    void freeLater(free);
    throw error;
  }
}

async function freeLater(free: () => Promise<unknown>): Promise<void> {
  for (const ms of RETRY_MS) {
    await sleep(ms, undefined, { ref: false });
    const isAnswered = await free().then(
      () => true,
      () => false,
    );
    if (isAnswered) return;
  }
}
