import { Document, isMap, visit } from 'yaml';
import type { Json } from '../../contract/json.js';

const LINE_WIDTH = 120;
/** Written in one line, as people write them. */
const SHORT = ['x-price'];

/** A contract as YAML. @param comment its first lines */
export function contractYaml(contract: Json, comment: string): string {
  const yaml = new Document(contract, { aliasDuplicateObjects: false });
  yaml.commentBefore = ` ${comment}`;
  visit(yaml, {
    Pair: (_key, { key, value }) => {
      if (SHORT.includes(String(key)) && isMap(value)) value.flow = true;
    },
  });
  return yaml.toString({ lineWidth: LINE_WIDTH, singleQuote: true });
}
