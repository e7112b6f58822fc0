/**
 * What is known of the next chat message before it is written, so that its cost can be shown.
 *
 * 1. The instruction files that the editor will attach are those that it should (`editorInstructions`), corrected by
 *    the last message: what came with it besides will come again, and what did not come will not. Messages to
 *    which the user attached files say nothing: the editor picks instructions by them.
 * 2. The model is the picked one, which the daemon knows; until one is picked, every figure is for the settings. The
 *    model that the chat used last, else the only one there is, says only whether tools are offered.
 * 3. The editor's tools that the setting `nexus.chat.tools` names are sent with every message. Those that the user
 *    attaches to a message are for that message only.
 */
import * as vscode from "vscode";
import { attachmentsOf } from "../chat/editorFiles";
import { definitionOf, toolsOfSetting } from "../chat/editorTools";
import { offeredTools } from "../chat/lm";
import { usedModel } from "../chat/models";
import { isDaemonTool } from "../chat/turnTools";
import type { NextTurn } from "../nexus";
import type { NextTurnParams } from "../protocol";
import { affectsEditorInstructions, findEditorInstructions } from "./editorInstructions";

const CORRECTIONS = "nexus.editorInstructions";
/** For how long the first figures wait for the editor to say which models it has. */
const PATIENCE_MS = 1_000;
const SETTINGS = ["memoryTools", "skillTools", "agentTools", "serverTools", "tools"].map(
  (name) => `nexus.chat.${name}`,
);
const WATCHED = ["**/{AGENTS,CLAUDE,CLAUDE.local}.md", "**/{.github,.claude}/**/*.md"];

/** URIs by which the last message differed from what was expected. */
interface Corrections {
  readonly added: readonly string[];
  readonly absent: readonly string[];
}

export function makeNextTurn(context: vscode.ExtensionContext): NextTurn & vscode.Disposable {
  const changed = new vscode.EventEmitter<void>();
  let files: Promise<vscode.Uri[]> | undefined;
  let model: vscode.LanguageModelChat | undefined;

  const filesChanged = () => {
    files = undefined;
    changed.fire();
  };
  const watchers = WATCHED.map((pattern) => vscode.workspace.createFileSystemWatcher(pattern));
  const listening = [
    ...watchers,
    ...watchers.flatMap((one) => [one.onDidCreate(filesChanged), one.onDidDelete(filesChanged)]),
    ...watchers.map((one) => one.onDidChange(filesChanged)),
    vscode.workspace.onDidChangeWorkspaceFolders(filesChanged),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (affectsEditorInstructions(change)) filesChanged();
      else if (SETTINGS.some((name) => change.affectsConfiguration(name))) changed.fire();
    }),
    vscode.lm.onDidChangeChatModels(() => void findModel()),
  ];
  const firstLook = Promise.race([findModel(), new Promise<void>((resolve) => setTimeout(resolve, PATIENCE_MS))]);

  async function findModel(): Promise<void> {
    const found = await usedModel(context);
    if (found?.id === model?.id && found?.maxInputTokens === model?.maxInputTokens) return;
    model = found;
    changed.fire();
  }

  async function expected(): Promise<string[]> {
    files ??= findEditorInstructions();
    return (await files).map((uri) => uri.toString());
  }

  return {
    onDidChange: changed.event,
    async params(): Promise<NextTurnParams> {
      await firstLook;
      const { added, absent } = context.workspaceState.get<Corrections>(CORRECTIONS, { added: [], absent: [] });
      const uris = new Set([...(await expected()), ...added]);
      for (const uri of absent) uris.delete(uri);
      const attachments = await attachmentsOf([...uris].map((uri) => vscode.Uri.parse(uri)));
      const turnTools = toolsOfSetting(model, isDaemonTool).map(definitionOf);
      const options = offeredTools(model);
      return { attachments, options, ...(turnTools.length === 0 ? {} : { turnTools }) };
    },
    async learn(attached, isPlain): Promise<void> {
      void findModel();
      if (!isPlain) return;
      files = undefined; // what is not watched may have changed
      const [real, guess] = [attached.map((uri) => uri.toString()), await expected()];
      await context.workspaceState.update(CORRECTIONS, {
        added: real.filter((uri) => !guess.includes(uri)),
        absent: guess.filter((uri) => !real.includes(uri)),
      } satisfies Corrections);
      changed.fire();
    },
    dispose() {
      for (const one of [...listening, changed]) one.dispose();
    },
  };
}
