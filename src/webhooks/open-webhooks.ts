import type { WebhookConfig } from '../config/webhook-settings.js';
import type { Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import { httpTarget } from './http-target.js';
import { EventListeners } from './listeners.js';
import type { Sender } from './event-message.js';
import { sampleEvents } from './sample-events.js';
import type { Target } from './target.js';
import { TargetTeller } from './tell-targets.js';
import { EventWatch, type WatchParts } from './watch-events.js';

/** The event targets of a server. */
export type Webhooks = Awaited<ReturnType<typeof openWebhooks>>;

type Parts = Omit<WatchParts, 'ledger'> & { ledger: Ledger; config: WebhookConfig; sender: Sender; log: Log };

/** Opens the target that a setting describes. The mail library is only loaded if it is needed. */
export async function openTarget(
  target: WebhookConfig['targets'][number],
  config: WebhookConfig,
): Promise<Target> {
  if (target.form !== 'mail') return httpTarget(target, config);
  const { mailTarget } = await import('./mail-target.js');
  return mailTarget(target, config.allowPrivate);
}

/** Starts sending events to the targets. */
export async function openWebhooks({ config, sender, ledger, log, ...watched }: Parts) {
  const teller = new TargetTeller({ ledger, sender, log });
  const targets = await Promise.all(
    config.targets.map(async each => ({ target: await openTarget(each, config), kinds: each.kinds })),
  );
  const watch = new EventWatch({ ...watched, ledger, log });
  const listeners = new EventListeners(ledger, teller);
  await teller.start(targets);
  watch.start();
  return {
    /** Listens for events other than sales. */
    watch,
    listen: () => listeners.listen(),
    /** Sends sample events of the given kinds to all targets. */
    tellSamples: async (kinds: readonly string[]): Promise<number> => {
      const samples = sampleEvents(kinds, String(Date.now()));
      for (const sample of samples) await ledger.tell(sample);
      return samples.length;
    },
    targets: config.targets.map(({ name, form, kinds }) => ({ name, form, kinds })),
    stop: async (): Promise<void> => {
      watch.stop();
      await teller.stop();
    },
  };
}
