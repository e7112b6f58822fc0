/**
 * The server to start: the setting, the path, the extension's own environment, in this order.
 *
 * 1. A setting that does not fit is an error: who names a program does not want another one.
 * 2. On the path a program counts when it calls itself `nexus` and is new enough; others are passed over, and logged.
 * 3. A program that said its version once is not asked again while its file is the same: that takes half a second.
 * 4. In a window that is not trusted, programs inside its folders are never run, and nothing is installed: that would
 *    use the network. The shared daemon is the program that is found here, so this holds for it, too.
 * 5. A server that was just installed replaces the shared daemon: its own files may be those that were removed.
 */
import { stat } from "node:fs/promises";
import { bundleIn, discard, type Installing, install, installed } from "./install";
import { type Launch, stopShared } from "./launch";
import { isInside, isProgram, onPath, type Places, type Run, written } from "./programs";
import { findPython, type PythonSearch } from "./python";
import { SetupError } from "./remedies";
import { atLeast, NEEDED_SERVER, serverVersion, shown, type Version } from "./versions";

/** What programs said of themselves, by path and time of change; it outlives the window. */
export interface KnownVersions {
  get(key: string): Version | undefined;
  set(key: string, version: Version): void;
}

export interface Search {
  readonly run: Run;
  readonly places: Places;
  readonly trusted: boolean;
  /** The setting `nexus.server.path`. */
  readonly setting: string;
  /** The setting `nexus.server.shared`. */
  readonly isShared: boolean;
  readonly folder: string | undefined;
  readonly python: PythonSearch;
  /** The directory of the bundled server. */
  readonly bundled: string;
  readonly storage: string;
  readonly log: (line: string) => void;
  readonly known: KnownVersions;
  /** Runs an installation where the user sees it and can cancel it. */
  readonly installing: (work: (seen: Pick<Installing, "signal" | "report">) => Promise<string>) => Promise<string>;
}

const VERSION_MS = 20_000;
const MODULE = ["-I", "-m", "nexus_daemon"];

/** Raises SetupError where there is none. */
export async function findServer(search: Search): Promise<Launch> {
  return (await fromSetting(search)) ?? (await fromPath(search)) ?? (await managed(search));
}

async function fromSetting(search: Search): Promise<Launch | undefined> {
  const path = written(search.setting, search.folder);
  if (path === undefined) return undefined;
  if (isInside(path, search.places.refused)) {
    const message = `The setting nexus.server.path names ${path}, which is in this folder, and the folder is not trusted.`;
    throw new SetupError("bad-setting", message, "manageTrust", "serverSetting");
  }
  const named = /[\\/]/.test(path) ? [path] : await onPath(path, search.places);
  const command = named[0];
  if (command === undefined || !(await isProgram(command, search.places.windows))) {
    const message = `The setting nexus.server.path names ${path}, and there is no such program.`;
    throw new SetupError("bad-setting", message, "serverSetting", "tryAgain");
  }
  const version = await versionOf(command, [], search);
  if (typeof version === "string") {
    const message = `The setting nexus.server.path names ${command}, which ${version}.`;
    throw new SetupError("bad-setting", message, "serverSetting", "tryAgain", "output");
  }
  return { command, prefix: [], isShared: search.isShared, from: "setting", version };
}

async function fromPath(search: Search): Promise<Launch | undefined> {
  for (const command of await onPath("nexus", search.places)) {
    const version = await versionOf(command, [], search);
    if (typeof version !== "string") return { command, prefix: [], isShared: search.isShared, from: "path", version };
    search.log(`${command} is passed over: it ${version}.`);
  }
  return undefined;
}

async function managed(search: Search): Promise<Launch> {
  const bundle = await bundleIn(search.bundled);
  const windows = search.places.windows;
  const how = { prefix: MODULE, isShared: search.isShared, from: "managed" } as const;
  const there = await installed(search.storage, bundle, windows);
  if (there !== undefined) {
    const version = await versionOf(there, MODULE, search);
    if (typeof version !== "string") return { ...how, command: there, version };
    search.log(`The installed server ${version}: it is installed anew.`);
  }
  if (!search.trusted) {
    throw new SetupError(
      "not-trusted",
      "The server is not installed yet, and nothing is installed while this folder is not trusted.",
      "manageTrust",
    );
  }
  const base = await findPython(search.python);
  search.log(`Installing the server with Python ${shown(base.version)}, ${base.path}.`);
  if (there !== undefined) await discard(search.storage, bundle);
  const command = await search.installing((seen) =>
    install(base, { ...seen, run: search.run, storage: search.storage, bundle, windows, log: search.log }),
  );
  const version = await versionOf(command, MODULE, search);
  if (typeof version === "string") {
    throw new SetupError("install-failed", `The server that was installed ${version}.`, "tryAgain", "output");
  }
  if (search.isShared) await stopShared({ command, prefix: MODULE }, search.run, search.log);
  return { ...how, command, version };
}

/** The version, or what is wrong with the program. */
async function versionOf(command: string, args: readonly string[], search: Search): Promise<Version | string> {
  const key = `${command} ${(await stat(command).catch(() => undefined))?.mtimeMs ?? 0}`;
  const known = search.known.get(key);
  if (known && atLeast(known, NEEDED_SERVER)) return known;
  const printed = await search.run(command, [...args, "--version"], { timeoutMs: VERSION_MS });
  if (printed.code !== 0) return `does not run (${printed.err.trim().split(/\r?\n/).at(-1) ?? "no word why"})`;
  const version = serverVersion(printed.out);
  if (!version) return "is another program of that name";
  if (!atLeast(version, NEEDED_SERVER))
    return `is version ${shown(version)}; ${shown(NEEDED_SERVER)} or later is needed`;
  search.known.set(key, version);
  return version;
}
