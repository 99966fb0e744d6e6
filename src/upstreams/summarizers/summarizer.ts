/**
 * Makes a summary of one to three sentences (specification 2.1, 2.2).
 *
 * `summarize` takes any text, HTML and markdown included, and resolves to one to three sentences joined by a space. It
 * throws `UpstreamFailure`: `invalid` when the text says nothing, `failed` when no usable summary came in time,
 * `unavailable` when the backend can't take the work now. The caller's signal carries the deadline;
 * `caller` says whose share of the queue the call takes.
 */
export type Summarizer = {
  /** Short name for logs and health. */
  name: string;
  /** True when answers do not come from a real backend. */
  mock: boolean;
  summarize(text: string, signal: AbortSignal, caller?: string): Promise<string>;
  /** Asks the backend whether it is there, at no cost. Throws where it is not. */
  check(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
};
