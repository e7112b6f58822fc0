/** The figures of the next message, for whoever shows them in words: notices, lists and answers in the chat. */
import { type NextTurn, type Nexus, NexusError } from "../nexus";
import type { AgentInfo, Requests, TokenUsage } from "../protocol";

type Asking = Pick<Nexus, "request">;

/** What the next message of a conversation, or of an agent, costs with all that is sent with it. */
export async function nextUsage(
  nexus: Asking,
  nextTurn: NextTurn,
  scope: Requests["nexus/context/usage"]["params"],
): Promise<TokenUsage> {
  return nexus.request("nexus/context/usage", { ...scope, nextTurn: await nextTurn.params() });
}

/** The live agents of a folder, each with what its next message costs. */
export async function listAgents(nexus: Asking, nextTurn: NextTurn, workspaceFolder: string): Promise<AgentInfo[]> {
  const { agents } = await nexus.request("nexus/agent/list", { workspaceFolder });
  return Promise.all(agents.map((agent) => withNextUsage(nexus, nextTurn, workspaceFolder, agent)));
}

/** The agent with what its next message costs; as it is where it has ended meanwhile. */
export async function withNextUsage<A extends Pick<AgentInfo, "agentId" | "usage">>(
  nexus: Asking,
  nextTurn: NextTurn,
  workspaceFolder: string,
  agent: A,
): Promise<A> {
  try {
    return { ...agent, usage: await nextUsage(nexus, nextTurn, { workspaceFolder, agent: agent.agentId }) };
  } catch (error) {
    if (error instanceof NexusError && error.code === "unknown-agent") return agent;
    throw error;
  }
}
