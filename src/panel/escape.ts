const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Controls that HTML can't hold or would drop; line feed and tab stay. */
// eslint-disable-next-line no-control-regex -- these are the ones to show
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/**
 * Text as HTML text or quoted attribute value: markup shows as written, control characters as their pictures (U+2400 …), lone
 * surrogates as U+FFFD. Direction marks stay: the page isolates every foreign text.
 */
export function escapeHtml(text: string): string {
  return text
    .replace(/\p{Surrogate}/gu, '\ufffd')
    .replace(CONTROLS, control =>
      control === '\u007f' ? '\u2421' : String.fromCharCode(0x2400 + control.charCodeAt(0)),
    )
    .replace(/[&<>"']/g, character => ENTITIES[character] ?? '');
}
