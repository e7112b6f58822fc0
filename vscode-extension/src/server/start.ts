/** The daemon of this window, made of the editor's settings, channels and storage. */
import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { showRemedies } from "../commands/commandContext";
import { foldersOnDisk } from "../focus";
import { NexusError } from "../nexus";
import { backoff } from "./backoff";
import type { Connect } from "./connection";
import { Daemon } from "./daemon";
import { findServer, type KnownVersions, type Search } from "./find";
import { stopShared } from "./launch";
import { type Places, run } from "./programs";
import { checkProtocol } from "./protocolCheck";
import { traceChannel } from "./trace";
import type { Version } from "./versions";

export interface Server extends vscode.Disposable {
  readonly daemon: Daemon;
  readonly output: vscode.LogOutputChannel;
  readonly trace: vscode.OutputChannel;
  /** Runs a command of the program `nexus` and returns what it printed. Rejects with NexusError. */
  readonly runServer: (args: readonly string[]) => Promise<string>;
}

const KNOWN = "nexus.knownVersions";
const COMMAND_MS = 30_000;
const WINDOWS = process.platform === "win32";
const PROGRAM = "nexus.server.path";
const WINDOW_SETTINGS = ["nexus.python", "nexus.server.shared"];

/** `load` gives the language client when it is first needed. */
export function makeServer(context: vscode.ExtensionContext, load: () => { connect: Connect }): Server {
  const output = vscode.window.createOutputChannel("Nexus", { log: true });
  const trace = traceChannel();
  const log = (line: string) => output.info(line);
  const daemon = new Daemon({
    find: (doing) => findServer(search(context, log, doing)),
    connect: async (launch, hooks) => {
      try {
        const trusted = vscode.workspace.isTrusted;
        const { version } = context.extension.packageJSON as { version: string };
        return await load().connect({
          launch,
          output,
          trace: trace.channel,
          trusted,
          checkProtocol: (protocol) => checkProtocol(protocol, launch, version),
          ...hooks,
        });
      } catch (error) {
        // what was known of the program is no longer so
        await context.globalState.update(KNOWN, undefined);
        throw error;
      }
    },
    stopShared: (launch) => stopShared(launch, run, log),
    backoff: backoff(),
    log,
    failed: (message, remedies) => void showRemedies(message, remedies),
  });
  const listening = [
    vscode.workspace.onDidGrantWorkspaceTrust(() => restartWindow(daemon)),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration(PROGRAM)) restart(daemon);
      else if (WINDOW_SETTINGS.some((key) => change.affectsConfiguration(key))) restartWindow(daemon);
    }),
  ];
  return {
    daemon,
    output,
    trace: trace.channel,
    runServer: (args) => runServer(daemon, args),
    dispose() {
      for (const one of [...listening, daemon, output, trace]) one.dispose();
    },
  };
}

async function runServer(daemon: Daemon, args: readonly string[]): Promise<string> {
  await daemon.start();
  const launch = daemon.launch;
  if (!launch || daemon.state !== "ready") throw new NexusError(daemon.detail, "not-ready");
  const printed = await run(launch.command, [...launch.prefix, ...args], { timeoutMs: COMMAND_MS });
  if (printed.code === 0) return printed.out.trim();
  throw new NexusError(printed.err.trim() || printed.out.trim() || "The server did not say why it failed.", "failed");
}

/** Another program is to serve: all windows, where they share one. */
function restart(daemon: Daemon): void {
  if (daemon.state !== "stopped") void daemon.restart();
}

/** A server that nobody wanted yet reads the settings and the trust when it starts. */
function restartWindow(daemon: Daemon): void {
  if (daemon.state !== "stopped") void daemon.restartWindow();
}

function search(
  context: vscode.ExtensionContext,
  log: (line: string) => void,
  doing: (state: "finding" | "installing", detail: string) => void,
): Search {
  const folders = foldersOnDisk().map((folder) => folder.uri.fsPath);
  const trusted = vscode.workspace.isTrusted;
  const places: Places = {
    path: searchPath(process.env),
    windows: WINDOWS,
    // a window on the home directory does not make every installed program one of its folder
    refused: trusted ? [] : folders.filter((folder) => folder !== homedir()),
  };
  const folder = folders[0];
  const settings = vscode.workspace.getConfiguration("nexus");
  return {
    run,
    places,
    trusted,
    setting: setting(settings, "server.path", trusted, ""),
    isShared: setting(settings, "server.shared", trusted, true),
    folder,
    python: {
      run,
      places,
      setting: setting(settings, "python", trusted, ""),
      folder,
      chosen: () => (trusted ? chosenPython() : Promise.resolve(undefined)),
    },
    bundled: join(context.extensionPath, "server"),
    storage: join(context.globalStorageUri.fsPath, "server"),
    log,
    known: knownVersions(context.globalState),
    installing: (work) => withProgress(work, doing),
  };
}

function knownVersions(memory: vscode.Memento): KnownVersions {
  return {
    get: (key) => memory.get<Record<string, Version>>(KNOWN)?.[key],
    // one program: who changes between several asks again
    set: (key, version) => void memory.update(KNOWN, { [key]: version }),
  };
}

function searchPath(env: NodeJS.ProcessEnv): string {
  const name = Object.keys(env).find((key) => key.toUpperCase() === "PATH") ?? "PATH";
  return env[name] ?? "";
}

/** The editor leaves out the workspace's values of restricted settings already; this does not depend on it. */
function setting<T extends string | boolean>(
  settings: vscode.WorkspaceConfiguration,
  key: string,
  trusted: boolean,
  otherwise: T,
): T {
  const value = trusted ? settings.get(key) : settings.inspect(key)?.globalValue;
  return typeof value === typeof otherwise ? (value as T) : otherwise;
}

/** What the Python extension uses; none where it is absent or takes its time. */
async function chosenPython(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension("ms-python.python");
  if (!extension?.isActive) return undefined;
  const api = extension.exports as { environments?: { getActiveEnvironmentPath?(): { path?: string } } } | undefined;
  const path = api?.environments?.getActiveEnvironmentPath?.().path;
  return path?.match(/[\\/]/) ? path : undefined;
}

function withProgress(
  work: (seen: { signal: AbortSignal; report: (doing: string) => void }) => Promise<string>,
  doing: (state: "finding" | "installing", detail: string) => void,
): Promise<string> {
  const options = {
    location: vscode.ProgressLocation.Notification,
    title: "Nexus: installing the server",
    cancellable: true,
  };
  const task = async (
    progress: vscode.Progress<{ message?: string }>,
    token: vscode.CancellationToken,
  ): Promise<string> => {
    const abort = new AbortController();
    token.onCancellationRequested(() =>
      abort.abort(new Error("Installing the server was cancelled. Restart it to try again.")),
    );
    const report = (message: string) => {
      progress.report({ message });
      doing("installing", message);
    };
    return work({ signal: abort.signal, report });
  };
  return Promise.resolve(vscode.window.withProgress(options, task));
}
