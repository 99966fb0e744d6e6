import type { FreeEntry } from 'coinslot';
import type { operations } from '../../generated/openapi.js';
import { createSpeaker, servedBy } from './create-speaker.js';

/** Lists the voices that textToSpeech has, for nothing. */
export const listVoices: FreeEntry<operations['listVoices']> = async ({ shared }) => {
  const speaker = await shared(createSpeaker);
  return { call: () => speaker.voices(), ...servedBy(speaker) };
};
