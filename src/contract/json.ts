/** A JSON object of unknown shape: a schema, an example, a part of the document. */
export type Json = { [key: string]: unknown };
