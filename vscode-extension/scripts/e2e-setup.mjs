// Fetches what the end-to-end tests run in: a Node for code-server, code-server itself (a whole VS Code), a browser,
// and an MCP server as users have them.
//
// 1. Everything lies in one folder (`.e2e` beside package.json, or $NEXUS_E2E_CACHE), which git and vsce ignore.
// 2. Versions are pinned: the tests know VS Code's insides (class names), so another version is another test.
// 3. What is there in the pinned version is not fetched again; a step that was interrupted is done again.
// 4. Only package registries are asked, npm's and the system's; no package runs a script of its own.
// 5. So nothing is compiled, VS Code's writer of log files neither, and without one output channels stay empty: a few
//    lines of JavaScript stand in for it.
//
// Plain JavaScript for any Node ≥ 18 with npm: it runs before anything is installed.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const VERSIONS = { node: "24.21.0", codeServer: "4.139.1", mcpServer: "2026.8.31" };
const APT_PACKAGES = ["chromium", "fonts-dejavu-core"];
const BROWSERS = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
const NPM_FLAGS = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];

export const EXTENSION = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
export const CACHE = path.resolve(process.env.NEXUS_E2E_CACHE ?? path.join(EXTENSION, ".e2e"));

/** Paths of what the tests need; fetched when missing. Throws an Error that says what to do. */
export async function setup() {
  await mkdir(CACHE, { recursive: true });
  await writeFile(path.join(CACHE, ".gitignore"), "*\n");
  const [browser, node, codeServer, mcpServer] = await allOrFirstError([
    timed("browser", findOrInstallBrowser),
    timed(`node ${VERSIONS.node}`, installNode),
    timed(`code-server ${VERSIONS.codeServer}`, installCodeServer),
    timed(`MCP server ${VERSIONS.mcpServer}`, installMcpServer),
  ]);
  return { browser, node, codeServer, mcpServer };
}

/** Runs a program to its end; its output is shown only when it fails. Resolves to what it wrote. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
    const chunks = [];
    child.stdout.on("data", (data) => chunks.push(data));
    child.stderr.on("data", (data) => chunks.push(data));
    child.on("error", (error) => reject(new Error(`${command} could not be started: ${error.message}`)));
    child.on("close", (code) => {
      const output = Buffer.concat(chunks).toString().trim();
      if (code === 0) return resolve(output);
      reject(new Error(`${command} ${args.join(" ")} ended with ${code}:\n${output}`));
    });
  });
}

/** Where a command is on the PATH, or undefined. */
export function which(name) {
  const folders = (process.env.PATH ?? "").split(path.delimiter);
  return folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file));
}

/** Does work and says how long it took. */
export async function timed(title, work) {
  const started = performance.now();
  const result = await work();
  const seconds = (performance.now() - started) / 1000;
  if (seconds >= 0.1) console.log(`e2e: ${title}: ${seconds.toFixed(1)} s`);
  return result;
}

/** Waits for all, also where one has failed. */
export async function allOrFirstError(steps) {
  const results = await Promise.allSettled(steps);
  for (const result of results) if (result.status === "rejected") throw result.reason;
  return results.map((result) => result.value);
}

async function findOrInstallBrowser() {
  const given = process.env.NEXUS_E2E_BROWSER;
  if (given) {
    if (existsSync(given)) return given;
    throw new Error(`NEXUS_E2E_BROWSER names ${given}, which is not there: name a Chromium, or unset it`);
  }
  return findBrowser() ?? (await installBrowser());
}

function findBrowser() {
  return BROWSERS.map(which).find(Boolean);
}

async function installBrowser() {
  const apt = which("apt-get");
  const wish = `apt-get install --no-install-recommends ${APT_PACKAGES.join(" ")}`;
  if (!apt || process.getuid?.() !== 0) {
    throw new Error(
      "The end-to-end tests need a Chromium, and none is on the PATH. " +
        `As root: ${wish}. Or name one that you have: NEXUS_E2E_BROWSER=/path/to/chromium`,
    );
  }
  const environment = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const install = ["install", "--yes", "--no-install-recommends", ...APT_PACKAGES];
  try {
    await run(apt, install, { env: environment });
  } catch {
    await run(apt, ["update"], { env: environment }); // lists that are missing or old
    await run(apt, install, { env: environment });
  }
  const browser = findBrowser();
  if (!browser) throw new Error(`${wish} left no Chromium on the PATH`);
  return browser;
}

async function installNode() {
  if (process.version === `v${VERSIONS.node}`) return process.execPath;
  const package_ = `node-${process.platform}-${process.arch}`;
  const folder = await install("node", { [package_]: VERSIONS.node });
  return path.join(folder, "node_modules", package_, "bin", "node");
}

/** code-server comes without the dependencies of the VS Code inside and of its extensions: they are installed beside. */
async function installCodeServer() {
  const inside = (folder) => path.join(folder, "node_modules", "code-server");
  const folder = await install("code-server", { "code-server": VERSIONS.codeServer }, async (folder) => {
    const vscode = path.join(inside(folder), "lib", "vscode");
    const dependencies = ["install", "--omit=dev", ...NPM_FLAGS];
    await run(npm(), dependencies, { cwd: vscode });
    await run(npm(), dependencies, { cwd: path.join(vscode, "extensions") });
  });
  await replaceLogWriter(path.join(inside(folder), "lib", "vscode"));
  return inside(folder);
}

/** The program of the reference server for files; `node` runs it. */
async function installMcpServer() {
  const package_ = "@modelcontextprotocol/server-filesystem";
  const folder = await install("mcp-server", { [package_]: VERSIONS.mcpServer });
  return path.join(folder, "node_modules", package_, "dist", "index.js");
}

/** What VS Code uses of `@vscode/spdlog`. Each line is written at once: a test that waits for one waits for nothing else. */
const LOG_WRITER = `const { appendFileSync, mkdirSync } = require("node:fs");
const { dirname } = require("node:path");
const LEVELS = ["trace", "debug", "info", "warning", "error", "critical"];

class Logger {
  constructor(_type, _name, file) {
    Object.assign(this, { file, level: 2, isPlain: false });
    mkdirSync(dirname(file), { recursive: true });
  }
  write(level, message) {
    if (level < this.level) return;
    const time = new Date().toISOString().replace("T", " ").replace("Z", "");
    appendFileSync(this.file, this.isPlain ? message : \`\${time} [\${LEVELS[level]}] \${message}\\n\`);
  }
  trace(message) { this.write(0, message); }
  debug(message) { this.write(1, message); }
  info(message) { this.write(2, message); }
  warn(message) { this.write(3, message); }
  error(message) { this.write(4, message); }
  critical(message) { this.write(5, message); }
  getLevel() { return this.level; }
  setLevel(level) { this.level = level; }
  setPattern() {}
  clearFormatters() { this.isPlain = true; }
  flush() {}
  drop() {}
}

exports.version = 0;
exports.Logger = Logger;
exports.setLevel = () => {};
exports.setFlushOn = () => {};
exports.createRotatingLogger = async (name, file) => new Logger("rotating", name, file);
exports.createAsyncRotatingLogger = exports.createRotatingLogger;
`;

async function replaceLogWriter(vscode) {
  const file = path.join(vscode, "node_modules", "@vscode", "spdlog", "index.js");
  if ((await readFile(file, "utf8")) === LOG_WRITER) return;
  await rm(file); // it may be a link into npm's cache
  await writeFile(file, LOG_WRITER);
}

/** Installs packages into a folder of their own, unless it says that it is complete. */
async function install(name, packages, then = async () => {}) {
  const folder = path.join(CACHE, name);
  const wanted = JSON.stringify(packages);
  const complete = path.join(folder, "complete");
  if (existsSync(complete) && (await readFile(complete, "utf8")) === wanted) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "package.json"), JSON.stringify({ private: true, dependencies: packages }));
  await run(npm(), ["install", ...NPM_FLAGS], { cwd: folder });
  await then(folder);
  await writeFile(complete, wanted);
  return folder;
}

function npm() {
  const found = which("npm");
  if (!found) throw new Error("npm is not on the PATH: install Node.js 20 or later with npm");
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    console.log(JSON.stringify(await timed("all", setup), null, 2));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
