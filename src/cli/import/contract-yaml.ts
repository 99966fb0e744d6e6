import { Document, isMap, visit } from 'yaml';
import type { Imported } from '../../contract/import/import-contract.js';
import type { Json } from '../../contract/json.js';
import { objectOf } from '../../contract/references.js';

const LINE_WIDTH = 120;
/** Members that are written on one line, as is usual in contracts written by hand. */
const SHORT = ['x-price'];

/** The overlay that turns the document into a contract. @param file the document, relative to the overlay */
export function overlayOf({ contract, table }: Imported, file: string): Json {
  const operations = Object.values(objectOf(contract.paths)).flatMap(item => Object.values(objectOf(item)));
  const byId = new Map(operations.map(each => [objectOf(each).operationId, objectOf(each)]));
  const sold = table.filter(({ leftOut }) => leftOut === undefined);
  return {
    overlay: '1.0.0',
    info: { title: `Prices of ${String(objectOf(contract.info).title)}`, version: '1.0.0' },
    extends: file,
    actions: sold.map(({ method, path, id }) => {
      const { 'x-price': price, 'x-upstream': upstream } = byId.get(id) ?? {};
      const quoted = path.replace(/['\\]/g, '\\$&');
      return {
        target: `$.paths['${quoted}'].${method.toLowerCase()}`,
        update: { 'x-price': price, 'x-upstream': upstream },
      };
    }),
  };
}

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
