import type { WebhookConfig, WebhookTarget } from '../config/webhook-settings.js';
import { HttpClient, NoAnswer } from '../net/http-client.js';
import type { Message } from './event-message.js';
import { signedHeaders } from './sign-message.js';
import { NotTold, SEND_MS, type Target } from './target.js';

/** The largest answer that is read. Its body is not used. */
const MAX_ANSWER_BYTES = 64 * 1024;
const CONNECT_MS = 5_000;
const CONNECTIONS = 8;

const WHY: Record<NoAnswer['kind'], string> = {
  aborted: 'the server was stopping',
  late: `no complete answer within ${SEND_MS / 1_000} s`,
  unreachable: 'it can’t be reached',
  private: 'its address is private: set ALLOW_PRIVATE_WEBHOOKS=true if that is intended',
  cut: 'it closed the connection without an answer',
  broken: 'its answer is not HTTP or ended early',
  'too large': `its answer is longer than ${MAX_ANSWER_BYTES / 1_024} KB`,
};

/**
 * A webhook, or a chat that takes messages by HTTP. An event counts as delivered only if the status is 200 to 299; redirects are not
 * followed.
 */
export function httpTarget(target: WebhookTarget, { secrets, allowPrivate }: WebhookConfig): Target {
  const { name, url, form } = target;
  const client = new HttpClient(url, {
    connections: CONNECTIONS,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    connectMs: CONNECT_MS,
    publicOnly: !allowPrivate,
    headers: { 'user-agent': 'coinslot' },
  });
  return {
    name,
    send: async (message, signal) => {
      const headers = form === 'signed' ? signedHeaders(message, secrets, Date.now()) : {};
      const body = form === 'signed' ? message.body : JSON.stringify(CHATS[form](message));
      try {
        const { status } = await client.request({
          method: 'POST',
          path: '',
          headers,
          body,
          ms: SEND_MS,
          signal,
        });
        if (status >= 200 && status <= 299) return String(status);
        throw new NotTold(
          status >= 300 && status <= 399 ? `${status}: redirects are not followed` : String(status),
        );
      } catch (error) {
        throw error instanceof NoAnswer ? new NotTold(WHY[error.kind]) : error;
      }
    },
    close: () => client.close(),
  };
}

/** The request body for each chat. Telegram's `chat_id` is in the query of the URL. No text can mention (ping) a member of the chat. */
const CHATS: Record<Exclude<WebhookTarget['form'], 'signed'>, (message: Message) => object> = {
  slack: ({ text }) => ({
    text: text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
  }),
  discord: ({ text }) => ({ content: text, allowed_mentions: { parse: [] } }),
  telegram: ({ text }) => ({ text, disable_web_page_preview: true }),
  mail: ({ text }) => ({ text }),
};
