/** What the language client is to the rest of the extension. `client.ts`, a bundle of its own, makes it. */
import type * as vscode from "vscode";
import type { ModelCompleteParams, ModelCompleteResult } from "../protocol";
import type { Launch } from "./launch";

export interface ConnectOptions {
  readonly launch: Launch;
  readonly output: vscode.LogOutputChannel;
  readonly trace: vscode.LogOutputChannel;
  readonly trusted: boolean;
  /** Refuses a server by throwing; called once, with the number of its protocol. */
  readonly checkProtocol: (protocol: number) => void;
  readonly notified: (method: string, params: unknown) => void;
  readonly complete: (params: ModelCompleteParams, token: vscode.CancellationToken) => Promise<ModelCompleteResult>;
  /** The server ended although nobody asked it to; once, and only after `connect` was resolved. */
  readonly ended: () => void;
}

export interface Connection {
  request(method: string, params: unknown, token?: vscode.CancellationToken): Promise<unknown>;
  /** Ends the server. Never rejects. */
  stop(): Promise<void>;
}

/** Starts the server; resolves when it can be asked. */
export type Connect = (options: ConnectOptions) => Promise<Connection>;
