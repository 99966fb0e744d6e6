// A package below spl-token warns at every start that its native half was not built. It is not built on purpose: no package of
// ours runs install scripts. Entry files import this first.
const ABSENT = 'bigint: Failed to load bindings';
const warn = console.warn.bind(console); // eslint-disable-line no-console

// eslint-disable-next-line no-console
console.warn = (...values: unknown[]): void => {
  if (!String(values[0]).startsWith(ABSENT)) warn(...values);
};
