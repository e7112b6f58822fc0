/**
 * Commands on the MCP servers of a folder. Rules:
 *
 * 1. A server starts only after the user has approved exactly what it would start, in a dialog that shows it. The hash
 *    of what was shown goes with the approval: the daemon refuses it for anything else.
 * 2. Of a server that offers something else than was approved, the differences are shown first. The approval carries the
 *    pin of what was shown.
 * 3. Nothing pops up by itself: a server that waits for its approval says so in its lens, in the list and in the panel.
 */
import * as vscode from "vscode";
import type { ServerInfo } from "../protocol";
import { actionsOf, SERVER_ACTIONS, type ServerAction, stateOf, stateText, tokensText } from "../serverState";
import { plural, visible } from "../usage/figures";
import { type CommandTarget, confirm, pick, pickLive, Silent, type Tools } from "./commandContext";

type Commands = Record<string, (...args: unknown[]) => Promise<unknown>>;

/** A server and its folder, as a command is about them. */
interface Meant {
  readonly place: CommandTarget;
  readonly server: ServerInfo;
}

/** What a lens or a program gives a command: a server, and what to do with it. */
interface ServerTarget {
  readonly folder?: string;
  readonly name?: string;
  readonly action?: string;
}

type Run = (tools: Tools, meant: Meant) => Promise<void>;

const RUNS: Readonly<Record<ServerAction, Run>> = { approve, login, start, stop, restart, log: showLog, revoke };

export function mcpCommands(tools: Tools): Commands {
  const command = (action: ServerAction) => async (arg: unknown) => perform(tools, action, targetOf(arg));
  return {
    "nexus.mcpServers": (arg) => listServers(tools, targetOf(arg)),
    "nexus.showServer": (arg) => showServer(tools, targetOf(arg)),
    "nexus.approveServer": command("approve"),
    "nexus.loginServer": command("login"),
    "nexus.startServer": command("start"),
    "nexus.stopServer": command("stop"),
    "nexus.restartMcpServer": command("restart"),
    "nexus.showServerLog": command("log"),
    "nexus.revokeServer": command("revoke"),
  };
}

/** What an approval of a server allows, as text. */
export function launchText(server: ServerInfo): string {
  const lines = server.url === undefined ? commandLines(server) : [`Address: ${server.url}`];
  const given = Object.entries(server.headers ?? server.variables ?? {});
  const what = server.url === undefined ? "Variables" : "Headers";
  if (given.length > 0) lines.push(`${what}: ${given.map(([name, value]) => `${name}=${value}`).join(", ")}`);
  lines.push(`Named by: ${fileOf(server)}, line ${server.range.start.line + 1}`, ...flagLines(server));
  lines.push(...(server.warnings ?? []).map((warning) => `⚠ ${warning}`));
  return lines.map(visible).join("\n\n");
}

function commandLines({ command = "", program, directory }: ServerInfo): string[] {
  const shown = program === undefined || command.includes(program) ? [] : [`Program: ${program}`];
  return [`Command: ${command}`, ...shown, `Directory: ${directory ?? ""}`];
}

function fileOf({ uri }: ServerInfo): string {
  return vscode.workspace.asRelativePath(vscode.Uri.parse(uri));
}

function flagLines({ flags = [] }: ServerInfo): string[] {
  return flags.map(({ place, message }) => visible(`⚠ ${place}: ${message}`));
}

// ---------------------------------------------------------------- which server

/** The argument of a lens, a node of a tree, or nothing. */
function targetOf(argument: unknown): ServerTarget {
  const given = (typeof argument === "object" && argument !== null ? argument : {}) as Record<string, unknown>;
  const text = (value: unknown, key: string) => (typeof value === "string" ? { [key]: value } : {});
  return {
    ...text(given.workspaceFolder ?? given.folder, "folder"),
    ...text(given.name ?? given.server, "name"),
    ...text(given.action, "action"),
  };
}

async function serversOf(tools: Tools, place: CommandTarget): Promise<readonly ServerInfo[]> {
  const { workspaceFolder } = place;
  return (await tools.request("MCP servers", "nexus/mcp/servers", { workspaceFolder })).servers;
}

async function placeOf(tools: Tools, { folder }: ServerTarget): Promise<CommandTarget> {
  return tools.place(folder === undefined ? {} : { folder });
}

/** The server that is meant, as it is now. Throws an Error where it has gone. */
async function serverOf(tools: Tools, place: CommandTarget, name: string): Promise<Meant> {
  const server = (await serversOf(tools, place)).find((one) => one.name === name);
  if (server === undefined) throw new Error(`${place.name} has no MCP server ${name} any more.`);
  return { place, server };
}

/** Does something with the server that is meant, else with one that the user picks. */
async function perform(tools: Tools, action: ServerAction, target: ServerTarget): Promise<void> {
  const [run, face] = [RUNS[action], SERVER_ACTIONS[action]];
  const place = await placeOf(tools, target);
  if (target.name !== undefined) return run(tools, await serverOf(tools, place, target.name));
  const servers = (await serversOf(tools, place)).filter(face.fits);
  const title = `${face.title.replace("…", "")} · ${place.name}`;
  if (servers.length === 0) {
    void vscode.window.showInformationMessage(`${title}: there is no MCP server for that now.`);
    throw new Silent();
  }
  const { server } = await pick(servers.map(serverItem), title, "Which MCP server?");
  await run(tools, { place, server });
}

/** What a lens of a server says; without an action, all that there is to say and to do. */
async function showServer(tools: Tools, target: ServerTarget): Promise<void> {
  const { action } = target;
  if (action !== undefined && Object.hasOwn(RUNS, action)) return perform(tools, action as ServerAction, target);
  if (target.name === undefined) return listServers(tools, target);
  const place = await placeOf(tools, target);
  await showMenu(tools, await serverOf(tools, place, target.name));
}

function serverItem(server: ServerInfo): vscode.QuickPickItem & { server: ServerInfo } {
  return {
    label: `$(${stateOf(server).icon}) ${server.name}`,
    description: stateText(server),
    detail: server.error ?? server.command ?? server.url ?? "",
    server,
  };
}

async function listServers(tools: Tools, target: ServerTarget): Promise<void> {
  const place = await placeOf(tools, target);
  const { servers, tokens } = await tools.request("MCP servers", "nexus/mcp/servers", {
    workspaceFolder: place.workspaceFolder,
  });
  if (servers.length === 0) {
    const files = ".nexus3/mcp.json, .mcp.json or .vscode/mcp.json";
    void vscode.window.showInformationMessage(`${place.name} has no MCP servers: no ${files} names one.`);
    throw new Silent();
  }
  const exact = servers.every((server) => server.exact);
  const cost = `Their tools cost ${tokensText({ exact, tokens })} in every request`;
  const load = async () => (await serversOf(tools, place)).map(serverItem);
  const { server } = await pickLive(load, tools.nexus.onDidChangeServer, `MCP Servers · ${place.name}`, cost);
  await showMenu(tools, { place, server });
}

/** What can be done with a server, and what each of its tools costs. */
async function showMenu(tools: Tools, meant: Meant): Promise<void> {
  const { server } = meant;
  type Item = vscode.QuickPickItem & { run(): Promise<void> };
  const open = async () => openPlace(server);
  const items: Item[] = [
    ...actionsOf(server).map((action) => {
      const { icon, title } = SERVER_ACTIONS[action];
      return { label: `$(${icon}) ${title}`, run: () => RUNS[action](tools, meant) };
    }),
    { label: "$(go-to-file) Open Its File", description: fileOf(server), run: open },
    { label: "Tools", kind: vscode.QuickPickItemKind.Separator, run: open },
    ...(server.tools ?? []).map(({ name, tokens, description }) => ({
      label: `$(symbol-method) ${name}`,
      description: tokensText({ exact: server.exact ?? false, tokens }),
      detail: description,
      run: open,
    })),
  ];
  const chosen = await pick(items, `MCP Server ${server.name}`, server.error ?? stateText(server));
  await chosen.run();
}

async function openPlace({ uri, range }: ServerInfo): Promise<void> {
  const { line, character } = range.start;
  const selection = new vscode.Range(line, character, line, character);
  await vscode.window.showTextDocument(vscode.Uri.parse(uri), { selection });
}

// ---------------------------------------------------------------- what is done

async function approve(tools: Tools, meant: Meant): Promise<void> {
  const { place, server } = meant;
  const { name, state, hash } = server;
  if (state === "untrusted") {
    const manage = "Manage Trust";
    const text = `Nothing is started in ${place.name} while you do not trust it, so ${name} waits.`;
    if ((await vscode.window.showInformationMessage(text, manage)) === manage)
      await vscode.commands.executeCommand("workbench.trust.manage");
    throw new Silent();
  }
  if (hash === undefined) throw new Error(server.error ?? `${name} cannot be started as it is configured.`);
  if (state !== "unapproved" && state !== "changed") {
    void vscode.window.showInformationMessage(`${name} is approved: ${stateText(server)}.`);
    throw new Silent();
  }
  const pin = state === "changed" ? server.pin : undefined;
  if (pin === undefined) await confirm(`Start the MCP server ${name}?`, launchText(server), "Approve and Start");
  else await confirmChanges(tools, meant);
  const params = { workspaceFolder: place.workspaceFolder, name, hash, ...(pin === undefined ? {} : { pin }) };
  await tools.request("approving", "nexus/mcp/approve", params);
  await start(tools, meant);
}

/** Shows what changed, beside each other; raises Silent unless the user then agrees. */
async function confirmChanges(tools: Tools, { place, server }: Meant): Promise<void> {
  await tools.documents.compare({ kind: "server", folder: place.workspaceFolder, server: server.name }, place.name);
  const yes = "Approve What It Offers Now";
  const flags = flagLines(server).join(" ");
  const text = `${server.name} offers something else than you approved, so its tools are not called. ${flags}`.trim();
  if ((await vscode.window.showWarningMessage(text, yes)) !== yes) throw new Silent();
}

async function start(tools: Tools, { place, server }: Meant): Promise<void> {
  const { workspaceFolder } = place;
  const { name } = server;
  const started = await tools.request(`starting ${name}`, "nexus/mcp/start", { workspaceFolder, name });
  if (started.state === "ready") {
    const when = started.tools?.some(({ deferred }) => deferred === true)
      ? "once the model has found them"
      : "in every request of @nexus";
    const cost = `${plural(started.tools?.length ?? 0, "tool")}, ${tokensText(started)} ${when}`;
    void vscode.window.showInformationMessage(`The MCP server ${name} is ready: ${cost}.`);
    return;
  }
  const { title: log, fits } = SERVER_ACTIONS.log;
  const offered = fits(started) ? [log] : [];
  const text = `The MCP server ${name}: ${started.error ?? stateText(started)}`;
  void vscode.window.showWarningMessage(text, ...offered).then(async (chosen) => {
    if (chosen === log) await showLog(tools, { place, server: started });
  });
}

/** The daemon has the page of the sign-in opened; the answer comes when the user is done there. */
async function login(tools: Tools, { place, server }: Meant): Promise<void> {
  const { workspaceFolder } = place;
  const { name } = server;
  await tools.request(`waiting for your sign-in to ${name}`, "nexus/mcp/login", { workspaceFolder, name });
  void vscode.window.showInformationMessage(`You are signed in to the MCP server ${name}.`);
}

async function stop(tools: Tools, { place, server }: Meant): Promise<void> {
  const { workspaceFolder } = place;
  await tools.request(`stopping ${server.name}`, "nexus/mcp/stop", { workspaceFolder, name: server.name });
}

async function restart(tools: Tools, meant: Meant): Promise<void> {
  await stop(tools, meant);
  await start(tools, meant);
}

async function revoke(tools: Tools, { place, server }: Meant): Promise<void> {
  const { workspaceFolder } = place;
  const { name } = server;
  const detail = "It is stopped, its tools are offered no more, and its next start asks for your approval.";
  await confirm(`Revoke the approval of the MCP server ${name}?`, detail, "Revoke");
  await tools.request("revoking", "nexus/mcp/revoke", { workspaceFolder, name });
}

async function showLog(_: Tools, { server }: Meant): Promise<void> {
  if (server.log === undefined) {
    void vscode.window.showInformationMessage(`${server.name} has written nothing to its log yet.`);
    throw new Silent();
  }
  await vscode.window.showTextDocument(vscode.Uri.parse(server.log));
  await vscode.commands.executeCommand("workbench.action.files.setActiveEditorReadonlyInSession");
}
