import { url } from './check.js';

let pay: typeof fetch = fetch;

export function payWith(transport: typeof fetch): void {
  pay = transport;
}

/** Orval's generated functions call this with a relative path. @returns `{ status, data, headers }` */
export async function payingFetch<T>(path: string, init: RequestInit): Promise<T> {
  const response = await pay(`${url}${path}`, init);
  const json = response.headers.get('content-type')?.startsWith('application/json');
  const data: unknown = json ? await response.json() : await response.blob();
  return { status: response.status, data, headers: response.headers } as T;
}
