/**
 * The live agents of a folder as a tree by parent, below the user's own view.
 *
 * 1. An agent whose parent is gone, or whose ancestors go round in a circle, stands at the top.
 * 2. One that gets its first agent below it is a new node: the editor would keep the old one folded.
 * 3. Who is looked at is marked; a click looks at another one, or back at the user's own view.
 */
import type { AgentInfo } from "../protocol";
import type { Icon, Node } from "./node";
import { count, pathOf, percent, plain, tokensOf } from "./wording";

export interface AgentsGiven {
  readonly agents: readonly AgentInfo[];
  readonly folder: string;
  /** The agent that is viewed; undefined: the user's own view. */
  readonly viewed: string | undefined;
}

/** None where there are no agents: then the view says what agents are. */
export function agentNodes(given: AgentsGiven): Node[] {
  if (!given.agents.length) return [];
  const known = new Map(given.agents.map((agent) => [agent.agentId, agent]));
  const children = new Map<string, AgentInfo[]>();
  const tops: AgentInfo[] = [];
  for (const agent of given.agents) {
    const parent = parentOf(agent, known);
    if (parent === undefined) tops.push(agent);
    else children.set(parent, [...(children.get(parent) ?? []), agent]);
  }
  return [youNode(given), ...tops.map((agent) => agentNode(agent, children, given))];
}

function parentOf(agent: AgentInfo, known: ReadonlyMap<string, AgentInfo>): string | undefined {
  const parent = agent.parent ?? undefined;
  if (parent === undefined || !known.has(parent)) return undefined;
  const seen = new Set([agent.agentId]);
  for (let at: string | undefined = parent; at !== undefined; at = known.get(at)?.parent ?? undefined) {
    if (seen.has(at)) return undefined;
    seen.add(at);
  }
  return parent;
}

function youNode(given: AgentsGiven): Node {
  const viewed = given.viewed === undefined;
  return {
    id: "you",
    label: "You",
    description: viewed ? "viewed" : "click to go back to your own view",
    tooltip: "What the folder's own conversation sees.",
    spoken: viewed ? "You, viewed" : "You, go back to your own view",
    icon: viewed ? { name: "eye", colour: "charts.green" } : { name: "account" },
    context: viewed ? "you.viewed" : "you",
    ...(viewed ? {} : { command: "nexus.panel.stopViewingAs" }),
    subject: { folder: given.folder },
  };
}

function agentNode(agent: AgentInfo, children: ReadonlyMap<string, AgentInfo[]>, given: AgentsGiven): Node {
  const viewed = agent.agentId === given.viewed;
  const below = (children.get(agent.agentId) ?? []).map((child) => agentNode(child, children, given));
  const cost = `${agent.usage.counter.exact ? "" : "≈ "}${count(agent.usage.total)} · ${percent(agent.usage.percent)}`;
  const parts = [...(viewed ? ["viewed"] : []), ...(agent.role ? [agent.role] : []), cost];
  return {
    id: `agent:${agent.agentId}${below.length ? "/" : ""}`,
    label: agent.agentId,
    description: parts.join(" · "),
    figure: `${agent.usage.counter.exact ? "" : "≈ "}${count(agent.usage.total)}`,
    tooltip: [
      `**${plain(agent.agentId)}**${agent.role ? `, ${plain(agent.role)}` : ""}`,
      ...(agent.notice ? [`$(warning) ${plain(agent.notice)}`] : []),
      ...(agent.task ? [plain(agent.task)] : []),
      plain(pathOf(agent.cwd, given.folder)),
      `${tokensOf(agent.usage.total, agent.usage.counter.exact)}, ${percent(agent.usage.percent)} of what is available`,
    ].join("\n\n"),
    spoken: [
      `agent ${agent.agentId}`,
      ...(viewed ? ["viewed"] : []),
      ...(agent.role ? [agent.role] : []),
      ...(agent.notice ? [agent.notice] : []),
      ...(agent.task ? [agent.task] : []),
      tokensOf(agent.usage.total, agent.usage.counter.exact),
    ].join(", "),
    icon: iconOf(agent, viewed),
    context: viewed ? "agent.viewed" : "agent",
    command: "nexus.viewAs",
    subject: { folder: given.folder, agent: agent.agentId, session: agent.session },
    open: true,
    ...(below.length ? { children: below } : {}),
  };
}

function iconOf(agent: AgentInfo, viewed: boolean): Icon {
  if (agent.notice) return { name: "warning", colour: "list.warningForeground" };
  return viewed ? { name: "eye", colour: "charts.green" } : { name: "robot" };
}
