/**
 * The file name for an answer: the operation's name with the usual extension of its type. @param operation may contain more, such as a
 * time. @param type a MIME type in lower case
 */
export function fileNameOf(operation: string, type: string): string {
  const [, ending = 'bin'] = /^[a-z]+\/(?:x-)?([a-z0-9]+)/.exec(type) ?? [];
  return `${operation}.${ending}`;
}
