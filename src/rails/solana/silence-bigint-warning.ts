// Silences a warning from a dependency of spl-token, which says that its native part was not built. It is deliberately not built, because
// install scripts are disabled. Entry files import this module first.
const ABSENT = 'bigint: Failed to load bindings';
const warn = console.warn.bind(console); // eslint-disable-line no-console

// eslint-disable-next-line no-console
console.warn = (...values: unknown[]): void => {
  if (!String(values[0]).startsWith(ABSENT)) warn(...values);
};
