/** A machine without Nexus: no Python, an installation that fails, one that works; and what the output channels keep of it. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { servers, signal } from "./harness/processes.ts";
import { type Workbench, withoutSpaces } from "./harness/workbench.ts";

const NO_PYTHON =
  "Nexus needs Python 3.11 or later to install its server. Install one, or name one in the setting nexus.python.";
const NO_NETWORK = "ERROR: Could not find a version that satisfies the requirement apsw==3.51.3";
const NOT_INSTALLED = `What the server needs could not be installed: ${NO_NETWORK}. The output says more. Without a network, install it elsewhere (pip install nexusd) and name it in the setting nexus.server.path.`;

let folder: string;
let bench: Workbench;
let panel: FrameLocator;

beforeAll(
  prepared(async () => {
    folder = path.join(world().root, "workspaces/bare");
    mkdirSync(path.join(folder, ".vscode"), { recursive: true });
    writeFileSync(path.join(folder, "AGENTS.md"), "# Rules\n\nBe brief.\n");
    writeFileSync(path.join(folder, ".vscode/settings.json"), JSON.stringify({ "nexus.server.path": "" }));
    bench = await window({ workspace: folder, file: path.join(folder, "AGENTS.md") });
    await bench.active();
  }),
);
afterAll(async () => {
  await bench?.close();
  rmSync(python(), { force: true });
});
beforeEach(photographFailure);

test("without Python, the status bar, the panel and a notice say what is missing and what to do", async () => {
  await until(spoken, (label) => label === `Nexus: no Python: ${NO_PYTHON}`);
  const message = await bench.notice("Python 3.11");
  expect(message).toEqual({ text: NO_PYTHON, buttons: ["Get Python", "Choose a Python", "Try Again"] });
  panel = await bench.openPanel("notice");
  expect(await notice()).toEqual({
    title: "Python 3.11 or later is missing",
    text: NO_PYTHON,
    buttons: ["Get Python", "Choose a Python", "Try Again", "Show Output", "Get Started"],
  });
});

test("an installation that fails says why, and can be tried again", async () => {
  writePython();
  await panel.locator(".notice-actions button", { hasText: "Try Again" }).click();
  await until(spoken, (label) => label === `Nexus: not installed: ${NOT_INSTALLED}`);
  expect(await notice()).toEqual({
    title: "The server could not be installed",
    text: NOT_INSTALLED,
    buttons: ["Try Again", "Show Output", "Open Setting", "Get Started"],
  });
  writeFileSync(network(), "");
  await bench.press("could not be installed", "Try Again");
  const other = await Daemon.start(world(), folder);
  try {
    const usage = await other.request("nexus/context/usage", { workspaceFolder: uriOf(folder), assistant: "codex" });
    const [total, available] = [usage.total, usage.available].map((one) => new Intl.NumberFormat("en").format(one));
    expect(await bench.ready()).toBe(`Codex: about ${total} of ${available} tokens, ${usage.percent} %`);
  } finally {
    await other.stop();
  }
});

test("the output channel says what was installed, started and ended", async () => {
  const [running] = servers(world().pid);
  if (!running) throw new Error("no server runs");
  signal(running.pid, "SIGKILL");
  await until(
    () => servers(world().pid),
    (all) => all.some(({ pid }) => pid !== running.pid),
  );
  await bench.ready();
  await bench.command("Nexus: Show Output");
  await until(
    () => bench.output("end"),
    (text) =>
      includes(text, "-I -m nexus_daemon serve --remote=auto (managed, ") &&
      includes(text, "The server has ended; it is started again in 1 s.") &&
      includes(text, "Server process exited with signal SIGKILL."),
  );
  await until(
    () => bench.output("start"),
    (text) => includes(text, NO_PYTHON) && includes(text, `Installing the server with Python 3.12.1, ${python()}.`),
  );
});

test("the trace of the protocol can be switched on where it is looked for", async () => {
  const settings = path.join(world().root, "data/User/settings.json");
  const before = readFileSync(settings, "utf8");
  try {
    await bench.command("Nexus: Show Trace of the Protocol");
    await bench.press("The trace of the protocol is off.", "Turn On");
    await until(
      () => bench.output("end"),
      (text) => includes(text, "Sending notification '$/setTrace'."),
    );
    await bench.cursorTo("end");
    await bench.type("!");
    await until(
      traced, // the panel shows the last lines alone, and an edit has many
      (text) =>
        text.includes("Sending notification 'textDocument/didChange'.") &&
        text.includes("Received notification 'nexus/context/didChange'."),
    );
  } finally {
    writeFileSync(settings, before);
  }
});

/** What VS Code has written of the channel. */
function traced(): string {
  const logs = path.join(world().root, "data/logs");
  const files = readdirSync(logs, { recursive: true, encoding: "utf8" });
  const traces = files.filter((file) => path.basename(file) === "Nexus Trace.log");
  return traces.map((file) => readFileSync(path.join(logs, file), "utf8")).join("");
}

/** Of texts without spaces. */
function includes(text: string, words: string): boolean {
  return text.includes(withoutSpaces(words));
}

async function spoken(): Promise<string> {
  return (await bench.nexusItem().getAttribute("aria-label")) ?? "";
}

async function notice(): Promise<{ title: string; text: string; buttons: string[] }> {
  const text = (name: string) => panel.locator(`.notice .notice-${name}`).innerText();
  const buttons = await panel.locator(".notice-actions button").allInnerTexts();
  return { title: await text("title"), text: await text("text"), buttons };
}

function python(): string {
  return path.join(world().bin, "python3");
}

/** While this file is there, the Python's pip reaches its index. */
function network(): string {
  return path.join(folder, ".network");
}

/** A Python that makes environments with itself inside, whose pip needs a network, and whose Nexus is the one under test. */
function writePython(): void {
  const script = `#!/bin/sh
case "$*" in
*" -c "*|"-c "*) echo 3.12.1; echo "$0" ;;
*"-m venv "*) for last; do :; done; mkdir -p "$last/bin" && cp "$0" "$last/bin/python" && touch "$last/pyvenv.cfg" ;;
*"-m pip "*) [ -e "${network()}" ] || { echo "${NO_NETWORK}" >&2; exit 1; } ;;
*"-m nexus_daemon "*) shift 3; exec "${world().nexus}" "$@" ;;
*) exit 2 ;;
esac
`;
  writeFileSync(python(), script);
  chmodSync(python(), 0o755);
  if (existsSync(network())) rmSync(network());
}
