/** The mint that the examples in openapi.yaml name. */
export const EXAMPLE_MINT = 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN';
