import {
  HighlightStyle,
  Language,
  language,
  StreamLanguage,
  StringStream,
  syntaxHighlighting
} from '@codemirror/language';
import { EditorState, Extension, Facet, Prec, RangeSetBuilder, StateEffect, StateField, Text } from '@codemirror/state';
import { Decoration, DecorationSet, EditorView, ViewPlugin, ViewUpdate } from '@codemirror/view';
import { Tag } from '@lezer/highlight';
import { IState, Kind, MAGIC, next, start } from './scan';

// Tags of our own: a theme colours what it knows, and would colour headings and strings of a prompt as code.
const TAGS: Readonly<Record<Kind, Tag>> = {
  magic: Tag.define(),
  option: Tag.define(),
  value: Tag.define(),
  heading: Tag.define(),
  strong: Tag.define(),
  emphasis: Tag.define(),
  code: Tag.define(),
  fence: Tag.define(),
  mark: Tag.define(),
  quote: Tag.define(),
  link: Tag.define(),
  name: Tag.define(),
  file: Tag.define()
};

/** The class of a piece in the page, `larik-prose-name` and so on. */
function classOf(kind: Kind): string {
  return `larik-prose-${kind}`;
}

const styles = HighlightStyle.define(
  (Object.keys(TAGS) as Kind[]).map(kind => ({ tag: TAGS[kind], class: classOf(kind) }))
);

const prose: Language = StreamLanguage.define<IState>({
  name: 'larik',
  startState: start,
  copyState: state => ({ ...state }),
  token: (stream: StringStream, state) => next(stream, state),
  blankLine: state => {
    state.inHeading = false;
  },
  tokenTable: { ...TAGS },
  // An apostrophe is no quote here.
  languageData: { closeBrackets: { brackets: ['(', '[', '{', '`'] } }
});

/** What an editor has that has no language yet: where one may come, CodeMirror wants one from the start. */
const plain: Language = StreamLanguage.define<null>({
  name: 'larik-none',
  startState: () => null,
  token: (stream: StringStream) => {
    stream.skipToEnd();
    return null;
  }
});

/** Tells editors that what they show may read otherwise now. */
export const refresh = StateEffect.define<null>();

/**
 * How much of an editor is prose.
 *
 * `cell`: all of it, since it begins with `%%larik` or is one `%larik` line. `lines`: the `%larik` lines in it, if any.
 */
type Extent = 'none' | 'lines' | 'cell';

/** Whether a cell of this text is prose from its first word on. */
export function isProse(text: Text): boolean {
  let first = 1;
  while (first < text.lines && text.line(first).text.trim() === '') {
    first += 1;
  }
  const line = text.line(first).text;
  if (!MAGIC.test(line)) {
    return false;
  }
  return line.trimStart().startsWith('%%') || isBlankBelow(text, first);
}

function isBlankBelow(text: Text, line: number): boolean {
  for (let below = line + 1; below <= text.lines; below += 1) {
    if (text.line(below).text.trim() !== '') {
      return false;
    }
  }
  return true;
}

/**
 * Let `%%larik` cells and `%larik` lines read as prose; other text is left alone.
 *
 * @param isOn Whether the editor is one of code, and the user wants it; asked again when the document changes.
 * @param label Says what is written in such a cell, to those who cannot see it.
 */
export function proseHighlighting(isOn: () => boolean, label: string): Extension {
  const extentOf = (state: EditorState): Extent => (!isOn() ? 'none' : isProse(state.doc) ? 'cell' : 'lines');
  const extent = StateField.define<Extent>({
    create: extentOf,
    update: (before, change) =>
      change.docChanged || change.reconfigured || change.effects.some(effect => effect.is(refresh))
        ? extentOf(change.state)
        : before
  });
  const whole = <T>(facet: Facet<T, unknown>, value: T): Extension =>
    facet.computeN([extent], state => (state.field(extent) === 'cell' ? [value] : []));
  return [
    extent,
    // Before the cell's own language, which would see mistakes in every sentence.
    Prec.highest(whole(language, prose)),
    Prec.lowest(language.of(plain)),
    whole(EditorView.contentAttributes, { class: 'cm-lineWrapping larik-prose', 'aria-label': label }),
    syntaxHighlighting(styles),
    ViewPlugin.define(view => new Lines(view, extent), { decorations: lines => lines.decorations })
  ];
}

/** Marks the `%larik` lines among code, those in sight only. */
class Lines {
  decorations: DecorationSet;

  constructor(
    view: EditorView,
    private readonly _extent: StateField<Extent>
  ) {
    this.decorations = this._marked(view);
  }

  update(update: ViewUpdate): void {
    const { _extent } = this;
    if (
      update.docChanged ||
      update.viewportChanged ||
      update.startState.field(_extent) !== update.state.field(_extent)
    ) {
      this.decorations = this._marked(update.view);
    }
  }

  private _marked(view: EditorView): DecorationSet {
    if (view.state.field(this._extent) !== 'lines') {
      return Decoration.none;
    }
    const builder = new RangeSetBuilder<Decoration>();
    for (const { from, to } of view.visibleRanges) {
      for (let at = from; at <= to; ) {
        const line = view.state.doc.lineAt(at);
        if (MAGIC.test(line.text) && !line.text.trimStart().startsWith('%%')) {
          markLine(builder, line.from, line.text);
        }
        at = line.to + 1;
      }
    }
    return builder.finish();
  }
}

const LINE = Decoration.line({ class: 'larik-line' });

function markLine(builder: RangeSetBuilder<Decoration>, from: number, text: string): void {
  builder.add(from, from, LINE);
  const stream = new StringStream(text, 4, 2);
  const state = start();
  while (!stream.eol()) {
    stream.start = stream.pos;
    const kind = next(stream, state);
    if (kind !== null) {
      builder.add(from + stream.start, from + stream.pos, Decoration.mark({ class: classOf(kind) }));
    }
  }
}
