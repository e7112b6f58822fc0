/**
 * Tests inside the extension host, beside the packaged extension: what no page shows.
 *
 * VS Code calls `run` (`extensionTestsPath`). Each test is a line on the console, `ok …` or `not ok …`; one that
 * fails fails the run.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as vscode from "vscode";

const EXTENSION = "nexus.nexus-context";
const PATIENCE_MS = 30_000;

const tests: Readonly<Record<string, () => Promise<void>>> = {
  async "the extension is active without being asked for"() {
    await until(() => extension().isActive);
  },

  async "the server becomes ready"() {
    await until(() => extension().exports.nexus.state === "ready");
  },

  async "every command of the manifest is there"() {
    const there = new Set(await vscode.commands.getCommands(true));
    const wanted = (extension().packageJSON.contributes.commands as { command: string }[]).map((one) => one.command);
    assert.deepEqual(
      wanted.filter((command) => !there.has(command)),
      [],
    );
  },

  async "the daemon answers through the commands that it brings"() {
    const usage = await usageWhenReady();
    assert.ok(usage.rows.length > 3);
    assert.equal(
      usage.rows.reduce((sum, row) => sum + row.tokens, 0),
      usage.total,
    );
  },

  async "an instruction file has the daemon's lenses"() {
    const uri = vscode.Uri.joinPath(folder(), ".nexus3", "NEXUS.md");
    await vscode.window.showTextDocument(uri);
    await until(async () => {
      const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", uri, 10);
      return lenses.some((lens) => /\d tokens/.test(lens.command?.title ?? ""));
    });
  },

  async "a window's server that is killed comes back, to the same daemon"() {
    const [before, daemon] = [servers(), sharedDaemon()];
    assert.equal(before.length, 1, `servers: ${before.join(", ")}`);
    process.kill(Number(before[0]), "SIGKILL");
    await until(() => servers().some((pid) => !before.includes(pid)));
    const usage = await usageWhenReady();
    assert.ok(usage.total > 0);
    assert.equal(servers().length, 1);
    assert.equal(sharedDaemon(), daemon);
  },

  async "a daemon that is killed is replaced by another, behind the same server"() {
    const [before, daemon] = [servers(), sharedDaemon()];
    process.kill(Number(daemon), "SIGKILL");
    const usage = await vscode.commands.executeCommand<Usage>("nexus.context.usage", {
      workspaceFolder: folder().toString(),
    });
    assert.ok(usage.total > 0);
    assert.notEqual(sharedDaemon(), daemon);
    assert.deepEqual(servers(), before);
    assert.equal(extension().exports.nexus.state, "ready");
  },

  async "restarting by hand leaves one server, and one daemon that is new"() {
    const [before, daemon] = [servers(), sharedDaemon()];
    await vscode.commands.executeCommand("nexus.restartServer");
    await until(() => servers().length === 1 && !servers().includes(before[0] ?? ""));
    await usageWhenReady();
    assert.notEqual(sharedDaemon(), daemon);
  },
};

export async function run(): Promise<void> {
  const failed: string[] = [];
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      console.log(`ok ${name}`);
    } catch (error) {
      failed.push(name);
      console.log(`not ok ${name}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
  if (failed.length > 0)
    throw new Error(`${failed.length} of ${Object.keys(tests).length} failed: ${failed.join("; ")}`);
}

interface Usage {
  readonly total: number;
  readonly rows: readonly { readonly tokens: number }[];
}

/** The usage of the folder's own conversation, once the daemon answers. */
async function usageWhenReady(): Promise<Usage> {
  const params = { workspaceFolder: folder().toString() };
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await vscode.commands.executeCommand<Usage>("nexus.context.usage", params);
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(100);
    }
  }
}

/** What `activate` returns. */
interface Offered {
  readonly nexus: { readonly state: string };
}

function extension(): vscode.Extension<Offered> {
  const found = vscode.extensions.getExtension<Offered>(EXTENSION);
  assert.ok(found, `${EXTENSION} is not installed`);
  return found;
}

function folder(): vscode.Uri {
  const found = vscode.workspace.workspaceFolders?.[0]?.uri;
  assert.ok(found, "no folder is open");
  return found;
}

/** Process id of the shared daemon: in its lock. */
function sharedDaemon(): string {
  const directory = `${process.env.XDG_RUNTIME_DIR}/nexus`;
  const lock = readdirSync(directory).find((name) => name.endsWith(".lock"));
  assert.ok(lock, "no shared daemon was ever started");
  return readFileSync(`${directory}/${lock}`, "utf8").trim();
}

/** Process ids of the servers that this extension host has started. */
function servers(): string[] {
  const lines = execFileSync("ps", ["-o", "pid=,args=", "--ppid", String(process.pid)], { encoding: "utf8" }).split(
    "\n",
  );
  return lines.filter((line) => /\bserve\b/.test(line)).map((line) => line.trim().split(/\s+/)[0] ?? "");
}

async function until(good: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await good())) {
    assert.ok(Date.now() < deadline, `not within ${PATIENCE_MS / 1000} s`);
    await sleep(50);
  }
}
