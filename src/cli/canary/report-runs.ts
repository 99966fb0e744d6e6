import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HttpClient, NoAnswer } from '../../net/http-client.js';
import { readCanaryRun, type CanaryRun } from '../../operator/canary-runs.js';
import type { Admin } from '../running-server.js';

const FILE = 'canary-untold.json';
/** The maximum number of runs to keep, the same as on the server. Older ones are dropped. */
const MAX_UNTOLD = 84;
const ASK_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;

/** Runs not yet reported to the server, kept in a folder, so that a server that was down gets them later. */
export class RunReports {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Stores a run until the server has received it. */
  add(run: CanaryRun): void {
    this.#write([...this.#read(), run]);
  }

  /** Reports all stored runs to the server. @returns why that failed; undefined if it has them all */
  async tell({ url, token }: Admin): Promise<string | undefined> {
    const client = new HttpClient(url, { connections: 1, maxAnswerBytes: MAX_ANSWER_BYTES });
    try {
      for (const run of this.#read()) {
        const { status, text } = await client.request({
          method: 'POST',
          path: `/canary/runs?${new URLSearchParams({ run: JSON.stringify(run) }).toString()}`,
          headers: { authorization: `Bearer ${token}` },
          ms: ASK_MS,
        });
        if (status !== 200) return `${url} answered ${status}: ${text.slice(0, 200).trim()}`;
        this.#write(this.#read().filter(({ id }) => id !== run.id));
      }
      return undefined;
    } catch (error) {
      if (error instanceof NoAnswer) return `${url} can't be reached: ${error.message}`;
      throw error;
    } finally {
      await client.close();
    }
  }

  #read(): CanaryRun[] {
    let kept: unknown;
    try {
      kept = JSON.parse(readFileSync(join(this.#folder, FILE), 'utf8'));
    } catch {
      return [];
    }
    return Array.isArray(kept) ? kept.flatMap(run => readCanaryRun(JSON.stringify(run)) ?? []) : [];
  }

  #write(runs: readonly CanaryRun[]): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const next = join(this.#folder, `${FILE}.new`);
    writeFileSync(next, JSON.stringify(runs.slice(-MAX_UNTOLD)), { mode: 0o600, flush: true });
    renameSync(next, join(this.#folder, FILE));
  }
}
