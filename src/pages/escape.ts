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
 * lone surrogates by U+FFFD. Direction marks stay, because the page isolates all text from users.
 */
export function escapeHtml(text: string): string {
  return text
    .replace(/\p{Surrogate}/gu, '\ufffd')
    .replace(CONTROLS, control =>
      control === '\u007f' ? '\u2421' : String.fromCharCode(0x2400 + control.charCodeAt(0)),
    )
    .replace(/[&<>"']/g, character => ENTITIES[character] ?? '');
}

/** Longer text is cut, with a note. */
const MAX_SHOWN_CHARACTERS = 20_000;

/** A block for text from callers or other users: shown as written, with its own text direction. */
export function foreignBlock(text: string, className = ''): string {
  const shown =
    text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}… (shortened)` : text;
  const isTall = shown.length > 600 || shown.split('\n', 12).length > 11;
  // Makes it possible to scroll the block with the keyboard.
  const focusable = isTall ? ' tabindex="0"' : '';
  return `<div class="foreign ${className}" dir="auto"${focusable}>${escapeHtml(shown)}</div>`;
}
