import type { FacilitatorState } from '../facilitators/facilitators.js';
import type { HeardVerdict } from '../facilitators/listing-verdicts.js';
import type { HealthReport } from '../http/health.js';
import { escapeHtml } from '../pages/escape.js';
import { ago, badge, grid } from './operator-layout.js';

const MAX_VERDICTS = 200;

/** The facilitators and their state. */
export function facilitatorsHtml(all: readonly FacilitatorState[]): string {
  const columns = [
    { title: 'Facilitator' },
    { title: 'State' },
    { title: 'Breaker' },
    { title: 'Latency', number: true },
    { title: 'Detail' },
  ];
  return grid(
    'Facilitators',
    columns,
    all.map(({ name, status, restSeconds, latencyMs, detail }) => [
      `<span class="id">${escapeHtml(name)}</span>`,
      badge(status),
      restSeconds === undefined ? 'closed' : `open, next try in ${restSeconds} s`,
      latencyMs === undefined ? '–' : `${latencyMs} ms`,
      escapeHtml(detail),
    ]),
    'No facilitator is configured: set FACILITATOR_URL.',
  );
}

/** The chain, the ledger and the backends. */
export function backendsHtml(
  { upstreams }: HealthReport,
  breakers: readonly { name: string; open: boolean }[],
): string {
  const columns = [
    { title: 'Backend' },
    { title: 'State' },
    { title: 'Breaker' },
    { title: 'Latency', number: true },
    { title: 'Detail' },
  ];
  const breakerOf = (name: string): string => {
    const breaker = breakers.find(each => each.name === name);
    return breaker ? (breaker.open ? 'open' : 'closed') : '–';
  };
  return grid(
    'Backends',
    columns,
    Object.entries(upstreams).map(([name, { status, latencyMs, detail }]) => [
      escapeHtml(name),
      badge(status),
      breakerOf(name),
      latencyMs === undefined ? '–' : `${latencyMs} ms`,
      escapeHtml(detail ?? ''),
    ]),
    'This shop needs no backend.',
  );
}

/** Whether each facilitator's directory lists the operations. */
export function directoriesHtml(heard: readonly HeardVerdict[], now: number): string {
  const columns = [
    { title: 'Operation' },
    { title: 'Called over' },
    { title: 'Facilitator' },
    { title: 'Listed' },
    { title: 'Since' },
    { title: 'Detail' },
  ];
  return grid(
    'Operations in the facilitators’ directories',
    columns,
    heard
      .slice(0, MAX_VERDICTS)
      .map(row => [
        `<code>${escapeHtml(row.operation)}</code>`,
        row.transport === 'mcp' ? 'MCP' : 'HTTP',
        `<span class="id">${escapeHtml(row.facilitator)}</span>`,
        badge(row.status),
        ago(row.at, now),
        escapeHtml(row.why ?? ''),
      ]),
    'No directory has answered yet: an operation is listed when it is first sold through a facilitator with a directory.',
  );
}
