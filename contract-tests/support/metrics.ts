/** Parses a page in Prometheus' text format into samples by name with labels: `up{job="a"}`. */
export type Samples = Map<string, number>;

export async function scrape(adminUrl: string): Promise<Samples> {
  const answer = await fetch(new URL('/metrics', adminUrl));
  if (answer.status !== 200) throw new Error(`/metrics answered ${answer.status}`);
  const samples: Samples = new Map();
  for (const line of (await answer.text()).split('\n')) {
    const [, name, value] = /^([^#\s][^\s{]*(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
    if (name !== undefined) samples.set(name, value === '+Inf' ? Infinity : Number(value));
  }
  return samples;
}

export async function readiness(adminUrl: string): Promise<{ status: number; reasons: string[] }> {
  const answer = await fetch(new URL('/ready', adminUrl));
  const { reasons } = (await answer.json()) as { reasons: string[] };
  return { status: answer.status, reasons };
}
