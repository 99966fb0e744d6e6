import {
  failureKind,
  HttpClient,
  type HttpAnswer,
  type KeptPayment,
  NoAnswer,
  type Payer,
  type Priced,
} from 'coinslot';

/** The address of a paid task's submissions, and the secret that opens it. */
export type WurkJob = { jobId: string; secret: string };

export type Submission = { id: string; text: string };

/** The marketplace's answer to a payment. `later`: no usable answer; the payment may have been settled. */
export type Bought =
  { kind: 'job'; job: WurkJob } | { kind: 'refused'; why: string } | { kind: 'later'; why: string };

/** The marketplace can't be used at present; `unreachable` if it may work again soon. The message is for the operator. */
export class WurkFault extends Error {
  readonly unreachable: boolean;

  constructor(message: string, unreachable = false, cause?: unknown) {
    super(message, { cause });
    this.unreachable = unreachable;
  }
}

const MAX_ANSWER_BYTES = 2_000_000;
const MAX_PAGES = 5;
const PATH = '/solana/agenttohuman';

/**
 * The HTTP side of WURK: a task is a URL that costs money over x402, and submissions are read free of charge with the secret that the
 * purchase returns. Source: docs.wurk.fun (x402 pay, get submissions) and wurkapi.fun/skill.md.
 */
export class WurkApi {
  readonly #client: HttpClient;
  readonly #payer: Payer;
  readonly #requestMs: number;

  constructor(url: string, payer: Payer, requestMs: number) {
    this.#client = new HttpClient(url, {
      connections: 8,
      maxAnswerBytes: MAX_ANSWER_BYTES,
      connectMs: 3_000,
      headers: { accept: 'application/json' },
    });
    this.#payer = payer;
    this.#requestMs = requestMs;
  }

  /** The path that orders a task. It is requested first for the price, and then with the payment. `reward` in USDC. */
  taskPath(description: string, winners: number, reward: string): string {
    const query = new URLSearchParams({ description, winners: String(winners), perUser: reward });
    return `${PATH}?${query.toString()}`;
  }

  /** Asks for the price of a task, without paying. @throws WurkFault */
  async price(path: string, signal: AbortSignal): Promise<Priced> {
    const answer = await this.#get(path, signal);
    const read = this.#payer.read(answer);
    if (typeof read !== 'string') return read;
    throw new WurkFault(`WURK can’t be paid: ${read}`, failureKind(answer.status) === 'unavailable');
  }

  /** Sends a payment that is already stored. Rejects only with the signal's reason. */
  async buy(path: string, payment: KeptPayment, signal: AbortSignal): Promise<Bought> {
    let answer: HttpAnswer;
    try {
      answer = await this.#get(path, signal, this.#payer.headers(payment));
    } catch (error) {
      if (!(error instanceof WurkFault)) throw error;
      return { kind: 'later', why: error.message };
    }
    const { status } = answer;
    if (status === 402) return { kind: 'refused', why: reasonIn(answer) };
    const { jobId, secret } = jsonOf(answer);
    if (status === 200 && isWord(jobId) && isWord(secret)) return { kind: 'job', job: { jobId, secret } };
    return {
      kind: 'later',
      why: `WURK answered ${status} to a payment, but with no job: ${reasonIn(answer)}`,
    };
  }

  /** The submissions for a job so far. @throws WurkFault */
  async submissions({ secret }: WurkJob, signal: AbortSignal): Promise<Submission[]> {
    const found: Submission[] = [];
    for (let page = 1; page <= MAX_PAGES; page++) {
      const query = new URLSearchParams({
        action: 'view',
        secret,
        ...(page > 1 ? { page: String(page) } : {}),
      });
      const answer = await this.#get(`${PATH}?${query.toString()}`, signal);
      if (answer.status !== 200)
        throw new WurkFault(`WURK answered ${answer.status} to a request for a job`, true);
      const { submissions, totalPages } = jsonOf(answer);
      if (!Array.isArray(submissions)) throw new WurkFault('WURK’s answer has no submissions');
      found.push(...(submissions as unknown[]).flatMap(submissionOf));
      if (typeof totalPages !== 'number' || page >= totalPages) break;
    }
    return found;
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** The path contains a secret, so messages leave it out. */
  async #get(path: string, signal: AbortSignal, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    try {
      return await this.#client.request({ method: 'GET', path, headers, ms: this.#requestMs, signal });
    } catch (error) {
      signal.throwIfAborted();
      const kind = error instanceof NoAnswer ? error.kind : 'broken';
      throw new WurkFault(`WURK does not answer (${kind})`, true, error);
    }
  }
}

function submissionOf(value: unknown): Submission[] {
  const { id, content_text: text } = (value ?? {}) as { id?: unknown; content_text?: unknown };
  const name = typeof id === 'number' ? String(id) : id;
  return isWord(name) && typeof text === 'string' ? [{ id: name, text }] : [];
}

function jsonOf({ text }: HttpAnswer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function reasonIn(answer: HttpAnswer): string {
  const { error, message } = jsonOf(answer);
  const said = [error, message].find(each => typeof each === 'string');
  return typeof said === 'string' ? said.slice(0, 200) : 'it gives no reason';
}

const isWord = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= 200;
