// The generated functions call `payingFetch` instead of the global fetch.
module.exports = {
  coinslot: {
    input: { target: './openapi.json' },
    output: {
      target: './generated/orval.ts',
      client: 'fetch',
      override: { mutator: { path: './orval-fetch.ts', name: 'payingFetch', extension: '.js' } },
    },
  },
};
