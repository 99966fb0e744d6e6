/** `method`: how the summary was made. */
export type Summarized = { summary: string; method: 'extractive' | 'model' | 'described' | 'whole' };

/**
 * Makes a summary of one to three sentences (`summarize` in openapi.yaml).
 *
 * `summarize` takes any text, including HTML and markdown, and resolves to one to three sentences on one line. `signal` carries the
 * deadline; `caller` names the caller whose share of the queue the call uses. It throws `UpstreamFailure`: `invalid` if the text has no
 * content, `failed` if there was no usable summary in time, `unavailable` if the backend can't do the work now.
 */
export type Summarizer = {
  /** Short name for logs and health. */
  name: string;
  /** True if answers do not come from a real backend. */
  mock: boolean;
  summarize(text: string, signal: AbortSignal, caller?: string): Promise<Summarized>;
  /** Checks at no cost whether the backend is available. Rejects if it is not. */
  check(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
};
