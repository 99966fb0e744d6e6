import type { World } from './world.js';

/** Makes the world's RPC server stand still at this time. It then reports every blockhash as invalid, no later time and no transfers. */
export function standStill(rpc: World['rpc'], since: number): void {
  rpc.intervene(async ({ method, forward, respond }) => {
    const answer = await forward();
    const json = JSON.parse(answer.body.toString()) as { result?: { value?: unknown } | unknown[] };
    if (method === 'isBlockhashValid') Object.assign(json.result ?? {}, { value: false });
    if (method === 'getSignaturesForAddress') json.result = [];
    if (method === 'getAccountInfo') setClock(json.result, since);
    respond(200, JSON.stringify(json));
  });
}

function setClock(result: unknown, time: number): void {
  const { value } = result as { value?: { data?: [string, string] } };
  const data = Buffer.from(value?.data?.[0] ?? '', 'base64');
  if (data.length !== 40) return;
  data.writeBigInt64LE(BigInt(Math.floor(time / 1_000)), 32);
  if (value?.data) value.data[0] = data.toString('base64');
}
