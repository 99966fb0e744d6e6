'use strict';

/** Signs in with the token after `#` in the URL, if the page has the sign-in form. Loaded before the page's own script. */
function exchangeToken() {
  const form = /** @type {HTMLFormElement} */ (document.getElementById('login'));
  let token = location.hash.slice(1);
  try {
    token = decodeURIComponent(token);
  } catch {
    /* the token was not encoded */
  }
  if (!form || !token) return;
  history.replaceState(null, '', location.pathname);
  /** @type {HTMLInputElement} */ (form.elements.namedItem('token')).value = token;
  form.submit();
}
