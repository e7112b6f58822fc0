import { beforeEach, expect, test } from "vitest";
import * as vscode from "vscode";
import { JsonErrors } from "../../src/server/jsonErrors";
import { events, extensions, mock, workspace } from "./vscode";

const FILE = vscode.Uri.file("/w/.nexus3/config.json");
const ALL = [
  "json.missing-comma",
  "json.comment",
  "json.more",
  "json.empty",
  "json.lone-surrogate",
  "config.unknown-key",
];
const OURS = ["json.empty", "json.lone-surrogate", "config.unknown-key"];

interface Editor {
  language?: string;
  validates?: boolean;
  checker?: boolean;
}

let errors: JsonErrors;
let shown: string[][];

beforeEach(() => {
  mock.reset();
  shown = [];
  errors = new JsonErrors();
  return () => {
    errors.dispose();
    workspace.textDocuments = [];
  };
});

function editor({ language, validates, checker = true }: Editor): void {
  const open = language === undefined ? [] : [{ uri: FILE, languageId: language, isClosed: false }];
  workspace.textDocuments = open;
  if (validates !== undefined) mock.settings.set("json.validate.enable", validates);
  extensions.getExtension = (id) => (checker && id === "vscode.json-language-features" ? {} : undefined);
}

function said(codes: readonly string[]): void {
  const diagnostics = codes.map((code) => ({ code })) as unknown as vscode.Diagnostic[];
  errors.handle(FILE, diagnostics, (_uri, all) => shown.push(all.map((one) => String(one.code))));
}

/** What is shown of the daemon's diagnostics in an editor like that. */
function check(state: Editor, expected: readonly string[]): void {
  editor(state);
  said(ALL);
  expect(shown).toEqual([expected]);
}

test.each<[string, Editor, readonly string[]]>([
  ["an open file: what VS Code does not find", { language: "json" }, OURS],
  ["one in which VS Code allows comments", { language: "jsonc" }, ["json.comment", ...OURS]],
  ["a file that is not open", {}, ALL],
  ["a language that VS Code does not check", { language: "plaintext" }, ALL],
  ["an editor that is told not to check", { language: "json", validates: false }, ALL],
  ["an editor without its JSON support", { language: "json", checker: false }, ALL],
])("of %s", (_what, state, expected) => check(state, expected));

test("what changes in the editor shows at once", () => {
  editor({});
  said(ALL);
  editor({ language: "json" });
  events.document.fire({ uri: FILE });
  mock.settings.set("json.validate.enable", false);
  events.configuration.fire({ affectsConfiguration: (key) => key === "json.validate.enable" });
  mock.settings.clear();
  editor({});
  events.closed.fire({ uri: FILE });
  expect(shown).toEqual([ALL, OURS, ALL, ALL]);
  said(["config.unknown-key"]);
  events.document.fire({ uri: FILE });
  expect(shown.slice(4)).toEqual([["config.unknown-key"]]);
});
