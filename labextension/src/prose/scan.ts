/**
 * What is what in a `%%larik` cell, a line at a time.
 *
 * Markdown as it is written in prompts: what a reader sees at a glance, not every corner of the grammar. A line is read
 * once, from left to right, with what the lines above left open; so an edit costs the lines below it at most.
 */

/** How a piece of the text reads. */
export type Kind =
  | 'magic'
  | 'option'
  | 'value'
  | 'heading'
  | 'strong'
  | 'emphasis'
  | 'code'
  | 'fence'
  | 'mark'
  | 'quote'
  | 'link'
  | 'name'
  | 'file';

/** What earlier lines leave open. */
export interface IState {
  /** The magic line is over. */
  inBody: boolean;
  /** The marks that opened a fenced block, empty outside of one. */
  fence: string;
  /** The line is a heading. */
  inHeading: boolean;
}

/** The reader's place in a line, the part of CodeMirror's `StringStream` that is used. */
export interface IStream {
  readonly string: string;
  pos: number;
  sol(): boolean;
  eol(): boolean;
  next(): string | void;
  skipToEnd(): void;
  match(pattern: RegExp, consume?: boolean): boolean | RegExpMatchArray | null;
}

/** The magic ahead of a cell that is prose, or of a line that is. */
export const MAGIC = /^\s*%%?larik(?=\s|$)/;

// A value named in braces, as the kernel finds it: `{df}`, `{df.shape[0]}`, `{row["a"]}`, `{df!stats}`; a doubled brace is text.
const NAME = /^\{[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*|\[-?\d+\]|\['[^'\\]*'\]|\["[^"\\]*"\])*(?:![a-z]+)?\}(?!\})/u;
// A file named in the text: `@data.csv`, `@src/io.py`, `@"my notes.md"`; an address such as a@b is none.
const FILE = /^@(?:"[^"]+"|'[^']+'|[\p{L}\p{N}_~./-]*[\p{L}\p{N}_~/-])/u;
const OPTION = /^--?[A-Za-z][\w-]*/;
const VALUE = /^(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'])+/;
const FENCE = /^\s{0,3}(`{3,}|~{3,})/;
const HEADING = /^#{1,6}(?=\s)/;
const QUOTE = /^>\s?/;
const ITEM = /^(?:[-*+]|\d{1,9}[.)])(?=\s)/;
const RULE = /^(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const STRONG = /^(\*\*|__)(?=\S)(?:(?!\1).)*\S\1/;
const EMPHASIS = /^(?:\*(?=[^\s*])[^*]*[^\s*]\*|\*[^\s*]\*|_(?=[^\s_])[^_]*[^\s_]_(?!\w)|_[^\s_]_(?!\w))/;
const CODE = /^(`+)(?!`).*?[^`]\1(?!`)/;
const LINK = /^!?\[[^\]]*\]\([^)\s]*(?:\s"[^"]*")?\)/;
const ADDRESS = /^(?:https?:\/\/|mailto:)[^\s<>)\]]+/;
const WORD = /^[\p{L}\p{N}]+/u;

export function start(): IState {
  return { inBody: false, fence: '', inHeading: false };
}

/** Read the next piece; null for plain text. Always goes on by a character at least. */
export function next(stream: IStream, state: IState): Kind | null {
  if (stream.sol()) {
    state.inHeading = false;
  }
  return state.inBody ? body(stream, state) : magicLine(stream, state);
}

function magicLine(stream: IStream, state: IState): Kind | null {
  const kind = onMagicLine(stream, state);
  // A blank line above the magic is allowed, and leaves it to come.
  if (stream.eol() && stream.string.trim() !== '') {
    state.inBody = true;
  }
  return kind;
}

function onMagicLine(stream: IStream, state: IState): Kind | null {
  if (stream.sol() && stream.match(MAGIC)) {
    return 'magic';
  }
  if (stream.match(/^\s+/)) {
    return null;
  }
  return optionOrText(stream, state);
}

/** Options come first; what follows them is text. */
function optionOrText(stream: IStream, state: IState): Kind | null {
  const before = stream.string.slice(0, stream.pos);
  if (areOptions(before)) {
    if (stream.match(OPTION)) {
      return 'option';
    }
    if (/-[A-Za-z][\w-]*[\s=]+$/.test(before) && stream.match(VALUE)) {
      return 'value';
    }
  }
  return inline(stream, state);
}

function areOptions(before: string): boolean {
  return /^\s*%%?larik(?:\s+--?[A-Za-z][\w-]*(?:(?:=|\s+)(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'-][^\s"']*))?)*(?:\s+|=)$/.test(before);
}

function body(stream: IStream, state: IState): Kind | null {
  if (state.fence) {
    return inFence(stream, state);
  }
  if (stream.sol()) {
    const opened = stream.match(FENCE, false);
    if (opened && typeof opened === 'object') {
      state.fence = opened[1] ?? '';
      stream.skipToEnd();
      return 'fence';
    }
  }
  if (stream.string.slice(0, stream.pos).trim() === '' || /^\s*>\s?$/.test(stream.string.slice(0, stream.pos))) {
    const kind = lineStart(stream, state);
    if (kind !== undefined) {
      return kind;
    }
  }
  return inline(stream, state);
}

function inFence(stream: IStream, state: IState): Kind {
  const text = stream.string.trim();
  stream.skipToEnd();
  if (text.startsWith(state.fence) && text === (text[0] ?? '').repeat(text.length)) {
    state.fence = '';
    return 'fence';
  }
  return 'code';
}

/** What only stands at the beginning of a line; undefined when nothing of that does. */
function lineStart(stream: IStream, state: IState): Kind | null | undefined {
  if (stream.match(/^\s+/)) {
    return null;
  }
  if (stream.match(HEADING)) {
    state.inHeading = true;
    return 'mark';
  }
  if (stream.match(QUOTE)) {
    return 'quote';
  }
  if (stream.match(RULE) || stream.match(ITEM)) {
    return 'mark';
  }
  return undefined;
}

const INLINE: readonly (readonly [RegExp, Kind])[] = [
  [NAME, 'name'],
  [CODE, 'code'],
  [STRONG, 'strong'],
  [EMPHASIS, 'emphasis'],
  [LINK, 'link'],
  [ADDRESS, 'link']
];

function inline(stream: IStream, state: IState): Kind | null {
  const before = stream.string[stream.pos - 1] ?? ' ';
  if (!/[\p{L}\p{N}_@{]/u.test(before) && stream.match(FILE)) {
    return 'file';
  }
  for (const [pattern, kind] of INLINE) {
    if (before !== '{' && stream.match(pattern)) {
      return kind;
    }
  }
  if (!stream.match(WORD)) {
    stream.next();
  }
  return state.inHeading ? 'heading' : null;
}
