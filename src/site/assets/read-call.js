/** Makes the call that the fields of an operation's form describe (src/site/call-form.ts writes them). */

/**
 * @typedef {{ method: string, path: string, headers: Record<string, string>, body?: string | Blob, parts?: [string, string | File][] }} Call
 * A call that can be stored. `parts` are those of a multipart form.
 */

const pathText = value => encodeURIComponent([value].flat().map(String).join(','));

/** @returns {unknown} undefined for a field that is not sent */
function valueOf(field) {
  const { entry } = field.dataset;
  if (entry === 'file') return field.files.length > 0 ? [...field.files] : undefined;
  if (field.value === '') return field.required && entry !== 'number' ? '' : undefined;
  if (entry === 'number') return Number(field.value);
  if (entry === 'choice') return JSON.parse(field.value);
  if (entry !== 'value') return field.value;
  try {
    return JSON.parse(field.value);
  } catch {
    // Sent as text if the contract leaves the type open; the server then reports any fault.
    return field.value;
  }
}

/** A value as the names and strings of a query or a form, in OpenAPI's styles. */
function pairsOf(name, value, style) {
  const isObject = value !== null && typeof value === 'object' && !Array.isArray(value);
  if (style && style.kind === 'separated') {
    const parts = isObject ? Object.entries(value).flat() : [value].flat();
    return parts.length === 0 ? [] : [[name, parts.map(String).join(style.by)]];
  }
  if (style && isObject)
    return Object.entries(value).flatMap(([member, each]) =>
      [each]
        .flat()
        .map(item => [style.kind === 'members' ? member : name + '[' + member + ']', String(item)]),
    );
  const listed = style && style.kind === 'brackets' && Array.isArray(value) ? name + '[]' : name;
  return [value].flat().map(item => [listed, String(item)]);
}

const asPart = value => (value instanceof Blob || typeof value === 'string' ? value : JSON.stringify(value));

/** @returns {Call} */
export function readCall(form, shape) {
  const fields = [...form.querySelectorAll('[data-place]')]
    .map(field => ({ ...field.dataset, value: valueOf(field) }))
    .filter(({ value }) => value !== undefined);
  const at = place => fields.filter(each => each.place === place);
  const pairs = each => pairsOf(each.name, each.value, each.style ? JSON.parse(each.style) : undefined);
  let path = shape.path;
  for (const { name, value } of at('path')) path = path.replace('{' + name + '}', () => pathText(value));
  const query = new URLSearchParams(at('query').flatMap(pairs)).toString();
  const headers = { ...shape.headers };
  for (const { name, value } of at('header')) headers[name] = [value].flat().join(', ');
  const call = { method: shape.method, path: query ? path + '?' + query : path, headers };
  if (!shape.body) return call;
  const [whole] = at('whole');
  const members = at('member');
  const { kind, type } = shape.body;
  if (kind === 'multipart')
    return {
      ...call,
      parts: members.flatMap(({ name, value }) =>
        [value].flat().map(each => /** @type {[string, string | File]} */ ([name, asPart(each)])),
      ),
    };
  if (kind === 'form') {
    const text = new URLSearchParams(members.flatMap(pairs)).toString();
    return { ...call, headers: { ...headers, 'Content-Type': type }, body: text };
  }
  if (kind === 'binary') {
    const [file] = whole ? whole.value : [];
    if (!file) return call;
    return { ...call, headers: { ...headers, 'Content-Type': file.type || type }, body: file };
  }
  if (kind === 'text')
    return whole ? { ...call, headers: { ...headers, 'Content-Type': type }, body: whole.value } : call;
  const value = whole ? whole.value : Object.fromEntries(members.map(each => [each.name, each.value]));
  return { ...call, headers: { ...headers, 'Content-Type': type }, body: JSON.stringify(value) };
}

/** The values of the fields, except files, which a page cannot fill in. */
export function fieldValues(form) {
  return [...form.querySelectorAll('[data-place]:not([type=file])')].map(({ name, value }) => [name, value]);
}

export function fillIn(form, values) {
  for (const [name, value] of values) {
    const field = form.elements.namedItem(name);
    if (field) field.value = value;
  }
}

/** Sends a call. @param {Call} call @param {Record<string, string>} more */
export function sendCall({ method, path, headers, body, parts }, more = {}) {
  const form = parts && new FormData();
  if (parts) for (const [name, value] of parts) form.append(name, value);
  return fetch(path, {
    method,
    headers: { Accept: 'application/json, */*', ...headers, ...more },
    body: form || body,
    cache: 'no-store',
    signal: AbortSignal.timeout(90_000),
  });
}
