/** The mint that the examples in openapi.yaml name. */
export const EXAMPLE_MINT = 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN';

export type SampleMints = {
  /** The mint of the contract's examples, so that these can be bought here as they stand. */
  example: string;
  classic: string;
  noAuthorities: string;
  token2022: string;
  untraded: string;
  uninitialised: string;
};
