/** What the language client is to the rest of the extension. `client.ts`, a bundle of its own, makes it. */
import type * as vscode from "vscode";
import type { ShowItems } from "../nexus";
import type { Questions } from "../protocol";
import type { Launch } from "./launch";

export interface ConnectOptions {
  readonly launch: Launch;
  readonly output: vscode.LogOutputChannel;
  readonly trace: vscode.LogOutputChannel;
  readonly trusted: boolean;
  /** Refuses a server by throwing; called once, with the number of its protocol. */
  readonly checkProtocol: (protocol: number) => void;
  readonly notified: (method: string, params: unknown) => void;
  /** Answers a question of the server. */
  readonly asked: (method: keyof Questions, params: unknown, token: vscode.CancellationToken) => Promise<unknown>;
  /** The server ended although nobody asked it to; once, and only after `connect` was resolved. */
  readonly ended: () => void;
}

export interface Connection {
  /** With `show`, the request asks for its result in parts, too. */
  request(method: string, params: unknown, token?: vscode.CancellationToken, show?: ShowItems): Promise<unknown>;
  /** Ends the server. Never rejects. */
  stop(): Promise<void>;
}

/** Starts the server; resolves when it can be asked. */
export type Connect = (options: ConnectOptions) => Promise<Connection>;
