/** The MCP servers of a folder in the panel: a row for each, what its menu has, and what the window says of them. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { layerNodes } from "../../src/panel/layers";
import type { Node } from "../../src/panel/node";
import { serverFacts, serverRemarks, serversNode } from "../../src/panel/servers";
import type { McpServer, ServerInfo, ServersResult } from "../../src/protocol";
import { documented, example, FOLDER } from "./panel-examples";

const FILE = `${FOLDER}/.nexus3/mcp.json`;
const HOME = "/home/ana";
const LOG = "file:///home/ana/.local/state/nexus/servers/a.log";
const TOOL = { name: "read", offeredAs: "mcp__files__read", description: "Reads.", tokens: 40 };

function lineOf(line: number) {
  return { start: { line, character: 4 }, end: { line, character: 40 } };
}

function entry(name: string, more: Partial<McpServer> = {}): McpServer {
  return { name, type: "stdio", origin: "local", uri: FILE, range: lineOf(2), enabled: true, ...more };
}

function server(name: string, state: string, more: Partial<ServerInfo> = {}): ServerInfo {
  return { name, origin: "local", uri: FILE, range: lineOf(2), transport: "stdio", state, hash: "h", ...more };
}

const READY = { pin: "p", tokens: 1_234, exact: true, tools: [TOOL], log: LOG };
const FAILED = { error: `${HOME}/bin/server ended with 3.`, log: LOG };

function result(...servers: ServerInfo[]): ServersResult {
  return { servers, tokens: servers.reduce((sum, { state, tokens = 0 }) => sum + (state === "ready" ? tokens : 0), 0) };
}

function rows(entries: readonly McpServer[], states?: ServersResult): Node {
  return serversNode({ entries, states, folder: FOLDER, home: HOME });
}

describe("the row of a server", () => {
  it.each<[string, Partial<ServerInfo>, string, string, string]>([
    ["unapproved", {}, "not approved · This folder", "shield", "approve"],
    ["untrusted", {}, "the folder is not trusted · This folder", "workspace-untrusted", "approve"],
    ["stopped", {}, "stopped · This folder", "circle-outline", "start.revoke"],
    ["starting", { log: LOG }, "starting · This folder", "loading~spin", "stop.restart.log.revoke"],
    ["ready", READY, "ready · 1 tool · 1,234 tokens · This folder", "check", "stop.restart.log.revoke"],
    [
      "changed",
      { pin: "p", tokens: 40, tools: [TOOL] },
      "offers something else than you approved · 1 tool · ≈ 40 tokens · This folder",
      "warning",
      "approve.stop.restart.revoke",
    ],
    ["failed", FAILED, "failed: ~/bin/server ended with 3. · This folder", "error", "start.log.revoke"],
    ["needs-auth", {}, "somebody has to sign in · This folder", "key", "login.revoke"],
  ])("that is %s says so, and its menu has what fits", (state, more, description, icon, actions) => {
    const [row] = rows([entry("files")], result(server("files", state, more))).children ?? [];
    expect(row).toMatchObject({
      label: "files",
      description,
      context: `server.on.${actions}`,
      command: "nexus.panel.openSource",
      subject: { folder: FOLDER, server: "files", source: { uri: FILE, range: lineOf(2) } },
      spoken: `server files, ${description.replaceAll(" · ", ", ")}`,
    });
    expect(row?.icon?.name).toBe(icon);
  });

  it("names no path outside the folder and the home directory's own sign", () => {
    const [row] = rows([entry("files")], result(server("files", "failed", FAILED))).children ?? [];
    expect(JSON.stringify(row, (key, value) => (key === "subject" ? undefined : value))).not.toContain(HOME);
  });

  it("has its tokens first in a narrow view, where they are sent", () => {
    const given = [entry("files"), entry("notes")];
    const states = result(server("files", "ready", READY), server("notes", "stopped", READY));
    expect(rows(given, states).children?.map(({ figure }) => figure)).toEqual(["1,234", undefined]);
  });

  it("is the state of the entry in force, not of one of the same name", () => {
    const over = entry("files", { origin: "ancestor:company", uri: "file:///home/ana/company/mcp.json" });
    const given = [{ ...over, shadowedBy: "local" }, entry("files"), entry("off", { enabled: false })];
    const states = result(server("files", "ready", READY), server("off", "disabled"));
    const node = rows(given, states);
    expect(node.children?.map(({ description, context }) => [description, context])).toEqual([
      ["stdio · Ancestor: company · overridden by This folder", "server.off"],
      ["ready · 1 tool · 1,234 tokens · This folder", "server.on.stop.restart.log.revoke"],
      ["stdio · This folder · off", "server.off"],
    ]);
    expect(node.description).toBe("1 of 3 on · 1 of 1 ready · 1,234 tokens");
  });

  it("is what its file says while the daemon says nothing", () => {
    expect(rows([entry("files")])).toMatchObject({
      description: "1",
      children: [{ description: "stdio · This folder", context: "server.on", icon: { name: "server" } }],
    });
  });

  it("stands in the layers with the state that is documented", () => {
    const states = documented("nexus/mcp/servers");
    const entries = states.servers.map(({ name, origin, uri }) => entry(name, { origin, uri }));
    const given = { layers: example("nexus/context/layers"), folder: FOLDER, servers: entries, serverStates: states };
    const node = layerNodes(given).find(({ id }) => id === "servers");
    expect(node?.description).toBe("0 of 2 ready · 2 not approved");
    expect(node?.children?.map(({ context }) => context)).toEqual(["server.on.approve", "server.on.approve"]);
  });
});

describe("the menu of a row", () => {
  const { contributes } = JSON.parse(readFileSync(resolve(__dirname, "../../package.json"), "utf8"));
  const entries = contributes.menus["view/item/context"] as { command: string; when: string; group: string }[];

  /** Commands whose entry fits a row of the layers. */
  function commands(viewItem: string, group: RegExp): string[] {
    return entries.flatMap(({ command, when, group: own }) => {
      const pattern = /^view == nexus\.layers && viewItem =~ \/(.+)\/$/.exec(when)?.[1];
      return pattern && group.test(own) && new RegExp(pattern).test(viewItem) ? [command.replace("nexus.", "")] : [];
    });
  }

  it.each([
    ["server.on.approve", ["approveServer"], ["approveServer"]],
    ["server.on.login.revoke", ["loginServer"], ["loginServer", "revokeServer"]],
    [
      "server.on.stop.restart.log.revoke",
      ["stopServer", "showServerLog"],
      ["stopServer", "restartMcpServer", "showServerLog", "revokeServer"],
    ],
    ["server.on.start.log.revoke", ["startServer", "showServerLog"], ["startServer", "showServerLog", "revokeServer"]],
    ["server.on", [], []],
    ["server.off", [], []],
  ])("of %s has those commands and no others", (viewItem, inline, menu) => {
    expect(commands(viewItem, /^inline/)).toEqual(inline);
    expect(commands(viewItem, /^[2-5]_/)).toEqual(menu);
  });

  it("has an icon for each button", () => {
    const icons = new Map(
      contributes.commands.map((one: { command: string; icon?: string }) => [one.command, one.icon]),
    );
    const buttons = entries.filter(({ group, when }) => group.startsWith("inline") && when.includes("server"));
    expect(buttons).toHaveLength(5);
    expect(buttons.filter(({ command }) => icons.get(command) === undefined)).toEqual([]);
  });
});

describe("the window", () => {
  const place = { folder: FOLDER, home: HOME };

  it("says how many servers are ready, how many wait, and what they cost", () => {
    expect(serverFacts(undefined)).toEqual([]);
    expect(serverFacts(result())).toEqual([]);
    expect(serverFacts(result(server("off", "disabled")))).toEqual([]);
    const states = result(server("a", "ready", READY), server("b", "unapproved"), server("c", "failed", FAILED));
    expect(serverFacts(states)).toEqual([
      {
        label: "MCP servers",
        text: "1 of 3 ready · 1 not approved · ≈ 1,234 tokens",
        tone: "plain",
        action: { id: "showServers", label: "Show" },
      },
    ]);
  });

  it("has a remark for each server that cannot be used, with its line and what helps", () => {
    const source = { label: "mcp.json:3", uri: FILE, line: 2 };
    expect(serverRemarks(result(server("a", "failed", FAILED), server("b", "needs-auth")), place)).toEqual([
      {
        tone: "error",
        text: "MCP server a: failed: ~/bin/server ended with 3.",
        source,
        action: { id: "showServerLog", label: "Show Log", server: "a" },
      },
      {
        tone: "warning",
        text: "MCP server b: somebody has to sign in.",
        source,
        action: { id: "loginServer", label: "Sign In…", server: "b" },
      },
    ]);
    const [changed, unlogged] = serverRemarks(result(server("c", "changed"), server("d", "failed")), place);
    expect([changed?.action?.id, unlogged?.action?.id]).toEqual(["approveServer", "startServer"]);
  });

  it("has one remark for many, and none for one that is as the user left it", () => {
    const calm = ["disabled", "untrusted", "unapproved", "stopped", "starting", "ready"].map((state) =>
      server(state, state),
    );
    const { hash: _, ...unstartable } = server("gone", "failed", { error: "Its program is not installed." });
    expect(serverRemarks(result(...calm, unstartable), place)).toEqual([]);
    const many = ["changed", "failed", "needs-auth"].map((state) => server(state, state));
    expect(serverRemarks(result(...calm, ...many), place)).toEqual([
      {
        tone: "error",
        text: "3 MCP servers cannot be used: changed, failed, needs-auth.",
        action: { id: "showServers", label: "Show" },
      },
    ]);
    expect(serverRemarks(undefined, place)).toEqual([]);
  });
});
