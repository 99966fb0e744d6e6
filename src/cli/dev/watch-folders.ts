import { readdirSync, statSync, watch, type FSWatcher } from 'node:fs';
import { join, relative } from 'node:path';
import { BuildFault } from '../build/shop-compilers.js';

/** One save causes several events: an editor may write a new file and replace the old one with it. */
const SETTLE_MS = 50;
/** An editor may also empty a file before it fills it. A file that stays empty longer than this is meant to be empty. */
const EMPTY_MS = 500;
const MAX_FOLDERS = 2_000;
/** Folders and files that are installed or generated, not written by hand. A log may be that of `coinslot dev` itself. */
const MADE = /^(node_modules|dist(-.*)?|generated|\..*|.*\.log)$/;

/**
 * Watches a folder and its subfolders. Each folder is watched, not each file as with Node's recursive watching on Linux, because an editor
 * may replace a file with a new one.
 * @param apart a folder that is not watched
 * @param changed called with the paths of what changed, relative to the folder; the callee reads the files itself
 * @throws BuildFault if the folder can't be watched
 * @returns a function that stops watching
 */
export function watchFolders(folder: string, apart: string, changed: (paths: string[]) => void): () => void {
  const watchers = new Map<string, FSWatcher>();
  let paths = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const report = (patience: number): void => {
    const isEmptied = [...paths].some(path => isEmpty(join(folder, path)));
    if (isEmptied && patience > 0) {
      timer = setTimeout(report, SETTLE_MS, patience - SETTLE_MS);
      return;
    }
    timer = undefined;
    // New folders are watched before `changed` reads them, so that no file that is written meanwhile is missed.
    add(folder);
    const seen = [...paths];
    paths = new Set();
    changed(seen);
  };
  const drop = (at: string): void => {
    watchers.get(at)?.close();
    watchers.delete(at);
  };
  const open = (at: string): void => {
    if (watchers.has(at)) return;
    if (watchers.size >= MAX_FOLDERS)
      throw new BuildFault(`${folder} has more than ${MAX_FOLDERS} folders, too many to watch.`);
    const watcher = watch(at, (_event, name) => {
      if (name !== null && (MADE.test(name) || join(at, name) === apart)) return;
      paths.add(relative(folder, name === null ? at : join(at, name)));
      timer ??= setTimeout(report, SETTLE_MS, EMPTY_MS);
    });
    // The folder is gone.
    watcher.on('error', () => drop(at));
    watchers.set(at, watcher);
  };
  const add = (top: string): void => {
    const found = foldersBelow(top, apart);
    for (const at of [...watchers.keys()].filter(each => !found.has(each))) drop(at);
    for (const at of found) open(at);
  };
  const close = (): void => {
    clearTimeout(timer);
    for (const at of [...watchers.keys()]) drop(at);
  };
  try {
    add(folder);
  } catch (error) {
    close();
    throw error instanceof BuildFault ? error : notWatched(folder, error as NodeJS.ErrnoException);
  }
  return close;
}

function isEmpty(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true && stats.size === 0;
}

function foldersBelow(folder: string, apart: string, found = new Set<string>()): Set<string> {
  found.add(folder);
  let entries;
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    // The folder disappeared while the others were read.
    return found;
  }
  for (const entry of entries) {
    const at = join(folder, entry.name);
    if (entry.isDirectory() && !MADE.test(entry.name) && at !== apart) foldersBelow(at, apart, found);
  }
  return found;
}

function notWatched(folder: string, { code, message }: NodeJS.ErrnoException): BuildFault {
  const help =
    code === 'ENOSPC' || code === 'EMFILE'
      ? ': raise fs.inotify.max_user_watches and max_user_instances'
      : '';
  return new BuildFault(`${folder} can't be watched: ${message}${help}.`);
}
