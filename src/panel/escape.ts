const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Control characters that HTML does not allow or that browsers drop; line feed and tab stay. */
// eslint-disable-next-line no-control-regex -- these are the ones to show
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/**
 * Escapes text for use as HTML text or quoted attribute value. Control characters are replaced by their pictures (U+2400 …),
 * lone surrogates by U+FFFD. Direction marks stay, because the page isolates every text that people wrote.
 */
export function escapeHtml(text: string): string {
  return text
    .replace(/\p{Surrogate}/gu, '\ufffd')
    .replace(CONTROLS, control =>
      control === '\u007f' ? '\u2421' : String.fromCharCode(0x2400 + control.charCodeAt(0)),
    )
    .replace(/[&<>"']/g, character => ENTITIES[character] ?? '');
}
