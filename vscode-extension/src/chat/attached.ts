/**
 * What the user attached to a message → text of the message. No VS Code here. Rules:
 *
 * 1. The text stands before the question, each file under its path, in a fence longer than any in it.
 * 2. All of it together has at most the `room` that is given, in characters; what is longer is cut at a line's
 *    end, and says so in the text and to the user.
 */

export interface Attachment {
  /** Path and lines, or what the editor calls it. */
  title: string;
  /** The fence's language; may be empty. */
  language: string;
  text: string;
}

export interface Put {
  text: string;
  /** Titles of what was cut, and of what found no room at all. */
  cut: string[];
}

/** Least characters that are worth sending of a file. */
const LEAST = 200;

/** The message's text with what is attached, in at most `room` characters for the attachments. */
export function withAttachments(prompt: string, attachments: readonly Attachment[], room: number): Put {
  const cut: string[] = [];
  const blocks: string[] = [];
  let left = room;
  for (const attachment of attachments) {
    const text = attachment.text.length > left ? shortened(attachment.text, left) : attachment.text;
    if (text !== attachment.text) {
      cut.push(attachment.title);
    }
    if (text !== "" || attachment.text === "") {
      blocks.push(block({ ...attachment, text }));
      left -= text.length;
    }
  }
  return { text: [...blocks, prompt].filter((part) => part !== "").join("\n\n"), cut };
}

function block({ title, language, text }: Attachment): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/gu)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `\`${title.replaceAll("`", "'")}\`:\n\n${fence}${language}\n${text.replace(/\n$/u, "")}\n${fence}`;
}

function shortened(text: string, room: number): string {
  if (room < LEAST) {
    return "";
  }
  const head = text.slice(0, room);
  const end = head.lastIndexOf("\n");
  const kept = end > room / 2 ? head.slice(0, end) : head;
  return `${kept}\n[… ${text.length - kept.length} more characters are left out]`;
}
