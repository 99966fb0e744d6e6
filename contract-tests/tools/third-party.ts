import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

type Licensed = { license: { id: string } } | { expression: string };
type Component = {
  'bom-ref': string;
  type: 'library' | 'application';
  name: string;
  version: string;
  purl: string;
  licenses?: Licensed[];
  hashes?: { alg: 'SHA-512'; content: string }[];
};
/** A bill of materials (CycloneDX 1.5). */
export type Bill = {
  bomFormat: 'CycloneDX';
  specVersion: '1.5';
  version: 1;
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
};
type Needs = Partial<
  Record<'dependencies' | 'optionalDependencies' | 'peerDependencies', Record<string, string>>
>;
type Locked = Needs & {
  version: string;
  license?: string;
  integrity?: string;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
};
type Lock = { packages: Record<string, Locked> };

const LICENSE_FILE = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i;

const readLock = (root: string): Lock =>
  JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
const nameOf = (path: string): string => path.split('node_modules/').at(-1) ?? '';

/** Where the lock file puts a package's dependency: in its own folder, or in one above. */
function placeOf({ packages }: Lock, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.replace(/(?:^|\/)[^/]*$/, '')) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (packages[path]) return path;
    if (folder === '') return undefined;
  }
}

function needsOf(lock: Lock, path: string): string[] {
  const own = lock.packages[path];
  const optional = own?.peerDependenciesMeta ?? {};
  const peers = Object.keys(own?.peerDependencies ?? {}).filter(name => optional[name]?.optional !== true);
  return [...Object.keys({ ...own?.dependencies, ...own?.optionalDependencies }), ...peers].flatMap(
    name => placeOf(lock, path, name) ?? [],
  );
}

function componentOf(name: string, { version, license, integrity }: Locked): Component {
  const ref = `${name}@${version}`;
  const licensed = /[( ]/.test(license ?? '')
    ? { expression: license ?? '' }
    : { license: { id: license ?? '' } };
  return {
    'bom-ref': ref,
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${ref.replace(/^@/, '%40')}`,
    ...(license === undefined ? {} : { licenses: [licensed] }),
    ...(integrity?.startsWith('sha512-')
      ? { hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice(7), 'base64').toString('hex') }] }
      : {}),
  };
}

/**
 * Everything that is installed with a package of this repository, for every platform, according to the lock
 * file. It has no serial number and no time, so that the same commit gives the same bill. (`npm sbom` leaves
 * out packages that are also needed for development.) @param folder the package's, as the lock file names it:
 * empty for the root
 */
export function billOf(root: string, name: string, folder: string): Bill {
  const lock = readLock(root);
  const own = lock.packages[folder];
  if (!own) throw new Error(`package-lock.json has no ${folder}`);
  const component = { ...componentOf(name, own), type: 'application' } as const;
  const refOf = (path: string): string => `${nameOf(path)}@${lock.packages[path]?.version}`;
  const components = new Map<string, Component>();
  const dependencies = [{ ref: component['bom-ref'], dependsOn: needsOf(lock, folder).map(refOf) }];
  for (const open = needsOf(lock, folder); open.length > 0;) {
    const path = open.pop() ?? '';
    const locked = lock.packages[path];
    if (!locked || components.has(refOf(path))) continue;
    components.set(refOf(path), componentOf(nameOf(path), locked));
    const needs = needsOf(lock, path);
    dependencies.push({ ref: refOf(path), dependsOn: [...new Set(needs.map(refOf))] });
    open.push(...needs);
  }
  const sorted = [...components.values()].sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
  const metadata = { component };
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata,
    components: sorted,
    dependencies,
  };
}

/** The licence that a package declares. */
export function licenseOf({ licenses = [] }: Component): string {
  const named = licenses.map(each => ('expression' in each ? each.expression : each.license.id));
  return named.join(' AND ') || 'none declared';
}

/** The licences of all components, each text once. */
export function licensesOf(root: string, name: string, { components }: Bill): string {
  const lock = readLock(root);
  const texts = new Map<string, string[]>();
  const rows = components.map(component => {
    const ref = `${component.name}@${component.version}`;
    const folder = Object.keys(lock.packages).find(
      path =>
        path.endsWith(`node_modules/${component.name}`) && lock.packages[path]?.version === component.version,
    );
    const found = folder === undefined ? [] : textsIn(join(root, folder));
    for (const text of found) texts.set(text, [...(texts.get(text) ?? []), ref]);
    const note = found.length > 0 ? '' : ' (no licence file in it, or not installed on this platform)';
    return `- ${ref}: ${licenseOf(component)}${note}`;
  });
  const parts = [...texts].map(([text, refs]) => `## ${refs.join(', ')}\n\n\`\`\`text\n${text}\n\`\`\``);
  return [
    `# Licences of what is installed with ${name}`,
    'npm installs these packages; each keeps its own licence.',
    rows.join('\n'),
    ...parts,
  ]
    .join('\n\n')
    .concat('\n');
}

function textsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter(file => LICENSE_FILE.test(file))
    .sort()
    .map(file =>
      readFileSync(join(folder, file), 'utf8').replaceAll('\r', '').replaceAll('```', "'''").trim(),
    );
}
