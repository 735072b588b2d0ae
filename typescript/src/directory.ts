/**
 * Throwaway homes: known folders, and git's configuration where it is wanted. What a test adds goes with its home.
 *
 * Making and removing directories costs more than the rest of an isolation, so a home that its test left as it was waits for the
 * next test, under another name, so that nothing finds it that its test knew. It waits for a moment only, and not longer than the
 * process.
 */

import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realProcess } from "./environ.js";
import { GIT_CONFIG } from "./tables.gen.js";

/** Folders of a home, parents first: the XDG directories lie where programs look without the variables. */
const FOLDERS = [".cache", ".config", ".local", ".local/share", ".local/state"];
/** Git's two configuration files, in a home. */
export const GIT_CONFIG_FILES = {
  GIT_CONFIG_GLOBAL: "gitconfig-global",
  GIT_CONFIG_SYSTEM: "gitconfig-system",
} as const;

/** Only the owner may look: ssh and gpg refuse a home that others can change. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** The time of change, in seconds, of everything in a home that nobody touched: whatever is added, removed or rewritten gets a later one. */
const UNTOUCHED_S = 1_000_000_000;
const WAITING_COUNT_MAX = 8;
/** Runners start the next test within a turn or two of the event loop, and some kill the process soon after the last one. */
const WAITING_TURN_COUNT_MAX = 2;
/** Taken before a test can put a fake clock into its place. */
const { setImmediate } = globalThis;

export class Home {
  path: string;
  #hasGitConfig = false;

  private constructor(path: string) {
    this.path = path;
  }

  static make(path: string): Home {
    const home = new Home(path);
    fs.mkdirSync(path, FOLDER_MODE);
    for (const folder of FOLDERS) fs.mkdirSync(join(path, folder), FOLDER_MODE);
    home.#mark();
    return home;
  }

  get hasGitConfig(): boolean {
    return this.#hasGitConfig;
  }

  /** Writes git's files. They are two names of one file, and behave as two wherever a program replaces what it changes. */
  writeGitConfig(): void {
    if (this.#hasGitConfig) return;
    const isUntouched = this.isUntouched();
    const [first, second] = Object.values(GIT_CONFIG_FILES).map((name) => join(this.path, name)) as [string, string];
    fs.writeFileSync(first, GIT_CONFIG, { mode: FILE_MODE });
    try {
      fs.linkSync(first, second);
    } catch {
      // Not every file system has second names.
      fs.writeFileSync(second, GIT_CONFIG, { mode: FILE_MODE });
    }
    this.#hasGitConfig = true;
    if (isUntouched) this.#mark();
  }

  isUntouched(): boolean {
    return this.#entries().every(([path, mode]) => {
      const stat = fs.lstatSync(path, { throwIfNoEntry: false });
      return stat !== undefined && stat.mode === mode && stat.mtimeMs === UNTOUCHED_S * 1000;
    });
  }

  remove(): void {
    const held = hold([this.path, ...FOLDERS.map((folder) => join(this.path, folder))]);
    try {
      for (const [path, mode] of this.#entries()) (mode & fs.constants.S_IFDIR ? fs.rmdirSync : fs.unlinkSync)(path);
    } catch {
      removeAll(this.path);
    } finally {
      held.forEach((descriptor) => fs.close(descriptor, () => {}));
    }
  }

  /** Everything in the home when nobody touched it, with its mode: files, then folders, the home itself last. */
  #entries(): [path: string, mode: number][] {
    const files = this.#hasGitConfig ? Object.values(GIT_CONFIG_FILES) : [];
    const file = fs.constants.S_IFREG | FILE_MODE;
    const folder = fs.constants.S_IFDIR | FOLDER_MODE;
    return [
      ...files.map((name): [string, number] => [`${this.path}/${name}`, file]),
      ...FOLDERS.map((name): [string, number] => [`${this.path}/${name}`, folder]).reverse(),
      [this.path, folder],
    ];
  }

  #mark(): void {
    for (const [path] of this.#entries()) fs.utimesSync(path, UNTOUCHED_S, UNTOUCHED_S);
  }
}

/** Keeps directories open over their removal. Their names are gone at once, but a file system frees the space only when the last
 * descriptor is closed; where it tells the disk about freed space, that takes up to half a millisecond for each. */
function hold(folders: readonly string[]): number[] {
  if (process.platform !== "linux") return [];
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = fs.constants;
  return folders.flatMap((folder) => {
    try {
      return [fs.openSync(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)];
    } catch {
      return [];
    }
  });
}

/** Removes also what is closed to writing, as Go's module cache is. */
function removeAll(path: string): void {
  try {
    fs.rmSync(path, { recursive: true, force: true });
  } catch {
    openForWriting(path);
    fs.rmSync(path, { recursive: true, force: true });
  }
}

function openForWriting(folder: string): void {
  fs.chmodSync(folder, FOLDER_MODE);
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) openForWriting(join(folder, entry.name));
  }
}

/** Where homes wait: a folder of this process, there while a home is. */
class Homes {
  #folder: string | undefined;
  #count = 0;
  #inUseCount = 0;
  #waiting: Home[] = [];
  #turnCount = 0;
  #isCounting = false;

  take(hasGitConfig: boolean): Home {
    const folder = (this.#folder ??= this.#open());
    this.#inUseCount += 1;
    const at = this.#waiting.findLastIndex((home) => home.hasGitConfig === hasGitConfig);
    if (at < 0) {
      const home = Home.make(this.#path(folder, "home"));
      if (hasGitConfig) home.writeGitConfig();
      return home;
    }
    const home = this.#waiting.splice(at, 1)[0]!;
    this.#rename(home, this.#path(folder, "home"));
    return home;
  }

  giveBack(home: Home): void {
    this.#inUseCount -= 1;
    if (this.#waiting.length < WAITING_COUNT_MAX && home.isUntouched()) {
      this.#rename(home, this.#path(this.#folder!, "waiting"));
      this.#waiting.push(home);
    } else {
      home.remove();
    }
    this.#turnCount = 0;
    if (!this.#isCounting) this.#countTurns();
    this.#isCounting = true;
  }

  #path(folder: string, kind: string): string {
    this.#count += 1;
    return `${folder}/${kind}-${this.#count}`;
  }

  #rename(home: Home, path: string): void {
    fs.renameSync(home.path, path);
    home.path = path;
  }

  #open(): string {
    const folder = fs.mkdtempSync(join(tmpdir(), "stricttest-"));
    realProcess.once("exit", this.#remove);
    return folder;
  }

  /** Waits some turns after the last home came back, then removes what waits. */
  readonly #countTurns = (): void => {
    this.#turnCount += 1;
    if (this.#turnCount <= WAITING_TURN_COUNT_MAX) {
      setImmediate(this.#countTurns);
      return;
    }
    this.#isCounting = false;
    for (const home of this.#waiting.splice(0)) home.remove();
    if (this.#inUseCount === 0) this.#remove();
  };

  readonly #remove = (): void => {
    if (this.#folder === undefined) return;
    realProcess.removeListener("exit", this.#remove);
    removeAll(this.#folder);
    this.#folder = undefined;
    this.#waiting = [];
  };
}

export const homes = new Homes();
