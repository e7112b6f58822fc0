/**
 * Prompts and resources of the folder's MCP servers in a chat. Rules:
 *
 * 1. `/prompt SERVER:NAME WORDS` sends the text that the server has for the prompt; `/prompt` alone lists what there
 *    is, and starts nothing.
 * 2. `@SERVER:URI` in a message attaches that resource. Its text is marked as data of the server. One that cannot be
 *    read is named to the user, and the message is sent without it.
 */
import type * as vscode from "vscode";
import type { Nexus } from "../nexus";
import type { ServersResult } from "../protocol";
import type { Attachment } from "./attached";
import { plain } from "./markdown";
import type { TurnScope } from "./turnTools";

const REFERENCE = /(?<=^|\s)@([\w.-]+):([A-Za-z][\w+.-]*:\/\/\S*[^\s.,;:!?)\]}'"`])/gu;
/** Resources that one message can attach. */
const MOST_RESOURCES = 10;
const NONE =
  "No MCP server of this folder has a prompt or a resource, as far as is known: **MCP Servers** starts them.";

type Scope = Pick<TurnScope, "folder" | "agent" | "token">;

/** The text of a prompt; `words` are what stands after its name. */
export async function readServerPrompt(nexus: Nexus, scope: Scope, name: string, words: string): Promise<string> {
  const [server = "", ...rest] = name.split(":");
  const params = { ...who(scope), server, prompt: rest.join(":"), words };
  return (await nexus.request("nexus/mcp/prompt", params, scope.token)).text;
}

/** Lists the prompts and resources of all servers. */
export async function listServerPrompts(nexus: Nexus, scope: Scope, stream: vscode.ChatResponseStream): Promise<void> {
  stream.markdown(promptList(await nexus.request("nexus/mcp/servers", who(scope), scope.token)));
}

function promptList({ servers }: ServersResult): string {
  const lines = servers.flatMap(({ name, promptUsages = [], resources = [] }) => [
    ...promptUsages.map((usage) => `- /prompt ${plain(`${name}:${usage}`)}`),
    ...resources.map((uri) => `- ${plain(`@${name}:${uri}`)}`),
  ]);
  return lines.length === 0 ? NONE : lines.join("\n");
}

/** The resources that a message refers to, and a note for each that cannot be read. */
export async function readServerResources(
  nexus: Nexus,
  scope: Scope,
  message: string,
): Promise<{ resources: Attachment[]; notes: string[] }> {
  const references = new Map(
    [...message.matchAll(REFERENCE)].map(([text, server = "", uri = ""]) => [text, { server, uri }]),
  );
  const read = await Promise.all(
    [...references].slice(0, MOST_RESOURCES).map(async ([title, reference]): Promise<Attachment | string> => {
      try {
        const { text } = await nexus.request("nexus/mcp/resource", { ...who(scope), ...reference }, scope.token);
        return { title, language: "", text };
      } catch (error) {
        return `${title}: ${error instanceof Error ? error.message : String(error)}`;
      }
    }),
  );
  const left = references.size - read.length;
  return {
    resources: read.filter((each) => typeof each !== "string"),
    notes: [
      ...read.filter((each) => typeof each === "string"),
      ...(left > 0 ? [`${left} more resources are not sent: ${MOST_RESOURCES} are the most of a message`] : []),
    ],
  };
}

function who({ folder, agent }: Scope): { workspaceFolder: string; agent?: string } {
  return { workspaceFolder: folder, ...(agent === undefined ? {} : { agent }) };
}
