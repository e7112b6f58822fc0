/**
 * One VS Code for all tests: a server, a browser, and folders that hold nothing of the user's.
 *
 * 1. Home, configuration, ledger, settings, extensions and workspaces lie in one new temporary folder.
 * 2. Everything listens on 127.0.0.1 only; the browser can reach nothing else.
 * 3. What was started is ended by its id, also after a failure; the logs of a failed run are kept. The shared daemon is
 *    that of a runtime directory of the run's own, which has a short name: the address of a socket has to be short.
 * 4. The editor finds every program of the machine but Python and Nexus: daemons are started by their full path, and a
 *    test that wants a Python on the path puts one into `bin`.
 */
import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { end, sharedDaemons, start } from "./processes.ts";

const START_MS = 30_000;
const SHORT = "/tmp"; // $TMPDIR may be long
const GRACE_S = 5; // for how long the server waits for a page that has gone

export const EXTENSION = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
export const REPOSITORY = path.resolve(EXTENSION, "..");
const EXAMPLES = path.join(REPOSITORY, "examples");
/** Extensions that come with VS Code and that no test is about: each window would activate some of them before ours. */
const LEFT_OUT =
  /^(copilot|css-lang|debug-|emmet|extension-editing|git|grunt|gulp|html-lang|ipynb|jake|markdown-math|merge-|mermaid|microsoft-auth|ms-vscode|notebook|npm|php-lang|terminal-suggest|tunnel|typescript-lang)/;
/** Programs that the editor does not find on its path. */
const HIDDEN = /^(python|pip|pyenv|py$|uv|conda|nexus)/;

const SETTINGS = {
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "window.autoDetectColorScheme": true, // a page says whether it is dark
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "telemetry.telemetryLevel": "off",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "git.enabled": false,
  "security.workspace.trust.untrustedFiles": "open",
  "security.workspace.trust.startupPrompt": "always",
  "security.workspace.trust.banner": "never",
  "editor.minimap.enabled": false,
  "editor.scrollBeyondLastLine": false,
  "window.restoreWindows": "none",
  "files.autoSave": "off",
  "workbench.editor.enablePreview": false,
};

/** What a test needs to know of the run; plain values, so that they can be handed to the tests' process. */
export interface World {
  readonly root: string;
  readonly port: number;
  /** Of the server, the parent of all extension hosts and the servers of their windows. */
  readonly pid: number;
  /** The command `nexus`. */
  readonly nexus: string;
  readonly browser: string;
  /** What the daemons, the tests' own among them, find in their environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly modelLog: string;
  /** The program of an MCP server for files, which takes the directory that it may read and write. */
  readonly mcpServer: string;
  readonly logs: string;
  /** The only directory of the editor's path: links to programs of the machine. */
  readonly bin: string;
  /** Where the shared daemon has its socket and lock. */
  readonly runtime: string;
}

export interface Tools {
  readonly browser: string;
  readonly node: string;
  readonly codeServer: string;
  readonly mcpServer: string;
  /** Packaged extensions. */
  readonly vsix: readonly string[];
}

/** Starts the server with the extensions installed; `close` ends it, and keeps its logs in `kept` when told to. */
export async function open(tools: Tools, kept: string): Promise<{ world: World; close(keep: boolean): Promise<void> }> {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), "nexus-e2e-")));
  const in_ = (...parts: string[]) => path.join(root, ...parts);
  for (const folder of [
    "home",
    "state",
    "logs",
    "bin",
    "extensions",
    "built-in",
    "workspaces",
    "data/User",
    "data/Machine",
  ]) {
    mkdirSync(in_(folder), { recursive: true });
  }
  cpSync(path.join(EXAMPLES, "home", ".nexus3"), in_("home", ".nexus3"), { recursive: true });
  const nexus = findNexus();
  writeFileSync(in_("config.yaml"), "auth: none\n");
  writeFileSync(in_("data/User/settings.json"), JSON.stringify(SETTINGS, null, 2));
  // paths of programs are settings of the machine: a server's do not come from the user's, which are the browser's
  writeFileSync(in_("data/Machine/settings.json"), JSON.stringify({ "nexus.server.path": nexus }, null, 2));
  linkPrograms(in_("bin"), tools.node);
  linkBuiltIns(in_("built-in"), tools.codeServer);
  const runtime = mkdtempSync(path.join(SHORT, "nexus-"));
  const env = environment(root, nexus, runtime);
  const server = [
    path.join(tools.codeServer, "out/node/entry.js"),
    ...["--config", in_("config.yaml")],
    ...["--user-data-dir", in_("data"), "--extensions-dir", in_("extensions")],
  ];
  const installed = tools.vsix.flatMap((vsix) => ["--install-extension", vsix]);
  await promisify(execFile)(tools.node, [...server, ...installed, "--force"], { env });
  const child = start(
    tools.node,
    [
      ...server,
      ...["--auth", "none", "--bind-addr", "127.0.0.1:0", "--ignore-last-opened"],
      ...["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"],
      ...["--reconnection-grace-time", String(GRACE_S), "--vscode-option", "enable-smoke-test-driver"],
      ...["--vscode-option", `builtin-extensions-dir=${in_("built-in")}`],
    ],
    { env, log: in_("logs/server.log"), cwd: root },
  );
  const pid = child.pid;
  if (pid === undefined) throw new Error(`code-server could not be started with ${tools.node}`);
  const close = async (keep: boolean) => {
    await end(pid);
    for (const daemon of sharedDaemons(runtime)) await end(daemon.pid);
    if (keep) keepLogs(root, kept);
    for (const folder of [root, runtime]) {
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    }
  };
  try {
    const port = await portOf(in_("logs/server.log"));
    const [modelLog, logs, bin] = [in_("logs/model.jsonl"), in_("logs"), in_("bin")];
    const { browser, mcpServer } = tools;
    const world: World = { root, port, pid, nexus, browser, env, modelLog, mcpServer, logs, bin, runtime };
    return { world, close };
  } catch (error) {
    await close(true);
    throw error;
  }
}

/** A new copy of the example workspace, or of a part of it, under a name of its own. */
export function copyExample(world: World, name: string, part = "company"): string {
  const target = path.join(world.root, "workspaces", name);
  cpSync(path.join(EXAMPLES, part), target, { recursive: true });
  return target;
}

/**
 * The editor's model answers in a folder: the example's user has a provider, which would be asked. With `none` the
 * settings, not what is picked in the editor, say for which model everything is counted.
 */
export function leaveModelToEditor(folder: string, name: "editor" | "none" = "editor"): void {
  const file = path.join(folder, ".nexus3/config.json");
  const settings = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { provider?: object }) : {};
  writeFileSync(file, JSON.stringify({ ...settings, provider: { ...settings.provider, name } }));
}

/** Links to the programs of this process's path, as a shell would find them, and to the `node` of the editor. */
function linkPrograms(bin: string, node: string): void {
  symlinkSync(node, path.join(bin, "node"));
  const linked = new Set(["node"]);
  for (const directory of new Set((process.env.PATH ?? "").split(path.delimiter))) {
    if (!path.isAbsolute(directory) || !existsSync(directory)) continue;
    for (const name of readdirSync(directory)) {
      if (linked.has(name) || HIDDEN.test(name)) continue;
      linked.add(name);
      symlinkSync(path.join(directory, name), path.join(bin, name));
    }
  }
}

/** Links to VS Code's own extensions, but for those that are left out. */
function linkBuiltIns(target: string, codeServer: string): void {
  const source = path.join(codeServer, "lib/vscode/extensions");
  for (const name of readdirSync(source).filter((name) => !LEFT_OUT.test(name))) {
    symlinkSync(path.join(source, name), path.join(target, name));
  }
}

function environment(root: string, nexus: string, runtime: string): Record<string, string> {
  const home = path.join(root, "home");
  return {
    PATH: path.join(root, "bin"),
    VSCODE_CLI: "1", // the path is this one: no login shell is asked for another
    HOME: home,
    LANG: "C.UTF-8",
    XDG_CONFIG_HOME: path.join(home, ".config"),
    XDG_DATA_HOME: path.join(home, ".local/share"),
    XDG_STATE_HOME: path.join(home, ".local/state"),
    XDG_CACHE_HOME: path.join(home, ".cache"),
    XDG_RUNTIME_DIR: runtime,
    NEXUS_HOME: path.join(home, ".nexus3"),
    NEXUS_STATE: path.join(root, "state"),
    NEXUS_E2E_BEHIND: nexus, // the daemon behind many-rows.mjs
    NEXUS_E2E_KEY: "test", // of the provider that a test plays
    NEXUS_TEST_MODEL_SAYS: path.join(root, "model.json"),
    NEXUS_TEST_MODEL_LOG: path.join(root, "logs/model.jsonl"),
  };
}

/** The daemon under test: $NEXUS_E2E_SERVER, else that of the checkout. */
function findNexus(): string {
  const nexus = process.env.NEXUS_E2E_SERVER ?? path.join(REPOSITORY, ".venv/bin/nexus");
  if (!existsSync(nexus)) {
    throw new Error(`There is no ${nexus}: run "make .venv/.installed" in ${REPOSITORY}, or set NEXUS_E2E_SERVER`);
  }
  return nexus;
}

/** The port that the system gave the server: it says so once it listens. */
async function portOf(log: string): Promise<number> {
  for (const deadline = Date.now() + START_MS; Date.now() < deadline; await sleep(50)) {
    const port = /server listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(readFileSync(log, "utf8"))?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`code-server did not listen within ${START_MS / 1000} s; its logs are kept`);
}

/** Extension hosts, server, language model and screenshots: what says why a test failed. */
function keepLogs(root: string, kept: string): void {
  cpSync(path.join(root, "logs"), kept, { recursive: true });
  const hosts = path.join(root, "data/logs");
  if (existsSync(hosts)) cpSync(hosts, path.join(kept, "vscode"), { recursive: true });
}
