import { withSettings, type ServedFree } from 'coinslot';
import type { operations } from '../../generated/openapi.js';
import { createSpeaker, servedBy, SPEAKER_SETTINGS } from './create-speaker.js';

/** Lists the voices of textToSpeech, free of charge. */
export const listVoices = withSettings(
  SPEAKER_SETTINGS,
  async ({ shared }): Promise<ServedFree<operations['listVoices']>> => {
    const speaker = await shared(createSpeaker);
    return { call: () => speaker.voices(), ...servedBy(speaker) };
  },
);
