/** An error → what the user is told, and the buttons that help. No VS Code here. */
import { NexusError } from "../nexus";
import { REMEDIES, type RemedyId } from "../server/remedies";

export interface Action {
  title: string;
  command: string;
  arguments?: unknown[];
}

export interface Failure {
  message: string;
  actions: Action[];
  /** The context was too long for the model. */
  overflow?: boolean;
}

/** A button that writes into the chat's input and sends it. */
function ask(title: string, query: string): Action {
  return { title, command: "workbench.action.chat.open", arguments: [{ query: `@nexus ${query}` }] };
}

export const COMPACT = ask("Compact", "/compact");
const OPEN_PANEL: Action = { title: "Open Context Panel", command: "nexus.openPanel" };
export const SHOW_SETTINGS: Action = { title: "Show Effective Configuration", command: "nexus.showEffectiveConfig" };
const SHOW_OUTPUT: Action = { title: "Show Output", command: "nexus.showOutput" };

const TOO_LONG =
  /context.?(length|window|limit)|too (long|large|many tokens)|maximum.{0,20}tokens|token.?limit|exceeds.{0,30}tokens/iu;
const QUOTA = /quota|rate.?limit|too many requests|\b429\b/iu;

/** What went wrong while the daemon was asked, or the model. */
export function explain(error: unknown, model: string): Failure {
  const code = codeOf(error);
  const text = textOf(error);
  switch (code) {
    case "not-ready":
      return { message: text, actions: remediesOf(error).map(actionOf) };
    case "no-folder":
      return { message: text, actions: [{ title: "Open Folder", command: "vscode.openFolder" }] };
    case "context-overflow":
      return {
        message: `${text} Attach less, or compact the conversation.`,
        actions: [COMPACT, OPEN_PANEL],
        overflow: true,
      };
    case "chat-failed":
      return TOO_LONG.test(text)
        ? { message: text, actions: [COMPACT, OPEN_PANEL], overflow: true }
        : { message: text, actions: [] };
    case "no-provider":
      return { message: text, actions: [SHOW_SETTINGS] };
    case "unknown-skill":
      return { message: text, actions: [ask("List Skills", "/skill")] };
    case "unknown-folder":
      return {
        message: text,
        actions: [{ title: "Add Folder to Workspace…", command: "workbench.action.addRootFolder" }],
      };
    case "NoPermissions":
      return {
        message: `Nexus may not use ${model}: ${text} Send the message again and allow it, or pick another model in the chat view.`,
        actions: [{ title: "Manage Language Model Access", command: "workbench.action.manageLanguageModelAccess" }],
      };
    case "NotFound":
      return { message: `${model} is not there any more: ${text} Pick another model in the chat view.`, actions: [] };
    case "Blocked":
      return { message: `${model} refused the request: ${text} ${againLater(text)}`, actions: [] };
  }
  if (isFromModel(error) && TOO_LONG.test(text)) {
    return {
      message: `The context is too long for ${model}: ${text} Compact the conversation, then send the message again.`,
      actions: [COMPACT, OPEN_PANEL],
      overflow: true,
    };
  }
  if (isFromModel(error)) {
    return { message: `${model} failed: ${text} ${QUOTA.test(text) ? againLater(text) : "Try again."}`, actions: [] };
  }
  return { message: text, actions: [SHOW_OUTPUT] };
}

function remediesOf(error: unknown): readonly RemedyId[] {
  const known = error instanceof NexusError ? error.remedies : [];
  return known.length > 0 ? known : ["restart", "output"];
}

function actionOf(id: RemedyId): Action {
  const { title, command, args } = REMEDIES[id];
  return { title, command, ...(args ? { arguments: [...args] } : {}) };
}

/** The model's own failure, with what the editor wrapped it in taken off. */
export class ModelFailure extends Error {
  constructor(override readonly cause: unknown) {
    super(textOf(cause));
    this.name = "ModelFailure";
  }
}

export function codeOf(error: unknown): string | undefined {
  const inner = error instanceof ModelFailure ? error.cause : error;
  const code: unknown = inner instanceof Error ? Reflect.get(inner, "code") : undefined;
  return typeof code === "string" ? code : undefined;
}

export function textOf(error: unknown): string {
  if (
    error instanceof Error &&
    !(error instanceof ModelFailure) &&
    error.cause instanceof Error &&
    !error.message.includes(error.cause.message)
  ) {
    return sentence(`${error.message}: ${error.cause.message}`);
  }
  return sentence(error instanceof Error ? error.message : String(error));
}

function sentence(text: string): string {
  const trimmed = text.trim() || "no reason was given";
  return /[.!?…]$/u.test(trimmed) ? trimmed : `${trimmed}.`;
}

function againLater(text: string): string {
  return QUOTA.test(text) ? "Try again later, or pick another model." : "Change the message, or pick another model.";
}

function isFromModel(error: unknown): boolean {
  return error instanceof ModelFailure;
}
