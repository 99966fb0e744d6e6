import { pause, UpstreamFailure } from 'coinslot';
import { isJson, type Json, type RapidataApi, RapidataFault, readJson, textField } from './rapidata-api.js';

/** `reviewReason`: why the marketplace's staff review the job before it runs. */
export type Job = { id: string; state: string; reviewReason?: string };

/** The cost of a new job in dollars, if the account holds less. The job is created anyway. */
export type CostWarning = { estimatedCost: number; availableBalance: number; shortfall: number };

/** In millionths of a dollar. */
export type Quote = { total: bigint; perResponse: bigint };

const MICRO = 1e6;
const MAX_LISTED = 20;
/** The maximum number of replies fetched for a job: more than an order asks for, because some do not count. */
const MAX_RESPONSES = 500;

/**
 * The operations that a question needs: a data set with one text, a free-text job definition for it, its price, and the job
 * that presents it to the audience. Only `create` spends money.
 */
export class RapidataJobs {
  readonly #api: RapidataApi;
  readonly #audienceId: string;
  readonly #pollMs: number;

  constructor(api: RapidataApi, audienceId: string, pollMs: number) {
    this.#api = api;
    this.#audienceId = audienceId;
    this.#pollMs = pollMs;
  }

  /** Free of charge, so repeating it after a crash is harmless. Returns the id of the definition. */
  async define(
    name: string,
    brand: string,
    question: string,
    responses: number,
    signal: AbortSignal,
  ): Promise<string> {
    const dataset = await this.#post('/dataset', { name: `${name}-dataset` }, signal);
    const datasetId = textField(dataset, 'datasetId');
    const datapoint = { asset: { _t: 'TextAssetInput', text: brand }, sortIndex: 0 };
    await this.#post(`/dataset/${encodeURIComponent(datasetId)}/datapoint`, datapoint, signal);
    const definition = await this.#post(
      '/job/definition',
      {
        definitionName: name,
        datasetId,
        workflow: {
          _t: 'SimpleWorkflow',
          blueprint: { _t: 'FreeTextBlueprint', question, shouldValidateResponse: true },
        },
        referee: { _t: 'NaiveReferee', totalVotes: responses },
      },
      signal,
    );
    return textField(definition, 'definitionId');
  }

  /**
   * What running a definition will cost. The marketplace answers 409 until it has computed the price.
   * @throws RapidataFault with status 409 if there is no price after `withinMs`.
   */
  async quote(definitionId: string, withinMs: number, signal: AbortSignal): Promise<Quote> {
    const path = `/job/definition/${encodeURIComponent(definitionId)}/cost-estimate`;
    const until = Date.now() + withinMs;
    for (;;) {
      try {
        const json = readJson((await this.#api.repeatable({ method: 'GET', path }, signal)).body);
        return { total: micro(json['estimatedCost']), perResponse: micro(json['costPerResponse']) };
      } catch (error) {
        if (!(error instanceof RapidataFault) || error.status !== 409 || Date.now() >= until) throw error;
      }
      await pause(this.#pollMs, signal);
    }
  }

  /** Jobs of exactly this name, oldest first. */
  async named(name: string, signal: AbortSignal): Promise<string[]> {
    const query = new URLSearchParams({
      'name[eq]': name,
      page: '1',
      page_size: String(MAX_LISTED),
      sort: 'created_at',
    });
    const { body } = await this.#api.repeatable({ method: 'GET', path: `/jobs?${query.toString()}` }, signal);
    const { items } = readJson(body);
    if (!Array.isArray(items)) throw new RapidataFault(502, 'the list of jobs has no items');
    return items
      .filter(isJson)
      .filter(item => item['name'] === name)
      .sort((a, b) => String(a['createdAt']).localeCompare(String(b['createdAt'])))
      .map(item => textField(item, 'jobId'));
  }

  /** Publishes the job, which costs money. The request is repeated only after a 429, which shows that the marketplace did nothing. */
  async create(
    name: string,
    definitionId: string,
    signal: AbortSignal,
  ): Promise<{ jobId: string; warning: CostWarning | undefined }> {
    const body = { jobDefinitionId: definitionId, audienceId: this.#audienceId, name };
    const answer = await this.#api.unrepeatable({ method: 'POST', path: '/job', body }, signal);
    const json = readJson(answer.body);
    return { jobId: textField(json, 'jobId'), warning: warningIn(json['costWarning']) };
  }

  async get(jobId: string, signal: AbortSignal): Promise<Job> {
    const path = `/job/${encodeURIComponent(jobId)}`;
    const json = readJson((await this.#api.repeatable({ method: 'GET', path }, signal)).body);
    const { reviewReason: reason } = json;
    const reviewed = typeof reason === 'string' ? { reviewReason: reason } : {};
    return { id: jobId, state: textField(json, 'state'), ...reviewed };
  }

  /** In percent, 0–100. */
  async progress(jobId: string, signal: AbortSignal): Promise<number> {
    const path = `/job/${encodeURIComponent(jobId)}/progress`;
    const { completionPercentage } = readJson(
      (await this.#api.repeatable({ method: 'GET', path }, signal)).body,
    );
    return typeof completionPercentage === 'number' ? completionPercentage : 0;
  }

  /** Stops the spending. The marketplace refuses to pause a job that has ended, which is not an error here. */
  async pause(jobId: string, signal: AbortSignal): Promise<void> {
    const path = `/job/${encodeURIComponent(jobId)}/pause`;
    await this.#api.repeatable({ method: 'POST', path, body: {} }, signal).catch((error: unknown) => {
      if (!(error instanceof RapidataFault) || !error.refused || error.status === 401 || error.status === 429)
        throw error;
    });
  }

  /** The replies so far, oldest first. A job that has not begun to ask has none, and the marketplace answers 404. */
  async responses(jobId: string, signal: AbortSignal): Promise<Json[]> {
    const path = `/job/${encodeURIComponent(jobId)}/responses?limit=${MAX_RESPONSES}&sort=Asc`;
    try {
      const { responses } = readJson((await this.#api.repeatable({ method: 'GET', path }, signal)).body);
      if (!Array.isArray(responses)) throw new RapidataFault(502, 'the list of responses is missing');
      return responses.filter(isJson);
    } catch (error) {
      if (error instanceof RapidataFault && error.status === 404) return [];
      throw error;
    }
  }

  /** Checks that the marketplace answers and accepts the credentials. */
  async probe(signal: AbortSignal): Promise<void> {
    await this.#api.repeatable({ method: 'GET', path: '/jobs?page=1&page_size=1' }, signal);
  }

  async #post(path: string, body: Json, signal: AbortSignal): Promise<Json> {
    return readJson((await this.#api.repeatable({ method: 'POST', path, body }, signal)).body);
  }
}

function warningIn(value: unknown): CostWarning | undefined {
  if (!isJson(value)) return undefined;
  const dollars = (name: string): number => Number(value[name]) || 0;
  return {
    estimatedCost: dollars('estimatedCost'),
    availableBalance: dollars('availableBalance'),
    shortfall: dollars('shortfall'),
  };
}

/** Reads a JSON number of dollars. Rounds up, because quotes are compared with a budget. */
function micro(dollars: unknown): bigint {
  if (typeof dollars !== 'number' || !Number.isFinite(dollars) || dollars < 0 || dollars > 1e6)
    throw new RapidataFault(502, 'the quote is not an amount');
  return BigInt(Math.ceil(Number((dollars * MICRO).toFixed(3))));
}

/** @throws RangeError unless `amount` is in dollars with at most six fractional digits. */
export function parseDollars(amount: string): bigint {
  const match = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(amount);
  if (!match) throw new RangeError(`The budget '${amount}' is not an amount in dollars such as 0.40.`);
  return BigInt(match[1] ?? '0') * 1_000_000n + BigInt((match[2] ?? '').padEnd(6, '0'));
}

export function tooExpensive(wanted: number): UpstreamFailure {
  const whom = wanted === 1 ? 'one person' : `${wanted} people`;
  return new UpstreamFailure(
    'unavailable',
    `Asking ${whom} costs more than the marketplace budget at present; request fewer replies.`,
    {
      retryAfterSeconds: 600,
    },
  );
}
