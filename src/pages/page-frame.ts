import { escapeHtml } from './escape.js';

/** An HTML document. Its paths lead to this server. `head` (additional elements for the head) and `body` are HTML. */
export type PageFrame = {
  title: string;
  style: string;
  /** Undefined on a page without a script. */
  script?: string;
  body: string;
  head?: string;
  /** Whether the script is a module. */
  isModule?: boolean;
  /** Whether search engines may list the page. */
  isPublic?: boolean;
};

/** The server's icon, which the public listener serves. */
export const ICON = '<link rel="icon" href="/icon.svg" type="image/svg+xml">\n';

/** The HTML document around every page: landing page and reference, panel, operator page. */
export function pageFrame({ title, style, script, body, head = '', ...kind }: PageFrame): string {
  const { isModule = false, isPublic = false } = kind;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${isPublic ? '' : '<meta name="robots" content="noindex">\n'}<title>${escapeHtml(title)}</title>
${head}<link rel="stylesheet" href="${style}">
${script === undefined ? '' : `<script src="${script}" ${isModule ? 'type="module"' : 'defer'}></script>\n`}</head>
<body>
${body}
</body>
</html>
`;
}

/** A simple page of the shop, without scripts. `heading` is text, `main` is HTML. */
export function shopPage(page: {
  shop: string;
  title: string;
  heading: string;
  style: string;
  main: string;
}): string {
  const { shop, title, heading, style, main } = page;
  const body = `<header class="bar">${brand(shop, '', '/')}</header>
<main class="card"><h1>${escapeHtml(heading)}</h1>
${main}
</main>`;
  return pageFrame({ title: `${title} – ${shop}`, style, head: ICON, body });
}

/** The texts and links of the sign-in page and its notices. */
export type Entrance = {
  /** The name of the product, and the kind of page behind the sign-in. */
  shop: string;
  page: string;
  style: string;
  script: string;
  head?: string;
  /** The text above the sign-in form, as HTML. */
  intro: string;
  /** The address that the token is sent to. */
  action: string;
  /** The page behind the sign-in, and its name in links. */
  home: string;
  homeName: string;
};

/** Why signing in failed, why it is needed again, or a confirmation of signing out. */
type EntranceMessage = { kind: 'failed' | 'again' | 'signed out'; text: string };

export type EntrancePages = {
  signIn(message?: EntranceMessage): string;
  /** A page that redirects to the page behind the sign-in. */
  signedIn(): string;
  notice(title: string, message: string): string;
};

export function entrancePages(entrance: Entrance): EntrancePages {
  const { home, homeName } = entrance;
  return {
    signIn: message =>
      narrow(
        entrance,
        message?.kind === 'failed' ? 'Sign in failed' : 'Sign in',
        signInForm(entrance, message),
      ),
    signedIn: () =>
      narrow(
        entrance,
        'Signed in',
        `<h1>You are signed in</h1><p><a href="${home}">Continue to ${homeName}</a></p>`,
        `<meta http-equiv="refresh" content="0; url=${home}">\n`,
      ),
    notice: (title, message) =>
      narrow(
        entrance,
        title,
        `<h1>${escapeHtml(title)}</h1><p role="alert">${escapeHtml(message)}</p>
<p><a href="${home}">Back to ${homeName}</a></p>`,
      ),
  };
}

function narrow(entrance: Entrance, title: string, main: string, more = ''): string {
  const { shop, page, home, style, script, head = '' } = entrance;
  const body = `<header class="bar">${brand(shop, page, home)}</header>
<main class="card narrow">\n${main}\n</main>`;
  return pageFrame({ title: `${title} – ${shop} ${page}`, style, script, head: head + more, body });
}

function signInForm(entrance: Entrance, message: EntranceMessage | undefined): string {
  const { intro, page, action } = entrance;
  const [style, role] = message?.kind === 'signed out' ? ['said', 'status'] : ['fault', 'alert'];
  const said = message ? `<p id="why" class="${style}" role="${role}">${escapeHtml(message.text)}</p>\n` : '';
  const described = message?.kind === 'failed' ? ' aria-describedby="why" aria-invalid="true"' : '';
  return `<h1>Sign in</h1>
<p>${intro}</p>
${said}<form id="login" method="post" action="${action}">
<input type="text" name="username" value="${escapeHtml(page)}" autocomplete="username" hidden>
<label class="above" for="token">Token</label>
<input type="password" id="token" name="token" required autocomplete="current-password" maxlength="500"${described}>
<p><button>Sign in</button></p>
</form>`;
}

/** A hidden field of a form. */
export function hidden(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
}

/** A link to the first page: the name of the product, next to a round mark with its first letter. */
export function brand(shop: string, page: string, home: string): string {
  const letter = [...shop][0] ?? '';
  const behind = page === '' ? '' : ` <span class="soft">${page}</span>`;
  return `<a class="brand" href="${home}"><span class="coin" aria-hidden="true">${escapeHtml(letter)}</span><span>${escapeHtml(shop)}${behind}</span></a>`;
}
