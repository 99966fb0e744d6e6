/** Redoc's bundle, as the server serves it. */
export function init(contract: object, options: object, element: Element | null, ready?: () => void): void;
