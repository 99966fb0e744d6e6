import { ConfigFault, type FacilitatorConfig } from '../config.js';
import { Facilitators, type FacilitatorEntry } from './facilitators.js';
import { facilitatorName, httpFacilitator } from './http-facilitator.js';

/**
 * Builds the configured facilitators.
 * @throws ConfigFault
 */
export function createFacilitators(configured: readonly FacilitatorConfig[]): Facilitators {
  const [first, ...others] = configured.map(createEntry);
  if (!first) throw new ConfigFault('FACILITATOR_URL: must name at least one facilitator');
  return new Facilitators([first, ...others]);
}

function createEntry(config: FacilitatorConfig): FacilitatorEntry {
  if (config.kind === 'embedded') {
    throw new ConfigFault(
      'FACILITATOR_URL: embedded is not available in this version; name the URL of a facilitator',
    );
  }
  return { name: facilitatorName(config.url), facilitator: httpFacilitator(config.url) };
}
