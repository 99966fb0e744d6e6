/** Headers that belong to a connection, or to the exchange between this server and an upstream. In lower case. */
export const OF_THE_CONNECTION =
  /^(host|connection|keep-alive|proxy-.*|transfer-encoding|te|trailer|upgrade|expect|content-length|content-encoding|accept-encoding|range|if-.*)$/;

/**
 * Headers of a request that concern payment or caching, or that OpenAPI excludes as parameters. Whatever a contract says about them, they
 * are not part of a call. In lower case.
 */
const OF_EVERY_CALL = [
  ...['payment-signature', 'x-payment', 'prefer', 'if-none-match'],
  ...['accept', 'content-type', 'authorization'],
] as const;

export type HeaderOfEveryCall = (typeof OF_EVERY_CALL)[number];

/** Headers that browsers, proxies and this server write. */
const OF_THE_WAY =
  /^(cookie|origin|referer|forwarded|x-forwarded-.*|via|x-request-id|traceparent|tracestate|payment-.*|x-payment-.*|access-control-.*|sec-.*)$/;

export function isOfEveryCall(name: string): boolean {
  return OF_EVERY_CALL.some(each => each === name.toLowerCase());
}

/** Whether a caller can't choose this header, or it is meant for this server only. */
export function isNoParameter(name: string): boolean {
  return OF_THE_CONNECTION.test(name.toLowerCase()) || OF_THE_WAY.test(name.toLowerCase());
}
