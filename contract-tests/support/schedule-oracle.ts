import type { Payment as Row } from '../../src/ledger/store.js';
import { pickUpThrough } from './door-calls.js';
import type { Sent } from './test-server.js';
import { pause } from './faults.js';
import { storyOf, targetOf, type Record } from './schedule-record.js';
import type { Schedule } from './schedule.js';
import { BRAND } from './test-chain.js';

const SETTLED = ['delivered', 'owed', 'refunded'];
const MAX_RUNS = 3;

type FinishedSchedule = Pick<
  Schedule,
  'records' | 'byId' | 'lied' | 'runs' | 'deaths' | 'testServers' | 'reader' | 'callOver' | 'doorsOf'
>;

/**
 * Lists the promises that a finished schedule broke. Every purchase is charged at most once; the money on the chain equals the
 * settled rows; every settled row has its answer, with the same bytes at every server. @param landed how many times
 * each payment landed, by its id
 */
export async function faultsIn(schedule: FinishedSchedule, landed: Map<string, number>): Promise<string[]> {
  const { byId, reader } = schedule;
  const rows = (await Promise.all([...byId.keys()].map(id => reader.find(id)))).filter(
    row => row !== undefined,
  );
  const sold = rows.filter(row => SETTLED.includes(row.state) && row.aliasOf === null);
  const faults = [...moneyFaults(schedule, landed, rows, sold)];
  for (const record of schedule.records) {
    const transfers = record.attempts.filter(({ id }) => landed.has(id)).length;
    if (transfers > 1)
      faults.push(`purchase ${record.n} was paid ${transfers} times: ${await storyOf(reader, record)}`);
    if (record.bodies.size > 1)
      faults.push(
        `purchase ${record.n} got ${record.bodies.size} different answers: ${await storyOf(reader, record)}`,
      );
    for (const fault of runFaults(schedule, record))
      faults.push(`${fault}: ${await storyOf(reader, record)}`);
  }
  for (const row of sold) faults.push(...(await redeliveryFaults(schedule, row)));
  for (const record of schedule.records) faults.push(...(await linkFaults(schedule, record)));
  return faults;
}

function* moneyFaults(
  { byId, lied }: FinishedSchedule,
  landed: Map<string, number>,
  rows: Row[],
  sold: Row[],
): Generator<string> {
  const settled = new Set(sold.map(({ id }) => id));
  for (const [id, times] of landed) {
    if (times > 1) yield `${id} landed ${times} times`;
    if (!settled.has(id)) yield `${id} landed and is ${rows.find(row => row.id === id)?.state ?? 'unknown'}`;
  }
  for (const { id, state, amount } of sold) {
    if (!landed.has(id) && !lied.has(id)) yield `${id} is ${state} and never landed`;
    const signed = byId.get(id)?.attempts.find(one => one.id === id)?.amount;
    if (signed !== amount) yield `${id} paid ${signed} and was sold for ${amount}`;
  }
  for (const row of rows) if (row.runs > MAX_RUNS) yield `${row.id} had ${row.runs} runs`;
}

/**
 * The work of a payment is done once, and once more for each time that a server died, the ledger or the facilitator
 * failed, or the buyer hung up.
 */
function* runFaults({ runs, deaths }: FinishedSchedule, record: Record): Generator<string> {
  const excused = 1 + record.failures + deaths;
  const request = JSON.stringify({ text: record.text });
  const keys = record.operation === BRAND ? [request] : record.attempts.map(({ id }) => id);
  for (const key of keys) {
    const times = runs.get(key) ?? 0;
    if (times > excused) yield `${key} of purchase ${record.n} was worked on ${times} times, not ${excused}`;
  }
}

/** A link must lead to the payment's answer, and may be given only if the payment was made or may have been. */
async function linkFaults(schedule: FinishedSchedule, record: Record): Promise<string[]> {
  const faults: string[] = [];
  const { url } = schedule.doorsOf(schedule.testServers[0]!);
  const given = new Map(record.links.map(({ link, receipt }) => [link, receipt]));
  for (const [link, receipt] of given) {
    const row = await targetOf(schedule.reader, paymentIn(link));
    const found = await pickUpThrough('http', url, link);
    const told = `${found?.status} ${found?.body.toString()}`;
    if (!receipt) faults.push(`purchase ${record.n}: a link to a call that nobody has paid for, to ${told}`);
    else if (found?.status === 200) record.bodies.add(found.body.toString());
    else if (row?.state !== 'released') faults.push(`purchase ${record.n}: its link leads to ${told}`);
  }
  return faults;
}

/** The payment that a link leads to: the key begins with its id. */
function paymentIn(link: string): string {
  const key = link.slice(link.lastIndexOf('/') + 1);
  return Buffer.from(key, 'base64url').subarray(0, 32).toString('hex');
}

async function redeliveryFaults(schedule: FinishedSchedule, { id }: Row): Promise<string[]> {
  const { testServers, byId, reader } = schedule;
  const record = byId.get(id)!;
  const { header } = record.attempts.find(one => one.id === id)!;
  const { text, operation } = record;
  const faults: string[] = [];
  const bodies = new Set<string>();
  for (const n of testServers.keys()) {
    // The server is looked up each time, because a killed one is replaced.
    const sent = await patiently(async () =>
      record.overDoors
        ? (await schedule.callOver('http', testServers[n]!, record, header)).sent
        : testServers[n]!.receive({ header, operation, text }),
    );
    if (sent.kind === 'sold') bodies.add(sent.answer.body.toString());
    else if (
      sent.kind !== 'unavailable' ||
      operation !== BRAND ||
      (await targetOf(reader, id))?.state !== 'owed'
    )
      faults.push(`settled payment ${id} of purchase ${record.n}: ${JSON.stringify(sent)}`);
  }
  if (bodies.size > 1) faults.push(`purchase ${record.n} was redelivered in ${bodies.size} forms`);
  return faults;
}

/** Retries for a while, because an order whose worker was killed late is taken over only when its lease ends. */
async function patiently(again: () => Promise<Sent>): Promise<Sent> {
  let sent = await again();
  for (let times = 0; times < 20 && ['unavailable', 'cut'].includes(sent.kind); times++) {
    await pause(100);
    sent = await again();
  }
  return sent;
}
