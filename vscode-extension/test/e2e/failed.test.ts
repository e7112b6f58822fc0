/** A server that dies at once: said in the panel, the status bar and by commands, each time with what to do. */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

/** As long as any window may take. */
const START_MS = 60_000;
const REASON = "The server ended at once: ImportError: the disk has eaten it";

let server: string;
let bench: Workbench;

beforeAll(
  prepared(async () => {
    const folder = path.join(copyExample(world(), "failed"), "backend/auth-service");
    server = path.join(folder, "server");
    mkdirSync(path.join(folder, ".vscode"));
    writeFileSync(path.join(folder, ".vscode/settings.json"), JSON.stringify({ "nexus.server.path": server }));
    serve("echo Traceback: >&2; echo 'ImportError: the disk has eaten it' >&2; exit 1");
    bench = await window({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    await bench.nexusItem().waitFor({ timeout: START_MS });
  }),
);
afterAll(() => bench?.close());
beforeEach(photographFailure);

test("the status bar says that it is not started, and why", async () => {
  const label = () => bench.nexusItem().getAttribute("aria-label");
  expect(await until(label, (text) => text?.includes("not started") ?? false)).toBe(`Nexus: not started: ${REASON}`);
});

test("the panel says why, and what to do", async () => {
  await bench.command("Notifications: Clear All Notifications");
  await bench.nexusItem().click();
  const panel = bench.webview();
  await panel.locator(".notice-title", { hasText: "Nexus could not start" }).waitFor();
  expect(await panel.locator(".notice-text").innerText()).toBe(REASON);
  expect(await panel.locator(".notice-actions button").allInnerTexts()).toEqual([
    "Restart",
    "Show Output",
    "Get Started",
  ]);
});

test("a document that cannot be read is a message with what to do, and opens nothing", async () => {
  for (const title of ["Nexus: Show System Prompt", "Nexus: Show Effective Configuration"]) {
    await bench.command("Notifications: Clear All Notifications");
    await bench.command(title);
    const message = await bench.told(REASON);
    for (const button of ["Restart", "Show Output"]) expect(message).toContain(button);
  }
  const tabs = await bench.page.locator(".part.editor .tab").allInnerTexts();
  expect(tabs.map((tab) => tab.replaceAll(/\s/g, ""))).toEqual(["NEXUS.md"]);
});

test("a server of another protocol is refused with what to update", async () => {
  const code = `from nexus_daemon.process import version; version.PROTOCOL = 2
from nexus_daemon.__main__ import main; raise SystemExit(main())`;
  const python = path.join(path.dirname(world().nexus), "python");
  serve(`exec "${python}" -c '${code}' "$@"`);
  await bench.command("Notifications: Clear All Notifications");
  await bench.webview().locator(".notice-actions button", { hasText: "Restart" }).click();
  const panel = bench.webview();
  await panel.locator(".notice-title", { hasText: "Nexus and its server do not fit" }).waitFor({ timeout: START_MS });
  const { version } = JSON.parse(readFileSync(path.join(import.meta.dirname, "../../package.json"), "utf8"));
  const message = `Update the Nexus extension: extension ${version} speaks protocol 1, and server 0.1.0 (${server}) speaks protocol 2.`;
  expect(await panel.locator(".notice-text").innerText()).toBe(message);
  expect(await panel.locator(".notice-actions button").allInnerTexts()).toEqual([
    "Open Setting",
    "Try Again",
    "Show Output",
    "Get Started",
  ]);
  await bench.command("Notifications: Show Notifications");
  const notices = bench.page.locator(".notifications-center .notification-list-item", { hasText: "speaks protocol" });
  await notices.first().waitFor();
  expect(await notices.count()).toBe(1);
  expect(await bench.notice(message)).toEqual({ text: message, buttons: ["Open Setting", "Try Again"] });
});

test("once it is fixed, a restart brings the figures", async () => {
  serve(`exec "${world().nexus}" "$@"`);
  await bench.webview().locator(".notice-actions button", { hasText: "Try Again" }).click();
  await bench.ready();
});

test("a document that a reload cannot bring back is no text, and comes once it can be read", async () => {
  await bench.command("Nexus: Show System Prompt");
  const tab = bench.page.locator(".part.editor .tab", { hasText: "system prompt.md" });
  await tab.waitFor();
  serve("echo 'ImportError: the disk has eaten it' >&2; exit 1");
  await bench.reload();
  const placeholder = bench.page.locator(".monaco-editor-pane-placeholder", { hasText: "could not be opened" });
  await placeholder.waitFor({ timeout: START_MS });
  serve(`exec "${world().nexus}" "$@"`);
  await bench.command("Nexus: Restart Server");
  await bench.ready();
  await placeholder.locator(".monaco-button", { hasText: "Try Again" }).click();
  const lines = bench.page.locator(".part.editor .editor-group-container.active .view-lines").first();
  await until(
    () => lines.innerText(),
    (text) => text.includes("Configuration"),
  );
});

/** Writes the server: it says its version, and else does that. */
function serve(script: string): void {
  writeFileSync(server, `#!/bin/sh\nif [ "$1" = --version ]; then echo nexus 0.1.0; exit 0; fi\n${script}\n`);
  chmodSync(server, 0o755);
}
