import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { explain } from "../../src/chat/failures";
import { guarded } from "../../src/commands/commandContext";
import { NexusError } from "../../src/nexus";
import { OBSTACLE_TITLES, pythonPage, REMEDIES } from "../../src/server/remedies";
import { mock } from "./vscode";

const NO_PYTHON = new NexusError("No Python.", "not-ready", ["getPython", "pythonSetting"]);

test.each<[NodeJS.Platform, string]>([
  ["win32", "https://www.python.org/downloads/windows/"],
  ["darwin", "https://www.python.org/downloads/macos/"],
  ["linux", "https://docs.python.org/3/using/unix.html"],
])("on %s Python comes from %s", (platform, page) => {
  expect(pythonPage(platform)).toBe(page);
});

test("a command that fails for want of a server offers its own ways out, and does what is chosen", async () => {
  mock.reset();
  mock.answers.push("Choose a Python");
  await guarded(() => Promise.reject(NO_PYTHON))();
  expect(mock.messages).toEqual([{ level: "error", text: "No Python.", items: ["Get Python", "Choose a Python"] }]);
  expect(mock.executed).toEqual([["workbench.action.openSettings", "nexus.python"]]);
});

test("so does the chat", () => {
  expect(explain(NO_PYTHON, "Fake").actions).toEqual([
    { title: "Get Python", command: "nexus.getPython" },
    { title: "Choose a Python", command: "workbench.action.openSettings", arguments: ["nexus.python"] },
  ]);
});

test("every way out of ours is a command that is declared, and an empty view knows every obstacle it names", () => {
  const manifest = JSON.parse(readFileSync(resolve(__dirname, "../../package.json"), "utf8")) as {
    contributes: { commands: { command: string }[]; viewsWelcome: { when: string; contents: string }[] };
  };
  const declared = manifest.contributes.commands.map((one) => one.command);
  const own = Object.values(REMEDIES)
    .map((remedy) => remedy.command)
    .filter((id) => id.startsWith("nexus."));
  expect(own.filter((id) => !declared.includes(id))).toEqual([]);
  const named = manifest.contributes.viewsWelcome.flatMap(({ when }) =>
    [...when.matchAll(/nexus\.obstacle [!=]= ([\w-]+)/g)].map((found) => found[1] ?? ""),
  );
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((kind) => !(kind in OBSTACLE_TITLES))).toEqual([]);
});
