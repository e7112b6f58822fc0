/** Which instruction files VS Code will attach: by its settings and by what is on the disk. */
import { homedir } from "node:os";
import { beforeEach, expect, test } from "vitest";
import { findEditorInstructions, patternsOf } from "../../src/nextTurn/editorInstructions";
import { mock, Uri, workspace } from "./vscode";

const FILE = 1;
const DIRECTORY = 2;
const HOME = homedir();
const ALL = {
  "chat.useAgentsMdFile": true,
  "chat.useClaudeMdFile": true,
  "github.copilot.chat.codeGeneration.useInstructionFiles": true,
  "chat.includeApplyingInstructions": true,
  "chat.instructionsFilesLocations": {
    ".github/instructions": true,
    ".claude/rules": true,
    "~/.copilot/instructions": true,
  },
};

const FOR_ALL = "---\napplyTo: '**'\n---\nx";
const DISK: Record<string, string> = {
  "/w/AGENTS.md": "",
  "/w/CLAUDE.md": "",
  "/w/.claude/CLAUDE.md": "",
  "/w/.claude/rules/all.md": "x",
  "/w/.claude/rules/some.md": "---\npaths:\n  - src/**\n---\nx",
  "/w/.claude/rules/README.md": "x",
  "/w/.github/copilot-instructions.md": "",
  "/w/.github/instructions/a.instructions.md": FOR_ALL,
  "/w/.github/instructions/deep/b.instructions.md": '---\napplyTo: "*.py, **/*"\n---\nx',
  "/w/.github/instructions/some.instructions.md": "---\napplyTo: '*.py'\n---\nx",
  "/w/.github/instructions/none.instructions.md": "x",
  "/w/.github/instructions/notes.md": FOR_ALL,
  "/w/sub/AGENTS.md": "",
  [`${HOME}/.claude/CLAUDE.md`]: "",
  [`${HOME}/.copilot/instructions/mine.instructions.md`]: FOR_ALL,
};

async function check(settings: Record<string, unknown>, ...expected: string[]): Promise<void> {
  for (const [name, value] of Object.entries(settings)) mock.settings.set(name, value);
  const found = await findEditorInstructions();
  expect(found.map(({ path }) => path.replace(HOME, "~")).sort()).toEqual(expected.sort());
}

beforeEach(() => {
  mock.reset();
  workspace.textDocuments = [];
  workspace.workspaceFolders = [{ uri: Uri.file("/w"), name: "w", index: 0 }];
  Object.assign(workspace.fs, {
    async stat(uri: Uri) {
      if (!(uri.path in DISK)) throw new Error("there is no such file");
      return { type: FILE };
    },
    async readFile(uri: Uri) {
      return new TextEncoder().encode(DISK[uri.path]);
    },
    async readDirectory(uri: Uri) {
      const below = Object.keys(DISK).filter((path) => path.startsWith(`${uri.path}/`));
      if (below.length === 0) throw new Error("there is no such directory");
      const names = below.map((path) => path.slice(uri.path.length + 1).split("/"));
      return [...new Map(names.map(([name, ...rest]) => [name, rest.length > 0 ? DIRECTORY : FILE]))];
    },
  });
});

test("by all settings: the roots of the folders, the home directory, and what is for all files", () =>
  check(
    ALL,
    "/w/AGENTS.md",
    "/w/CLAUDE.md",
    "/w/.claude/CLAUDE.md",
    "/w/.claude/rules/all.md",
    "/w/.github/copilot-instructions.md",
    "/w/.github/instructions/a.instructions.md",
    "/w/.github/instructions/deep/b.instructions.md",
    "~/.claude/CLAUDE.md",
    "~/.copilot/instructions/mine.instructions.md",
  ));

test("none by settings that are off, or that this VS Code does not have", () => check({}));

test.each([
  ["chat.useAgentsMdFile", ["/w/AGENTS.md"]],
  ["chat.useClaudeMdFile", ["/w/CLAUDE.md", "/w/.claude/CLAUDE.md", "~/.claude/CLAUDE.md"]],
  ["github.copilot.chat.codeGeneration.useInstructionFiles", ["/w/.github/copilot-instructions.md"]],
] as const)("%s alone", (setting, expected) => check({ [setting]: true }, ...expected));

test("a directory that is switched off, and one that a glob names, are not looked into", () =>
  check({
    "chat.includeApplyingInstructions": true,
    "chat.instructionsFilesLocations": { ".github/instructions": false, ".github/*": true },
  }));

test("nothing where extensions collect instructions themselves", () =>
  check({ ...ALL, "chat.experimental.collectInstructionsInExtension": true }));

test("unsaved text counts", () => {
  const uri = Uri.file("/w/.github/instructions/some.instructions.md");
  workspace.textDocuments = [{ uri, getText: () => FOR_ALL }];
  return check(
    {
      "chat.includeApplyingInstructions": true,
      "chat.instructionsFilesLocations": { ".github/instructions": true },
    },
    "/w/.github/instructions/a.instructions.md",
    "/w/.github/instructions/deep/b.instructions.md",
    "/w/.github/instructions/some.instructions.md",
  );
});

test.each([
  ["---\napplyTo: **/*.ts, '*.js'\n---\n", false, ["**/*.ts", "*.js"]],
  ['---\r\napplyTo: "**"\r\n---\r\n', false, ["**"]],
  ["applyTo: '**'", false, []],
  ["---\npaths: [a/**, 'b']\n---\n", true, ["a/**", "b"]],
  ['---\npaths:\n  - a\n  - "b"\nx: y\n---\n', true, ["a", "b"]],
  ["no front matter", true, ["**"]],
] as const)("the patterns of %j", (text, isRule, patterns) => {
  expect(patternsOf(text, isRule)).toEqual(patterns);
});
