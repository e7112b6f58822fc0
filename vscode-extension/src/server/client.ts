/**
 * The language client: loaded after activation, as a bundle of its own.
 *
 * 1. One client is one run of the server. It is never restarted; `daemon.ts` makes a new one.
 * 2. The daemon's requests are commands of the protocol too, `nexus.context.assemble` and the like, for programs that
 *    cannot send requests. A name that somebody else has taken is left to them: it must not stop the start.
 * 3. Code lenses outlive it: `lenses.ts` asks for them, and hears here that they are old.
 */
import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import * as vscode from "vscode";
import {
  CloseAction,
  type CloseHandlerResult,
  CodeLensRefreshRequest,
  CodeLensRequest,
  ErrorAction,
  ExecuteCommandRequest,
  LanguageClient,
  type LanguageClientOptions,
  ProgressType,
  RevealOutputChannelOn,
  State,
} from "vscode-languageclient/node";
import type { ChatItem } from "../protocol";
import type { Connect, Connection, ConnectOptions } from "./connection";
import { DOCUMENTS } from "./documents";
import { FEATURES } from "./features";
import { JsonErrors } from "./jsonErrors";
import { serveArgs } from "./launch";
import { programEnv } from "./programs";
import { protocolOf } from "./protocolCheck";
import { Stderr } from "./stderr";
import { withTrust } from "./trust";

const STOP_MS = 2_000;
const QUESTIONS = ["nexus/model/complete", "nexus/tool/approve"] as const;
const NOTIFICATIONS = [
  "nexus/context/didChange",
  "nexus/session/didChange",
  "nexus/agent/didChange",
  "nexus/assistant/didChange",
  "nexus/mcp/didChange",
];

export const connect: Connect = async (options) => {
  let ready = false;
  let stopping = false;
  const jsonErrors = new JsonErrors();
  const stderr = new Stderr();
  const client = new LanguageClient("nexus", "Nexus", executable(options), clientOptions(options, jsonErrors, stderr));
  const offered = vscode.Disposable.from(offerCommands(client, options.output), jsonErrors);
  client.getFeature(CodeLensRequest.method).initialize = () => {
    client.onRequest(CodeLensRefreshRequest.type, () => options.notified(CodeLensRefreshRequest.method, undefined));
  };
  client.registerFeature({
    fillClientCapabilities(capabilities) {
      // without the protocol's number: this client refuses a server of another one, which need not warn besides
      capabilities.experimental = {
        ...capabilities.experimental,
        nexus: { modelComplete: true, assistantSessions: true },
      };
    },
    initialize: () => undefined,
    getState: () => ({ kind: "static" }),
    clear: () => undefined,
  });
  for (const method of QUESTIONS)
    client.onRequest(method, (params: unknown, token: vscode.CancellationToken) =>
      options.asked(method, params, token),
    );
  for (const method of NOTIFICATIONS) client.onNotification(method, (params) => options.notified(method, params));
  client.onDidChangeState(({ newState }) => {
    if (newState === State.Stopped && ready && !stopping) {
      ready = false;
      offered.dispose();
      void client.dispose().catch(() => undefined);
      options.ended();
    }
  });
  try {
    await client.start();
    options.checkProtocol(protocolOf(client.initializeResult?.capabilities ?? {}));
  } catch (error) {
    offered.dispose();
    await client.dispose(STOP_MS).catch(() => undefined);
    throw await stderr.explain(error);
  }
  ready = true;
  return connection(client, () => {
    stopping = true;
    offered.dispose();
  });
};

function connection(client: LanguageClient, stopping: () => void): Connection {
  return {
    async request(method, params, token, show) {
      const send = (all: unknown) => (token ? client.sendRequest(method, all, token) : client.sendRequest(method, all));
      if (show === undefined) return await send(params);
      const partialResultToken = randomUUID();
      const listening = client.onProgress(new ProgressType<readonly ChatItem[]>(), partialResultToken, show);
      try {
        return await send({ ...(params as object), partialResultToken });
      } finally {
        listening.dispose();
      }
    },
    async stop() {
      stopping();
      await client.dispose(STOP_MS).catch(() => undefined);
    },
  };
}

/** The protocol's own commands as commands of the editor, while this client lives. */
function offerCommands(client: LanguageClient, output: vscode.LogOutputChannel): vscode.Disposable {
  const offered: vscode.Disposable[] = [];
  client.getFeature(ExecuteCommandRequest.method).initialize = ({ executeCommandProvider }) => {
    for (const command of executeCommandProvider?.commands ?? []) {
      const run = (...args: unknown[]) =>
        client.sendRequest(ExecuteCommandRequest.type, { command, arguments: args as [] });
      try {
        offered.push(vscode.commands.registerCommand(command, run));
      } catch {
        output.warn(`The command ${command} is not offered: another extension has one of that name.`);
      }
    }
  };
  return new vscode.Disposable(() => {
    for (const one of offered.splice(0)) one.dispose();
  });
}

function executable({ launch }: ConnectOptions) {
  // the home directory: a Python or a program never finds modules of the workspace beside itself
  return { command: launch.command, args: serveArgs(launch), options: { cwd: homedir(), env: programEnv() } };
}

function clientOptions(options: ConnectOptions, jsonErrors: JsonErrors, stderr: Stderr): LanguageClientOptions {
  const closed: CloseHandlerResult = {
    action: CloseAction.DoNotRestart,
    handled: true,
    message: "The server has ended.",
  };
  return {
    documentSelector: [...DOCUMENTS],
    diagnosticCollectionName: "nexus",
    outputChannel: options.output,
    traceOutputChannel: options.trace,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationOptions: { trusted: options.trusted },
    initializationFailedHandler: () => false,
    errorHandler: { error: () => ({ action: ErrorAction.Continue, handled: true }), closed: () => closed },
    stdioOptions: {
      stdout: () => undefined, // the protocol's
      stderr: (stream, output) => stderr.read(stream, (line) => output.error(line)),
    },
    markdown: { supportHtml: false },
    middleware: {
      ...FEATURES,
      handleDiagnostics: (uri, diagnostics, next) => jsonErrors.handle(uri, diagnostics, next),
      sendNotification(type, next, params) {
        const method = typeof type === "string" ? type : type.method;
        return next(type, withTrust(method, params, vscode.workspace.isTrusted));
      },
    },
  };
}
