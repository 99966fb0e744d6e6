/** A name for a file with an answer: after its operation, with the ending that its type has by convention. @param operation may have more in it, such as a time. @param type a MIME type in lower case */
export function fileNameOf(operation: string, type: string): string {
  const [, ending = 'bin'] = /^[a-z]+\/(?:x-)?([a-z0-9]+)/.exec(type) ?? [];
  return `${operation}.${ending}`;
}
