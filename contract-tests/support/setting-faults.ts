import { SettingReader } from '../../src/config/setting-reader.js';
import type { NetworkName } from '../../src/rails/solana/networks.js';
import { readSettings, type Declared } from '../../src/shop/settings.js';

/** What is wrong with the settings of an operation, one fault per line. */
export function settingFaults(
  entry: Declared,
  env: Record<string, string>,
  network: NetworkName = 'sandbox',
): string[] {
  const reader = new SettingReader(env);
  readSettings({ operation: entry }, reader, network);
  try {
    reader.finish();
    return [];
  } catch (error) {
    return (error as Error).message
      .split('\n')
      .slice(1)
      .map(line => line.trim());
  }
}
