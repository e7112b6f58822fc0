/**
 * What activation costs, without an editor around it: `npm run activation`, after a build.
 *
 * Each run is a fresh Node: reading dist/extension.js, then `activate`, against the unit tests' `vscode`. Node's own
 * modules are there before, as in the editor's host. Processor time is taken, so that a busy machine says the same. The
 * code cache that the host keeps is not there, so the host does better; the in-host test measures the real thing.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";

const RUNS = 11;
const MOST_MS = 50;
const root = resolve(import.meta.dirname, "..");
const temporary = mkdtempSync(join(tmpdir(), "nexus-activation-"));

const CHILD = `
const Module = require("node:module");
const vscode = require(process.argv[1]);
for (const name of ["crypto", "child_process", "fs/promises", "os", "path"]) require("node:" + name);
const spent = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
const load = Module._load;
Module._load = (name, ...rest) => name === "vscode" ? vscode : load(name, ...rest);
const memory = { get() {}, update: async () => {}, keys: () => [] };
const uri = vscode.Uri.file(process.argv[2]);
const context = { subscriptions: [], extensionPath: uri.path, extensionUri: uri, globalStorageUri: uri, globalState: memory, workspaceState: memory, extension: { id: "nexus.nexus-context" } };
const began = spent();
const extension = require(process.argv[2] + "/dist/extension.js");
const loaded = spent();
extension.activate(context);
const active = spent();
console.log(JSON.stringify([loaded - began, active - loaded, Object.keys(require.cache).filter((f) => f.endsWith("client.js")).length]));
process.exit(0);
`;

try {
  const stub = join(temporary, "vscode.js");
  await build({
    entryPoints: [`${root}/test/unit/vscode.ts`],
    outfile: stub,
    bundle: true,
    platform: "node",
    format: "cjs",
  });
  const runs = Array.from({ length: RUNS }, () =>
    JSON.parse(execFileSync(process.execPath, ["-e", CHILD, stub, root], { encoding: "utf8" })),
  );
  const median = (column) => runs.map((run) => run[column]).sort((a, b) => a - b)[RUNS >> 1];
  const [load, activate] = [median(0), median(1)];
  console.log(
    `activation, median of ${RUNS}, processor time: ${load.toFixed(1)} ms to load, ${activate.toFixed(1)} ms to activate, at most ${MOST_MS} ms`,
  );
  if (runs.some((run) => run[2] > 0)) throw new Error("the language client was loaded during activation");
  if (load + activate > MOST_MS) process.exitCode = 1;
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
