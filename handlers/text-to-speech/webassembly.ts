/** The part of the WebAssembly interface that is used here; only the browser's types declare it, not Node's. */
export type WasmModule = object;

type WasmInstance = { exports: Record<string, unknown> };

type WebAssemblyInterface = {
  compile(bytes: Uint8Array): Promise<WasmModule>;
  Instance: new (module: WasmModule, imports: Record<string, Record<string, unknown>>) => WasmInstance;
};

export const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyInterface }).WebAssembly;
