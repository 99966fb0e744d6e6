/** What a worker thread gets: the job, and a word that becomes 1 when nobody wants the result any more. */
export type Job<Task> = { readonly task: Task; readonly stop: Int32Array };

/** Nobody wants the result of this job any more. */
export function stopped(stop: Int32Array): boolean {
  return Atomics.load(stop, 0) === 1;
}
