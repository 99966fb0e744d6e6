import { closeSync, fsyncSync, openSync, readSync, fstatSync, writeSync } from 'node:fs';

/**
 * The outcome of a payment. `released`: the chain shows that its transaction was not settled and never will be. `unanswered`: it counts as
 * spent, and the shop no longer gives an answer for it. `refunded`: it also counts as spent, because the refund is only the shop's claim.
 */
export type StatementEvent =
  'signed' | 'answered' | 'refused' | 'released' | 'landed' | 'unanswered' | 'refunded';

/**
 * A line of the statement. `amount` in USDC, `transaction` the transfer's signature if it is known, `link` the address of the answer if
 * the shop gave a link instead of the answer.
 */
export type StatementLine = {
  at: string;
  event: StatementEvent;
  shop: string;
  tool: string;
  amount: string;
  network: string;
  payTo: string;
  payment: string;
  transaction?: string;
  link?: string;
  note?: string;
};

/** The statement can be large, so only this much of its end is read. */
const TAIL_BYTES = 64 * 1024;
const NEWLINE = 10;

/** Appends a line and waits until it is on disk. An incomplete line that a crash left stays in the file, as a separate line. */
export function appendLine(file: string, line: StatementLine): void {
  const fd = openSync(file, 'a+', 0o600);
  try {
    const { size } = fstatSync(fd);
    const last = Buffer.alloc(1);
    const torn = size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== NEWLINE;
    writeSync(fd, `${torn ? '\n' : ''}${JSON.stringify(line)}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The last lines, oldest first. Incomplete lines are left out. */
export function lastLines(file: string, count: number): StatementLine[] {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  try {
    const { size } = fstatSync(fd);
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(fd, tail, 0, tail.length, size - tail.length);
    const lines = tail.toString('utf8').split('\n');
    return lines.flatMap(readLine).slice(-count);
  } finally {
    closeSync(fd);
  }
}

function readLine(text: string): StatementLine[] {
  try {
    return [JSON.parse(text) as StatementLine];
  } catch {
    return [];
  }
}
