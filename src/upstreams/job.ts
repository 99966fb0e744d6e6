/** The message to a worker thread: the job, and a shared integer that becomes 1 when the job is cancelled. */
export type Job<Task> = { readonly task: Task; readonly stop: Int32Array };

/** Whether the job was cancelled. */
export function stopped(stop: Int32Array): boolean {
  return Atomics.load(stop, 0) === 1;
}
