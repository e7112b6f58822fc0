/** The tests' own way to the daemon: what it says to another client than the extension, and what the command line prints. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Requests } from "../../../src/protocol/index.ts";
import { end } from "./processes.ts";
import type { World } from "./world.ts";

/** What the command prints. Rejects when it ends with another code than 0. */
export async function nexus(world: World, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(world.nexus, args, { env: { ...world.env }, maxBuffer: 64 << 20 })).stdout;
}

export interface Shown {
  readonly role: string;
  readonly content: unknown;
}

/** The messages of a session as the ledger has them; none where there is no such session. */
export async function ledger(world: World, folder: string, session = "main"): Promise<Shown[]> {
  try {
    const printed = JSON.parse(await nexus(world, "sessions", "show", session, "--json", "--folder", folder));
    return (printed as { turns: { messages: Shown[] }[] }).turns.flatMap((turn) => turn.messages);
  } catch {
    return [];
  }
}

/** A daemon of the tests' own, beside the shared one: over the same ledger and configuration as the extension's. */
export class Daemon {
  readonly #child: ChildProcess;
  readonly #open = new Map<number, { resolve(value: unknown): void; reject(reason: Error): void }>();
  #id = 0;
  #rest: Buffer = Buffer.alloc(0);

  private constructor(world: World) {
    this.#child = spawn(world.nexus, ["serve"], { env: { ...world.env }, stdio: ["pipe", "pipe", "ignore"] });
    this.#child.stdout?.on("data", (data: Buffer) => this.#read(data));
    this.#child.on("exit", () => this.#fail("the tests' own daemon has ended"));
  }

  static async start(world: World, ...folders: string[]): Promise<Daemon> {
    const daemon = new Daemon(world);
    await daemon.#send("initialize", {
      processId: process.pid,
      rootUri: null,
      capabilities: { workspace: { workspaceFolders: true } },
      initializationOptions: { trusted: true }, // as the window's, whose figures are compared
      workspaceFolders: folders.map((folder) => ({ uri: uriOf(folder), name: folder })),
    });
    daemon.#write({ method: "initialized", params: {} });
    return daemon;
  }

  request<M extends keyof Requests>(method: M, params: Requests[M]["params"]): Promise<Requests[M]["result"]> {
    return this.#send(method, params) as Promise<Requests[M]["result"]>;
  }

  async stop(): Promise<void> {
    if (this.#child.pid !== undefined) await end(this.#child.pid);
  }

  #send(method: string, params: unknown): Promise<unknown> {
    this.#id += 1;
    const id = this.#id;
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject });
      this.#write({ id, method, params });
    });
  }

  #write(message: object): void {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.#child.stdin?.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.#child.stdin?.write(body);
  }

  #read(data: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, data]);
    for (;;) {
      const head = this.#rest.indexOf("\r\n\r\n");
      const length = Number(/Content-Length: (\d+)/i.exec(this.#rest.subarray(0, Math.max(head, 0)).toString())?.[1]);
      if (head < 0 || this.#rest.length < head + 4 + length) return;
      const body = this.#rest.subarray(head + 4, head + 4 + length).toString();
      this.#rest = this.#rest.subarray(head + 4 + length);
      this.#take(JSON.parse(body));
    }
  }

  #take(message: { id?: number; method?: string; result?: unknown; error?: { message: string } }): void {
    if (message.id === undefined) return;
    if (message.method !== undefined) {
      this.#write({ id: message.id, result: null });
      return;
    }
    const waiting = this.#open.get(message.id);
    this.#open.delete(message.id);
    if (message.error) waiting?.reject(new Error(message.error.message));
    else waiting?.resolve(message.result);
  }

  #fail(why: string): void {
    for (const waiting of this.#open.values()) waiting.reject(new Error(why));
    this.#open.clear();
  }
}

/** What the extension asks figures for where the model can call tools and no file is attached. */
export const NEXT_TURN = { options: { memoryTools: true, skillTools: true, mcpTools: true } } as const;

export function uriOf(path: string): string {
  return pathToFileURL(path).toString();
}
