/**
 * The channel of the protocol's trace, governed by one setting.
 *
 * The language client traces where its channel's log level is "trace", which only the user's clicks can set. So it is
 * given a channel whose level follows `nexus.trace.server`; what it writes there is written out.
 */
import * as vscode from "vscode";

export interface Trace extends vscode.Disposable {
  readonly channel: vscode.LogOutputChannel;
}

export function traceChannel(): Trace {
  const real = vscode.window.createOutputChannel("Nexus Trace", { log: true });
  const levels = new vscode.EventEmitter<vscode.LogLevel>();
  const write = (message: string | Error, ...args: unknown[]) => real.info(String(message), ...args);
  const channel = new Proxy(real, {
    get(target, key) {
      if (key === "logLevel") return level();
      if (key === "onDidChangeLogLevel") return levels.event;
      if (key === "trace" || key === "debug") return write;
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const listening = vscode.workspace.onDidChangeConfiguration((change) => {
    if (change.affectsConfiguration("nexus.trace.server")) levels.fire(level());
  });
  return {
    channel,
    dispose() {
      for (const one of [listening, levels, real]) one.dispose();
    },
  };
}

function level(): vscode.LogLevel {
  const setting = vscode.workspace.getConfiguration("nexus").get<string>("trace.server", "off");
  return setting === "off" ? vscode.LogLevel.Info : vscode.LogLevel.Trace;
}
