/** Commands on agents: each works in a folder of its own, and sees what its parent has not said already. */
import * as vscode from "vscode";
import type { AgentInfo, SpawnParams } from "../protocol";
import { about, exactly, percentText } from "../usage/figures";
import { listAgents, withNextUsage } from "../usage/nextUsage";
import {
  ask,
  type CommandTarget,
  confirm,
  pick,
  pickLive,
  Silent,
  type Subject,
  subjectOf,
  type Tools,
} from "./commandContext";

const LONGEST_MESSAGE = 16_000;
const USER = "user";

const ROLES: (vscode.QuickPickItem & { label: AgentInfo["role"] })[] = [
  { label: "worker", description: "does one task, with the tools for it" },
  { label: "manager", description: "hands tasks to agents of its own" },
  { label: "unified", description: "both" },
];

type Commands = Record<string, (...args: unknown[]) => Promise<unknown>>;

export function agentCommands(tools: Tools): Commands {
  return {
    "nexus.spawnAgent": (arg) => spawnAgent(tools, subjectOf(arg)),
    "nexus.disposeAgent": (arg) => disposeAgent(tools, subjectOf(arg)),
    "nexus.messageAgent": (arg) => messageAgent(tools, subjectOf(arg)),
    "nexus.viewAs": (arg) => viewAs(tools, subjectOf(arg)),
  };
}

/** In a menu of an agent, the new one is its child. */
async function spawnAgent(tools: Tools, subject: Subject): Promise<void> {
  const place = await tools.place(subject);
  const live = await agentsOf(tools, place);
  const title = subject.agent ? `Spawn a Child of ${subject.agent}` : "Spawn Agent";
  const cwd = await askDirectory(place, title);
  const base = vscode.workspace.asRelativePath(cwd, false).split("/").at(-1) ?? "agent";
  const agentId = await ask({
    title: `${title} (1/3)`,
    prompt: "Its name",
    value: freeName(base, live),
    wrong: (name) => wrongAgent(name, live),
  });
  const { label: role } = await pick(ROLES, `${title} (2/3)`, "Its role");
  const task = await ask({
    title: `${title} (3/3)`,
    prompt: "Its task, if it has one yet",
    placeHolder: "Review the tokens module",
  });
  const params: SpawnParams = {
    workspaceFolder: place.workspaceFolder,
    agentId,
    cwd: cwd.toString(),
    role,
    ...(task ? { task } : {}),
    ...(subject.agent ? { parent: subject.agent } : {}),
  };
  const { nexus, nextTurn } = tools;
  const agent = await tools.request("spawning an agent", "nexus/agent/spawn", params);
  const { usage } = await withNextUsage(nexus, nextTurn, place.workspaceFolder, agent);
  const line = `${agentId} is there: ${about(usage)}${exactly(usage.total)} tokens, ${percentText(usage.percent)} of its window.`;
  void vscode.window.showInformationMessage(line, "View as").then((chosen) => {
    if (chosen) lookAs(tools, place, agentId);
  });
}

async function disposeAgent(tools: Tools, subject: Subject): Promise<void> {
  const place = await tools.place(subject);
  const agentId = subject.agent ?? (await pickAgent(tools, place, "Dispose Agent"));
  const detail = "The agents below it end with it. Its conversation stays, and can be searched.";
  await confirm(`Dispose of the agent "${agentId}"?`, detail, "Dispose");
  const { disposed } = await tools.request("disposing", "nexus/agent/dispose", {
    workspaceFolder: place.workspaceFolder,
    agentId,
  });
  if (tools.focus.agent && disposed.includes(tools.focus.agent)) tools.focus.setAgent(undefined);
}

async function messageAgent(tools: Tools, subject: Subject): Promise<void> {
  const place = await tools.place(subject);
  const target = subject.agent ?? (await pickAgent(tools, place, "Message Agent"));
  const content = await ask({
    title: `Message ${target}`,
    prompt: "It is told at its next turn, before what the user says.",
    wrong: (text) =>
      text === ""
        ? "Type a message."
        : text.length > LONGEST_MESSAGE
          ? `At most ${exactly(LONGEST_MESSAGE)} characters.`
          : undefined,
  });
  const source = tools.focus.agent ?? USER;
  await tools.request("leaving a message", "nexus/agent/message", {
    workspaceFolder: place.workspaceFolder,
    source,
    target,
    content,
  });
  void vscode.window.setStatusBarMessage(`$(mail) The message waits for ${target}`, 4_000);
}

async function viewAs(tools: Tools, subject: Subject): Promise<void> {
  const place = await tools.place(subject);
  if (subject.agent !== undefined) return lookAs(tools, place, subject.agent);
  const { nexus, nextTurn, focus } = tools;
  const you = {
    label: `${focus.agent ? "" : "$(check) "}You`,
    description: "the folder's own conversation",
    agentId: undefined,
  };
  const load = async () => {
    const live = await listAgents(nexus, nextTurn, place.workspaceFolder);
    return [you, ...live.map((agent) => agentItem(agent, focus.agent))];
  };
  // an agent may start or end while the list is open
  const { agentId } = await pickLive(load, nexus.onDidChangeAgent, `View as · ${place.name}`, "Whose context?");
  lookAs(tools, place, agentId);
}

function lookAs(tools: Tools, place: CommandTarget, agent: string | undefined): void {
  tools.focus.setFolder(place.folder);
  tools.focus.setAgent(agent);
}

function agentsOf({ nexus, nextTurn }: Tools, place: CommandTarget): Promise<AgentInfo[]> {
  const options = { location: vscode.ProgressLocation.Window, title: "Nexus: agents" };
  const list = () => listAgents(nexus, nextTurn, place.workspaceFolder);
  return Promise.resolve(vscode.window.withProgress(options, list));
}

async function pickAgent(tools: Tools, place: CommandTarget, title: string): Promise<string> {
  const live = await agentsOf(tools, place);
  if (live.length > 0)
    return (
      await pick(
        live.map((agent) => agentItem(agent, tools.focus.agent)),
        title,
        "Which agent?",
      )
    ).agentId;
  const spawn = "Spawn Agent";
  if ((await vscode.window.showInformationMessage("No agent is live in this folder.", spawn)) === spawn) {
    await vscode.commands.executeCommand("nexus.spawnAgent");
  }
  throw new Silent();
}

function agentItem(agent: AgentInfo, viewed: string | undefined): vscode.QuickPickItem & { agentId: string } {
  const parts = [
    agent.role,
    `${about(agent.usage)}${exactly(agent.usage.total)} tokens`,
    ...(agent.parent ? [`child of ${agent.parent}`] : []),
  ];
  return {
    agentId: agent.agentId,
    label: `${agent.agentId === viewed ? "$(check) " : ""}${agent.agentId}`,
    description: parts.filter(Boolean).join(" · "),
    detail: [agent.cwd, ...(agent.task ? [agent.task] : [])].join(" · "),
  };
}

async function askDirectory(place: CommandTarget, title: string): Promise<vscode.Uri> {
  const chosen = await vscode.window.showOpenDialog({
    title: `${title}: its folder`,
    openLabel: "Work Here",
    canSelectFiles: false,
    canSelectFolders: true,
    canSelectMany: false,
    defaultUri: place.folder,
  });
  if (!chosen?.[0]) throw new Silent();
  return chosen[0];
}

function freeName(base: string, live: readonly AgentInfo[]): string {
  const taken = new Set(live.map((agent) => agent.agentId));
  const plain = base.replace(/[^\w.-]+/g, "-") || "agent";
  for (let number = 1; ; number++) {
    const name = number === 1 ? plain : `${plain}-${number}`;
    if (!taken.has(name)) return name;
  }
}

/** What is wrong with an agent's name. */
export function wrongAgent(name: string, live: readonly AgentInfo[]): string | undefined {
  if (name === "") return "Type a name.";
  if (/\p{Cc}/u.test(name)) return "Use one line of plain text.";
  if (live.some((agent) => agent.agentId === name)) return `The agent ${name} is live already.`;
  return undefined;
}
