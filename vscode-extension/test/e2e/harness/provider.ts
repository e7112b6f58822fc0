/** A provider on 127.0.0.1 that streams Anthropic's messages, as its documentation shows them. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A text or a call of an answer; `endless`: the answer never ends. */
export type Piece = string | { tool: string; input: object } | "endless";

const MESSAGE = { id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4-6", content: [] };

export class Provider {
  /** The bodies that came. */
  readonly requests: { messages: unknown[]; tools?: { name: string }[] }[] = [];
  /** Each request takes the next one. */
  answers: Piece[][] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, response) => {
      this.requests.push(JSON.parse(await text(request)));
      response.writeHead(200, { "content-type": "text/event-stream" });
      stream(response, this.answers.shift() ?? ["no more"]);
    });
  }

  static async start(): Promise<Provider> {
    const provider = new Provider();
    await new Promise<void>((resolve) => provider.#server.listen(0, "127.0.0.1", resolve));
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

function stream(response: ServerResponse, answer: readonly Piece[]): void {
  const send = (type: string, more: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
  send("message_start", { message: { ...MESSAGE, usage: { input_tokens: 100, output_tokens: 1 } } });
  for (const [index, piece] of answer.entries()) {
    if (piece === "endless") return;
    const isText = typeof piece === "string";
    const block = isText
      ? { type: "text", text: "" }
      : { type: "tool_use", id: `toolu_${Date.now()}`, name: piece.tool, input: {} };
    const delta = isText
      ? { type: "text_delta", text: piece }
      : { type: "input_json_delta", partial_json: JSON.stringify(piece.input) };
    send("content_block_start", { index, content_block: block });
    send("content_block_delta", { index, delta });
    send("content_block_stop", { index });
  }
  const reason = answer.some((piece) => typeof piece !== "string") ? "tool_use" : "end_turn";
  send("message_delta", { delta: { stop_reason: reason }, usage: { output_tokens: 20 } });
  send("message_stop", {});
  response.end();
}
