/** Shows answers, challenges and receipts. Data from the server is shown as text, never as markup. */

/** JSON below this depth is folded. */
const OPEN_DEPTH = 1;
const IMAGE = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/;
const TEXT = /^text\/|[/+](json|xml|yaml|javascript)$/;
const MOST_TEXT = 200_000;

export function make(name, text = undefined, className = undefined) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

/** The JSON of a header in base64; undefined if there is none. */
export function decoded(header) {
  if (!header) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(header), each => each.charCodeAt(0))));
  } catch {
    return undefined;
  }
}

export function folded(title, ...parts) {
  const details = make('details');
  details.append(make('summary', title), ...parts);
  return details;
}

/** Text that scrolls, including with the keyboard. */
export function block(text, label) {
  const pre = make('pre', text);
  pre.tabIndex = 0;
  pre.setAttribute('role', 'group');
  pre.setAttribute('aria-label', label);
  return pre;
}

/** Names and values; a value may be an element. */
export function facts(pairs) {
  const list = make('dl', undefined, 'facts-list');
  for (const [name, value] of pairs) {
    const item = make('dd');
    item.append(value);
    list.append(make('dt', name), item);
  }
  return list;
}

export function linkTo(href, text) {
  const link = make('a', text);
  link.href = href;
  return link;
}

const isTree = value => value !== null && typeof value === 'object' && Object.keys(value).length > 0;

function leaf(value) {
  if (typeof value === 'string') return make('span', value, 'json-text');
  return make(
    'span',
    value !== null && typeof value === 'object' ? JSON.stringify(value) : String(value),
    'json-value',
  );
}

/** JSON as a list of names and values; objects and lists can be expanded. */
function tree(value, depth = 0) {
  if (!isTree(value)) return leaf(value);
  const list = make('dl', undefined, 'json');
  for (const [name, each] of Object.entries(value)) {
    const item = make('dd');
    if (isTree(each)) {
      const count = Object.keys(each).length;
      const details = folded(
        Array.isArray(each)
          ? count + (count === 1 ? ' item' : ' items')
          : count + (count === 1 ? ' field' : ' fields'),
        tree(each, depth + 1),
      );
      details.open = depth < OPEN_DEPTH && count <= 8;
      item.append(details);
    } else item.append(leaf(each));
    list.append(make('dt', Array.isArray(value) ? String(Number(name) + 1) : name), item);
  }
  return list;
}

function json(text) {
  const value = JSON.parse(text);
  const whole = block(JSON.stringify(value, null, 2), 'The answer, as JSON');
  return isTree(value) ? [tree(value), folded('As JSON', whole)] : [whole];
}

const sizeOf = bytes => (bytes < 1024 ? bytes + ' bytes' : Math.round(bytes / 102.4) / 10 + ' KB');

function fileName(operation, type) {
  const [, ending = 'bin'] = /\/(?:x-|vnd\.)?([a-z0-9]+)/.exec(type) || [];
  return operation + '.' + ({ plain: 'txt', mpeg: 'mp3', svg: 'svg' }[ending] || ending);
}

function media(name, type, url) {
  const element = /** @type {HTMLMediaElement & HTMLImageElement} */ (make(name));
  element.src = url;
  if (name === 'img') element.alt = 'The answer, ' + type;
  else {
    element.controls = true;
    element.setAttribute('aria-label', 'The answer, ' + type);
  }
  return element;
}

/** The body of an answer: JSON, text, audio, video or image, and always as a download. */
export async function answerParts(operation, type, body) {
  if (body.size === 0) return [make('p', 'Success, without content.')];
  const url = URL.createObjectURL(body);
  const download = linkTo(url, 'Download (' + sizeOf(body.size) + ')');
  download.download = fileName(operation, type);
  const shown = await shownParts(type, body, url);
  const line = make('p');
  line.append(download);
  return [...shown, line];
}

async function shownParts(type, body, url) {
  if (type.startsWith('audio/')) return [media('audio', type, url)];
  if (type.startsWith('video/')) return [media('video', type, url)];
  if (IMAGE.test(type)) return [media('img', type, url)];
  if (!TEXT.test(type)) return [make('p', 'A file of type ' + (type || 'unknown') + '.')];
  const text = await body.text();
  if (text.length > MOST_TEXT) return [make('p', 'This text is too long to show: download it.')];
  try {
    if (/[/+]json$/.test(type)) return json(text);
  } catch {
    // It is shown as it is.
  }
  return [block(text, 'The answer')];
}

/** The message of an answer that is an error. */
export async function errorOf(answer) {
  const text = await answer.text().catch(() => '');
  try {
    const { error } = JSON.parse(text);
    if (typeof error === 'string') return error;
  } catch {
    // A proxy's own words.
  }
  return answer.status + ' ' + (answer.statusText || '');
}
