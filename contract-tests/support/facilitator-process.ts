import { serveFacilitator, type FacilitatorOptions } from '../../src/sandbox/facilitator-server.js';

/** A facilitator as a process of its own, so that a test can kill it. Its options come as JSON in the first argument. */
const options = JSON.parse(process.argv[2] ?? '{}') as Omit<FacilitatorOptions, 'feePayer' | 'log'> & {
  feePayer: number[];
};
const { url } = await serveFacilitator({
  ...options,
  feePayer: Uint8Array.from(options.feePayer),
  log: () => {},
});
process.stdout.write(`${url}\n`);
