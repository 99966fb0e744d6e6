/** Spellings that the embedded engine reads as a person would, for words that it gets wrong. Found with flite's own `-pw` and `-ps`. */

/** Capitals to be spelled out. The engine would read them as words, for example "AI" as "eye". */
const SPELLED_OUT = /\b(AI|ID|IDs|OS|APIs|URLs|[A-Z]{2,5}s)\b/g;

function letters(word: string): string {
  const plural = word.endsWith('s');
  return [...(plural ? word.slice(0, -1) : word)].join(' ') + (plural ? "'s" : '');
}

/** Rewrites the result of `spokenText` for flite. The text becomes at most twice as long. */
export function fliteReading(text: string): string {
  return (
    text
      // Words written together: YouTube, macOS, ChatGPT.
      .replace(/(?<=[a-z])(?<!\b(?:Mc|Mac|Ph))(?=[A-Z])/g, ' ')
      // The engine reads "OK" as "Oklahoma".
      .replace(/\bO\.?K\b/g, 'okay')
      .replace(SPELLED_OUT, letters)
      .replace(/\b(\d{2}(?:\d{2})?)s\b/g, "$1's")
      .replace(/\bapprox\.?(?=\s)/gi, 'approximately')
  );
}
