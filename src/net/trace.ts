import {
  context,
  propagation,
  ProxyTracerProvider,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
} from '@opentelemetry/api';

/**
 * Spans and W3C trace context (https://www.w3.org/TR/trace-context/). All of it does nothing until the operator attaches an SDK of
 * OpenTelemetry (docs/how-to/operating.md, "Traces").
 */
const NAME = 'coinslot';
const tracer = trace.getTracer(NAME);

/** Whether an SDK is attached. Without one, even empty spans cost a paid call some microseconds. */
function isTracing(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(NAME) !== undefined;
}

/** Runs `work` in a span. `attributes` is called only if an SDK is attached. */
export function traced<T>(
  name: string,
  attributes: () => Attributes,
  work: () => Promise<T>,
  kind: SpanKind = SpanKind.INTERNAL,
): Promise<T> {
  if (!isTracing()) return work();
  return tracer.startActiveSpan(name, { attributes: attributes(), kind }, async span => {
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Runs `work` in a span that continues the trace named in the headers of a request, if there is one. */
export function tracedFrom<T>(
  headers: Record<string, string | string[] | undefined>,
  name: string,
  attributes: () => Attributes,
  work: () => Promise<T>,
): Promise<T> {
  if (!isTracing()) return work();
  const caller = propagation.extract(context.active(), headers);
  return context.with(caller, () => traced(name, attributes, work, SpanKind.SERVER));
}

/** Runs a request to another service in a span. `service` must not contain credentials. */
export function tracedRequest<T>(method: string, service: string, work: () => Promise<T>): Promise<T> {
  const attributes = (): Attributes => ({ 'http.request.method': method, 'server.address': service });
  return traced(`${method} ${service}`, attributes, work, SpanKind.CLIENT);
}

/** Adds the headers that pass the trace on to another service (W3C Trace Context). A caller's `baggage` is not passed on. */
export function passTraceOn(headers: Record<string, string>): Record<string, string> {
  if (!isTracing()) return headers;
  const { traceparent, tracestate } = carrierOf(context.active());
  if (traceparent === undefined) return headers;
  return { ...headers, traceparent, ...(tracestate === undefined ? {} : { tracestate }) };
}

function carrierOf(active: Context): Record<string, string> {
  const carrier: Record<string, string> = {};
  propagation.inject(active, carrier);
  return carrier;
}
