/** Thrown to end the handling of a request with this status. The message says what to do next. */
export abstract class HttpFault extends Error {
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}
