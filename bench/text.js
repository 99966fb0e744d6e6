const WORDS =
  'the harbour bridge will close for repairs on monday because inspectors found cracks in seven of its steel girders ferries run ' +
  'every ten minutes until it opens again and the city pays for them while crews weld plates under the deck and engineers listen';

/** English-looking sentences, the same for every call. @param {number} length characters, at most @returns {string} */
export function textOf(length) {
  const words = WORDS.split(' ');
  let state = 1;
  const next = below => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >> 8) % below;
  };
  let text = '';
  for (;;) {
    const sentence = Array.from({ length: 8 + next(14) }, () => words[next(words.length)]).join(' ');
    const more = `${text}${sentence[0].toUpperCase()}${sentence.slice(1)}. `;
    if (more.length > length) return text.trim();
    text = more;
  }
}
