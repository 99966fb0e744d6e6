import { readFileSync } from 'node:fs';

export type Instruction = { name: string; text: string };
export type Layer = { name: string; from: string; steps: Instruction[] };

const KNOWN = ['WORKDIR', 'COPY', 'RUN', 'ENV', 'USER', 'EXPOSE', 'HEALTHCHECK', 'CMD'];

/** The stages of a Dockerfile. @throws Error at an unknown instruction */
export function stagesOf(file: string): Layer[] {
  const stages: Layer[] = [];
  const lines = readFileSync(file, 'utf8').replaceAll('\\\n', ' ').split('\n');
  for (const line of lines.filter(each => each.trim() !== '' && !each.startsWith('#'))) {
    const [, name = '', text = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    const [, from, as] = /^FROM (\S+)(?: AS (\S+))?$/.exec(line) ?? [];
    if (from !== undefined) stages.push({ name: as ?? from, from, steps: [] });
    else if (KNOWN.includes(name)) stages.at(-1)?.steps.push({ name, text });
    else throw new Error(`not known here: ${line}`);
  }
  return stages;
}

/** The steps of a stage, after those of the stages that it is built on. */
export function stepsOf(stages: readonly Layer[], name: string): Instruction[] {
  const stage = stages.find(each => each.name === name);
  return stage === undefined ? [] : [...stepsOf(stages, stage.from), ...stage.steps];
}

/** The command of the last CMD or HEALTHCHECK. @throws Error if a shell would run it, because shells do not forward signals */
export function commandOf(steps: readonly Instruction[], name: 'CMD' | 'HEALTHCHECK'): string[] {
  const { text = '' } = steps.findLast(each => each.name === name) ?? {};
  return JSON.parse(text.replace(/^.*?(?=\[)/, '')) as string[];
}

export function variablesOf(steps: readonly Instruction[]): Record<string, string> {
  const pairs = steps.filter(({ name }) => name === 'ENV').flatMap(({ text }) => text.split(' '));
  return Object.fromEntries(pairs.map(pair => pair.split('=', 2) as [string, string]));
}
