/**
 * A turn with the provider that the folder's settings name (`provider.name`). Rules:
 *
 * 1. The daemon takes it (`nexus/chat/send`): it assembles, asks the model, runs its tools and records each step. The
 *    chat shows what it streams. The model that is picked in the chat view is not asked.
 * 2. The daemon records what was said in a turn that is cancelled or fails. Its reply does not say where, so that is what
 *    it announced last (`nexus/session/didChange`); the announcement may come up to RECORDED_MS after the reply.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type * as vscode from "vscode";
import type { Nexus } from "../nexus";
import type { ChatItem, ChatSendParams, ChatSendResult } from "../protocol";
import { dollars, exactly, plural } from "../usage/figures";
import { explain, type Failure } from "./failures";
import { plain } from "./markdown";
import { isRecord } from "./modelMessages";
import type { Notices } from "./notices";
import { doingOf, type TurnScope } from "./turnTools";

const RECORDED_MS = 2_000;
const PAUSE_MS = 20;
/** Settings of providers that have no model of their own. */
const NO_PROVIDERS: readonly unknown[] = ["editor", "none"];
/** Begins the reason of a turn that ended at a limit: the name of the setting. */
const LIMIT = "chat.";

export interface Sent {
  /** Undefined where the turn was cancelled or failed. */
  result: ChatSendResult | undefined;
  /** Id of the last turn that was recorded. */
  recorded: string | undefined;
  failure: Failure | undefined;
  /** Whether the conversation was compacted. */
  isCompacted: boolean;
}

type Scope = Pick<TurnScope, "folder" | "session" | "agent" | "token"> & {
  stream: vscode.ChatResponseStream;
  notices: Notices;
};

/** The provider that the settings name; none where they leave the model to the editor. */
export async function providerOf(
  nexus: Nexus,
  { folder, agent, token }: Pick<Scope, "folder" | "agent" | "token">,
): Promise<string | undefined> {
  const params = { workspaceFolder: folder, ...(agent === undefined ? {} : { agent }) };
  const { config } = await nexus.request("nexus/config/effective", params, token);
  const name = isRecord(config.provider) ? config.provider.name : undefined;
  return typeof name === "string" && !NO_PROVIDERS.includes(name) ? name : undefined;
}

/** Send a message. Rejects where it was cancelled or failed before anything was said. */
export async function sendTurn(nexus: Nexus, scope: Scope, params: ChatSendParams): Promise<Sent> {
  const show = shower(scope);
  let recorded: string | undefined;
  let [isSaid, isUnrecorded, isCompacted] = [false, false, false];
  const listening = nexus.onDidChangeSession(({ workspaceFolder, session, by, reason, turn }) => {
    if (by !== "self" || workspaceFolder !== scope.folder || session !== scope.session) return;
    if (reason === "compacted") isCompacted = true;
    if (reason !== "appended") return;
    recorded = turn;
    isUnrecorded = false;
  });
  const onItems = (items: readonly ChatItem[]): void => {
    const own = items.filter(({ agent }) => agent === undefined);
    if (own.some(({ kind }) => kind === "text" || kind === "toolCall")) isSaid = isUnrecorded = true;
    items.forEach(show);
  };
  try {
    const result = await nexus.request("nexus/chat/send", params, scope.token, onItems);
    noteResult(scope.notices, result);
    return { result, recorded: result.turn, failure: undefined, isCompacted };
  } catch (error) {
    if (!isSaid) throw error;
    for (let waited = 0; isUnrecorded && waited < RECORDED_MS; waited += PAUSE_MS) await sleep(PAUSE_MS);
    const failure = scope.token.isCancellationRequested ? undefined : explain(error, "The model");
    return { result: undefined, recorded, failure, isCompacted };
  } finally {
    listening.dispose();
  }
}

/** Shows the items of a turn. Thinking is a line each time that it begins. */
function shower({ stream, notices }: Scope): (item: ChatItem) => void {
  let before = "";
  return ({ kind, text = "", name = "", agent }) => {
    if (kind === "text") stream.markdown(text);
    else if (kind === "notice") {
      stream.progress(text); // at once: it says who is sent the conversation
      notices.add([plain(text)]);
    } else if (kind === "toolCall")
      stream.progress(`${agent === undefined ? "" : `${agent}: `}${doingOf(name)} (${name})`);
    else if (kind === "thinking" && before !== kind) stream.progress("Thinking");
    before = kind;
  };
}

/** What the turn cost, and whether it was cut off. */
function noteResult(notices: Notices, result: ChatSendResult): void {
  const { steps, model, spending, stopReason } = result;
  const { tokens, usd, lacks = [] } = spending;
  const cost = usd === undefined ? "" : `, ${lacks.length > 0 ? "at least " : ""}${dollars(usd)}`;
  notices.add([`${plural(steps, "request")} to ${plain(model)}: ${exactly(tokens)} tokens${cost}.`]);
  if (stopReason.startsWith(LIMIT)) {
    notices.add([`The turn ended at the limit \`${stopReason}\` of the settings. Send a message to go on.`]);
  }
}
