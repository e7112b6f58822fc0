import { beforeEach, expect, test, vi } from "vitest";
import * as vscode from "vscode";
import { type About, type Documents, registerDocuments, SCHEME, uriOf } from "../../src/documents";
import { NexusError } from "../../src/nexus";
import { type FakeNexus, fakeNexus } from "./nexus";
import { events, mock, workspace } from "./vscode";

const FOLDER = "file:///w/a";
const PROMPT: About = { kind: "prompt", folder: FOLDER };
const RECEIPT: About = { kind: "receipt", folder: FOLDER, session: "main", compaction: "3f2a" };
const NO_LOSS = { paths: [], commands: [], identifiers: [], errors: [], instructions: [], decisions: [], counts: {} };

let nexus: FakeNexus;
let documents: Documents;
let files: vscode.FileSystemProvider;
let changed: string[];

beforeEach(() => {
  mock.reset();
  vi.useFakeTimers();
  nexus = fakeNexus({ "nexus/context/preview": { revision: 1, text: "You are Nexus.", fragments: [], tokens: 4 } });
  documents = registerDocuments(nexus);
  files = workspace.fileSystems.get(SCHEME) as vscode.FileSystemProvider;
  changed = [];
  files.onDidChangeFile((all) => changed.push(...all.map(({ uri }) => uri.path)));
  return () => {
    documents.dispose();
    workspace.textDocuments = [];
    vi.useRealTimers();
  };
});

/** What an editor of the document shows. */
async function check(about: About, text: string): Promise<void> {
  const uri = uriOf(about, "a");
  const stat = await files.stat(uri);
  const bytes = await files.readFile(uri);
  expect(new TextDecoder().decode(bytes)).toBe(text);
  expect([stat.size, stat.permissions]).toEqual([bytes.length, vscode.FilePermission.Readonly]);
}

/** The window has an editor of it. */
function open(about: About): vscode.Uri {
  const uri = uriOf(about, "a");
  workspace.textDocuments = [...workspace.textDocuments, { uri }];
  return uri;
}

const preview = (text: string) => {
  nexus.answers["nexus/context/preview"] = { revision: 2, text, fragments: [], tokens: 1 };
};

async function contextChanges(): Promise<void> {
  nexus.contexts.fire({ workspaceFolder: FOLDER, revision: 2, reason: "instructions" } as never);
  await vi.advanceTimersByTimeAsync(100);
}

test("a document is read once when it is shown, and can be read again after a reload", async () => {
  await documents.show(PROMPT, "a");
  await check(PROMPT, "You are Nexus.");
  expect(nexus.asked).toHaveLength(1);
  expect(mock.opened).toEqual([{ uri: uriOf(PROMPT, "a"), getText: expect.anything() }]);
  documents.dispose();
  documents = registerDocuments(nexus); // another window: nothing is known but the URI
  files = workspace.fileSystems.get(SCHEME) as vscode.FileSystemProvider;
  await check(PROMPT, "You are Nexus.");
});

test("where the daemon cannot give it, nothing is opened, and the failure is the daemon's", async () => {
  nexus.answers["nexus/context/preview"] = new NexusError("Python is missing.", "not-ready");
  await expect(documents.show(PROMPT, "a")).rejects.toMatchObject({ code: "not-ready", message: "Python is missing." });
  expect(mock.opened).toEqual([]);
  // an editor that VS Code opens again by itself says so in place of a text
  await expect(files.readFile(uriOf(PROMPT, "a"))).rejects.toMatchObject({
    code: "Unavailable",
    message: "Python is missing.",
  });
  await expect(files.stat(uriOf(PROMPT, "a").with({ query: "{" }))).rejects.toMatchObject({ code: "Unavailable" });
});

test("an open document follows what it shows, and keeps its text where that cannot be read", async () => {
  const uri = open(PROMPT);
  const { mtime } = await files.stat(uri);
  await contextChanges();
  expect(changed).toEqual(["/a/system prompt.md"]);
  expect((await files.stat(uri)).mtime).toBe(mtime); // the same text: nothing to show
  preview("You are brief.");
  await contextChanges();
  await check(PROMPT, "You are brief.");
  expect((await files.stat(uri)).mtime).toBeGreaterThan(mtime);
  nexus.answers["nexus/context/preview"] = new NexusError("The server ended.", "not-ready");
  await contextChanges();
  await check(PROMPT, "You are brief.");
});

test("a document that is closed is read anew when it is opened again", async () => {
  await check(PROMPT, "You are Nexus.");
  events.closed.fire({ uri: uriOf(PROMPT, "a") });
  preview("You are brief.");
  await check(PROMPT, "You are brief.");
});

test("nothing can be written", () => {
  const uri = uriOf(PROMPT, "a");
  const writes = [
    () => files.writeFile(uri, new Uint8Array(), { create: true, overwrite: true }),
    () => files.delete(uri, { recursive: false }),
    () => files.rename(uri, uri, { overwrite: true }),
    () => files.createDirectory(uri),
  ];
  for (const write of writes) expect(write).toThrow(uri.toString());
});

test("a receipt comes from the ledger by its id, and says when it was taken back", async () => {
  const receipt = {
    id: "3f2a",
    reason: "explicit",
    summarizer: "extractive",
    replacedMessages: 21,
    tokensBefore: 1_675,
    tokensAfter: 535,
    created: "2026-11-20T12:00:00Z",
    lost: NO_LOSS,
    failures: [],
  };
  const lines = (state: string) =>
    [
      "# Receipt of a compaction of plan",
      "",
      "- id: 3f2a",
      "- when: 2026-11-20T12:00:00Z",
      `- state: ${state}`,
      "- why: explicit",
      "- by: extractive",
      "- messages replaced: 21",
      "- tokens: 1,675 → 535",
      "",
      "## Lost: no longer anywhere in the conversation",
      "",
      "Nothing that matters.",
      "",
    ].join("\n");
  nexus.answers["nexus/session/receipt"] = { session: "plan", receipt, inForce: true };
  open(RECEIPT);
  await check(RECEIPT, lines("in force"));
  expect(nexus.asked).toEqual([
    ["nexus/session/receipt", { workspaceFolder: FOLDER, session: "main", compaction: "3f2a" }],
  ]);
  nexus.answers["nexus/session/receipt"] = { session: "plan", receipt, inForce: false };
  nexus.sessions.fire({ workspaceFolder: FOLDER, session: "plan", reason: "undone", by: "self" });
  await vi.advanceTimersByTimeAsync(100);
  expect(changed).toEqual(["/a/compaction receipt (main).md"]);
  await check(RECEIPT, lines("undone: the messages are back"));
});

test("the receipt of a compaction by the provider claims nothing about what is lost", async () => {
  const receipt = {
    id: "3f2a",
    reason: "provider",
    summarizer: "anthropic",
    replacedMessages: 21,
    tokensBefore: 1_675,
    tokensAfter: 535,
    created: "2026-11-20T12:00:00Z",
    lost: NO_LOSS,
    failures: [],
    opaque: true,
    text: "They looked\nfor the gate.",
  };
  nexus.answers["nexus/session/receipt"] = { session: "plan", receipt, inForce: true };
  open(RECEIPT);
  await check(
    RECEIPT,
    [
      "# Receipt of a compaction of plan",
      "",
      "- id: 3f2a",
      "- when: 2026-11-20T12:00:00Z",
      "- state: in force",
      "- why: provider",
      "- by: Anthropic",
      "- messages replaced: 21",
      "- tokens: 1,675 → 535",
      "",
      "## Compacted by the provider",
      "",
      "A server of Anthropic compacted the conversation. Only the provider can read the result, so nobody can say",
      "what is lost. The messages are still in the ledger: the transcript and the search have them, and an undo sends them again.",
      "",
      "## What can be read of it",
      "",
      "> They looked",
      "> for the gate.",
      "",
    ].join("\n"),
  );
});
