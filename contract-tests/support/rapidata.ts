import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { Ajv } from 'ajv';

/** Every scope that the SDK requests. */
const SCOPE = 'openid email api';
/** The answer of a respondent who skips the task. */
export const SKIPPED = '(skipped)';

export type Labeler = { answer: string; id?: string; age?: string };
type FakeJob = {
  jobId: string;
  name: string;
  definitionId: string;
  state: string;
  votes: number;
  /** Why the job waits for approval, if it does. */
  reviewReason?: string;
  labelers: Labeler[];
  listed: boolean;
  createdAt: string;
};

export type FakeRapidata = {
  url: string;
  /** Method and path, without query, of every call except those for tokens. */
  calls: string[];
  jobs: FakeJob[];
  definitions: Map<string, { name: string; votes: number; question: string; datasetId: string }>;
  tokens: number;
  pricePerResponse: number;
  /** How much more the job costs than the account holds. */
  shortfall: number;
  /** How many times it answers 409 before a definition has a price. */
  unpriced: number;
  /** Called before every request is carried out. If it returns an answer, that is sent instead; `hang up` closes the connection. */
  before:
    | ((
        call: string,
        job: FakeJob | undefined,
      ) => { status: number; headers?: Record<string, string> } | 'hang up' | undefined)
    | undefined;
  /** Called after every request was carried out. If it returns true, the connection is closed without an answer. */
  loseAnswer: ((call: string) => boolean) | undefined;
  /** Called with each new job when it starts. */
  onJob: ((job: FakeJob) => void) | undefined;
  expireTokens(): void;
  close(): Promise<void>;
};

function send(
  response: ServerResponse,
  status: number,
  value?: unknown,
  headers: Record<string, string> = {},
): void {
  const body = value === undefined ? '' : JSON.stringify(value);
  response
    .writeHead(status, { ...(body ? { 'content-type': 'application/json' } : {}), ...headers })
    .end(body);
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

function field(body: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], body);
}

type Shape = { request?: object; status: number; response?: object; query?: string[] };

/** The calls of the SDK's published schema that Coinslot makes. */
const { calls: SHAPES } = JSON.parse(
  readFileSync(new URL('../../../contract-tests/fixtures/rapidata-api.json', import.meta.url), 'utf8'),
) as { calls: Record<string, Shape> };
// The published schema has an empty oneOf (where values are cyclic), which the standard does not allow.
const ajv = new Ajv({ strict: false, allErrors: true, validateSchema: false });

/** The path of the schema that matches a request, with the values of its parameters. */
function shapeOf(method: string, path: string): { key: string; id: string } | undefined {
  for (const key of Object.keys(SHAPES)) {
    const [ownMethod, pattern = ''] = key.split(' ');
    const match = new RegExp(`^${pattern.replace(/\{\w+\}/g, '([^/]+)')}$`).exec(path);
    if (ownMethod === method && match) return { key, id: decodeURIComponent(match[1] ?? '') };
  }
  return undefined;
}

/** The errors of a value according to the schema. */
function faultOf(schema: object | undefined, value: unknown): string | undefined {
  return schema && !ajv.validate(schema, value) ? ajv.errorsText() : undefined;
}

/**
 * A stand-in for Rapidata's API, checked against the SDK's published schema (fixtures/rapidata-api.json). It refuses a
 * path or request that the schema does not have. If one of its own answers violates the schema, the test fails.
 */
export async function startFakeRapidata(): Promise<FakeRapidata> {
  let serial = 0;
  let valid = '';
  const fake: FakeRapidata = {
    url: '',
    calls: [],
    jobs: [],
    definitions: new Map(),
    tokens: 0,
    pricePerResponse: 0.02,
    shortfall: 0,
    unpriced: 0,
    before: undefined,
    loseAnswer: undefined,
    onJob: undefined,
    expireTokens: () => (valid = ''),
    close: async () => {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
  const next = (prefix: string) => `${prefix}_${++serial}`;

  const jobParts = ({ jobId, name, state, definitionId, createdAt }: FakeJob) => ({
    ...{ jobId, name, state, audienceId: 'global', revisionNumber: 1, pipelineId: `pip-${jobId}`, createdAt },
    ...{ jobDefinitionId: definitionId, ownerMail: 'a@example.com', organizationId: 'org' },
  });

  function responses({ labelers }: FakeJob): unknown {
    const all = labelers.map(({ answer, id, age = 'Unknown' }, index) => ({
      id: `res_${index}`,
      userId: id ?? `anonymous-${index}`,
      ...{ country: 'CH', language: 'en', age, gender: null, occupation: null },
      result:
        answer === SKIPPED
          ? { _t: 'SkipResult', rapidId: 'rap' }
          : { _t: 'FreeTextResult', rapidId: 'rap', answer },
      ...{ userScore: 0.4, userScores: { global: 0.4 }, demographicInformation: {} },
    }));
    return { responses: all };
  }

  function create(key: string, body: unknown): unknown {
    if (key === 'POST /dataset') return { datasetId: next('dat') };
    if (key === 'POST /dataset/{datasetId}/datapoint') return { datapointId: next('dp') };
    if (key === 'POST /job/definition') {
      const definitionId = next('def');
      const text = (path: string) => field(body, path) as string;
      fake.definitions.set(definitionId, {
        name: text('definitionName'),
        votes: field(body, 'referee.totalVotes') as number,
        question: text('workflow.blueprint.question'),
        datasetId: text('datasetId'),
      });
      return { definitionId, pipelineId: next('pip') };
    }
    const definitionId = field(body, 'jobDefinitionId') as string;
    const job: FakeJob = {
      jobId: next('job'),
      name: field(body, 'name') as string,
      definitionId,
      state: 'Running',
      votes: fake.definitions.get(definitionId)?.votes ?? 0,
      labelers: [],
      listed: true,
      createdAt: new Date(1_700_000_000_000 + serial * 1_000).toISOString(),
    };
    fake.jobs.push(job);
    fake.onJob?.(job);
    const warning = {
      estimatedCost: 0.06,
      availableBalance: 0.06 - fake.shortfall,
      shortfall: fake.shortfall,
    };
    const costWarning = fake.shortfall > 0 ? { costWarning: warning } : {};
    return { jobId: job.jobId, recruitingStarted: false, ...costWarning };
  }

  function read(
    key: string,
    id: string,
    query: URLSearchParams,
    job: FakeJob | undefined,
  ): [number, unknown?] {
    if (key === 'GET /job/definition/{definitionId}/cost-estimate') {
      const definition = fake.definitions.get(id);
      if (!definition) return [404];
      if (fake.unpriced-- > 0) return [409];
      const costPerResponse = fake.pricePerResponse;
      return [
        200,
        {
          estimatedCost: costPerResponse * definition.votes,
          costPerResponse,
          datapointCount: 1,
          requiredResponses: definition.votes,
        },
      ];
    }
    if (key === 'GET /jobs') {
      const items = fake.jobs.filter(
        ({ listed, name }) => listed && name === (query.get('name[eq]') ?? name),
      );
      return [
        200,
        {
          total: items.length,
          page: 1,
          pageSize: 20,
          items: items.map(jobParts),
        },
      ];
    }
    if (!job) return [404];
    if (key === 'GET /job/{jobId}') {
      const review = job.reviewReason ? { reviewReason: job.reviewReason } : {};
      const who = {
        ownerId: '0b0c',
        isPublic: false,
        audienceDeleted: false,
        definitionId: job.definitionId,
      };
      return [200, { ...jobParts(job), ...who, ...review }];
    }
    if (key === 'GET /job/{jobId}/progress') {
      const completionPercentage = (100 * job.labelers.length) / job.votes;
      return [200, { completionPercentage, total: 1, completed: 0, state: 'Labeling' }];
    }
    if (key === 'GET /job/{jobId}/responses') return [200, responses(job)];
    if (job.state !== 'Running') return [400, { title: 'not running' }];
    job.state = 'Paused';
    return [204];
  }

  function issueToken(text: string, response: ServerResponse): void {
    const form = new URLSearchParams(text);
    if (
      form.get('grant_type') !== 'client_credentials' ||
      form.get('client_secret') !== 'secret' ||
      form.get('scope') !== SCOPE
    )
      return send(response, 400, { error: 'invalid_client' });
    fake.tokens++;
    valid = next('token');
    send(response, 200, { access_token: valid, token_type: 'Bearer', expires_in: 3_600 });
  }

  function write(key: string, text: string): [number, unknown] {
    const body: unknown = JSON.parse(text);
    const bad = faultOf(SHAPES[key]?.request, body);
    return bad ? [400, { title: bad }] : [200, create(key, body)];
  }

  function carryOut(key: string, id: string, url: URL, text: string): [number, unknown?] {
    const shape = SHAPES[key];
    const strange = [...url.searchParams.keys()].find(
      name => !shape?.query?.includes(name.split('[')[0] ?? ''),
    );
    if (!shape || strange !== undefined) return [404, { title: `no such call: ${key} ${strange}` }];
    const job = fake.jobs.find(({ jobId }) => jobId === id);
    const [status, value] = shape.request ? write(key, text) : read(key, id, url.searchParams, job);
    const own = status === shape.status ? faultOf(shape.response, value) : undefined;
    if (own) throw new Error(`the stand-in's answer to ${key} violates the schema: ${own}`);
    return [status, value];
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://x');
    const text = await readBody(request);
    if (url.pathname === '/connect/token') return issueToken(text, response);
    const { key, id } = shapeOf(request.method ?? '', url.pathname) ?? { key: 'unknown', id: '' };
    fake.calls.push(`${request.method} ${url.pathname}`);
    const job = fake.jobs.find(({ jobId }) => jobId === id);
    const instead = fake.before?.(key, job);
    if (instead === 'hang up') return void request.socket.destroy();
    if (instead) return send(response, instead.status, { title: 'no' }, instead.headers);
    if (request.headers.authorization !== `Bearer ${valid}`) return send(response, 401);
    const [status, value] = carryOut(key, id, url, text);
    if (fake.loseAnswer?.(key)) return void request.socket.destroy();
    send(response, status, value);
  }

  const server: Server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return fake;
}
