import { serveFacilitator, type FacilitatorOptions } from '../../src/sandbox/facilitator-server.js';

/** Runs a facilitator in a process of its own, so that a test can kill it. Its options are the first argument, as JSON. */
const options = JSON.parse(process.argv[2] ?? '{}') as Omit<FacilitatorOptions, 'feePayer' | 'log'> & {
  feePayer: number[];
};
const { url } = await serveFacilitator({
  ...options,
  feePayer: Uint8Array.from(options.feePayer),
  log: () => {},
});
process.stdout.write(`${url}\n`);
