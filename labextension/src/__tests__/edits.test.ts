import { YNotebook } from '@jupyter/ydoc';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { beforeEach, describe, expect, it } from 'vitest';
import { change, indexOf, NotebookEditor } from '../edits';
import { sha256 } from '../sha256';
import { trans } from './fakes';

const TEXTS = ['', 'abc', 'x = 1\n', 'ü €', '😀', 'a'.repeat(55), 'a'.repeat(56), 'a'.repeat(64), 'long\n'.repeat(5000)];

describe('sha256', () => {
  it.each(TEXTS)('agrees with the library of the platform', async text => {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
    const hex = Array.from(new Uint8Array(digest), byte => byte.toString(16).padStart(2, '0')).join('');
    expect(sha256(text)).toBe(hex);
  });
});

describe('change', () => {
  it.each([
    ['', ''],
    ['', 'new'],
    ['old', ''],
    ['same', 'same'],
    ['aaa', 'aaaa'],
    ['print(totl)', 'print(total)'],
    ['abcabc', 'abc']
  ])('makes %j into %j', (before, after) => {
    const { start, end, text } = change(before, after);
    expect(before.slice(0, start) + text + before.slice(end)).toBe(after);
  });

  it('touches no more than differs', () => {
    expect(change('print(totl)', 'print(total)')).toEqual({ start: 9, end: 9, text: 'a' });
  });
});

describe('NotebookEditor', () => {
  let shared: YNotebook;
  let editor: NotebookEditor;
  let model: { sharedModel: YNotebook; readOnly: boolean };

  beforeEach(() => {
    shared = new YNotebook({ disableDocumentWideUndoRedo: false });
    shared.insertCells(0, [
      { cell_type: 'code', source: 'y = 1', id: 'one' },
      { cell_type: 'code', source: 'z = 2', id: 'two' }
    ]);
    shared.clearUndoHistory();
    model = { sharedModel: shared, readOnly: false };
    const panel = {
      content: { model, activeCellIndex: 1 },
      sessionContext: { session: { kernel: { id: 'kernel-1' } } }
    } as unknown as NotebookPanel;
    const tracker = {
      currentWidget: null,
      find: (test: (panel: NotebookPanel) => boolean) => (test(panel) ? panel : undefined)
    } as unknown as INotebookTracker;
    editor = new NotebookEditor(tracker, 'kernel-1', trans);
    const other = new NotebookEditor(tracker, 'kernel-2', trans);
    expect(other.insert(null, [])).toBe('the notebook is not open');
  });

  const sources = (): string[] => shared.cells.map(cell => cell.getSource());

  it('puts cells below one, or below the active one, and one undo takes them back', () => {
    const cells = [
      { kind: 'code', source: 'a' },
      { kind: 'markdown', source: 'b' }
    ] as const;
    expect(editor.insert('one', cells)).toBe('');
    expect(sources()).toEqual(['y = 1', 'a', 'b', 'z = 2']);
    expect(shared.getCell(2).cell_type).toBe('markdown');
    shared.undo();
    expect(sources()).toEqual(['y = 1', 'z = 2']);

    editor.insert(null, [{ kind: 'code', source: 'end' }]);
    expect(sources()).toEqual(['y = 1', 'z = 2', 'end']);
  });

  it('does not take back what was typed just before and after', () => {
    shared.getCell(0).setSource('y = 1 + 1');
    editor.insert('one', [{ kind: 'code', source: 'a' }]);
    shared.getCell(0).setSource('y = 3');

    shared.undo();
    expect(sources()).toEqual(['y = 1 + 1', 'a', 'z = 2']);
    shared.undo();
    expect(sources()).toEqual(['y = 1 + 1', 'z = 2']);
  });

  it('replaces a cell that reads as it did, undone in one step', () => {
    shared.getCell(1).setSource('z = 20');
    expect(editor.replace('two', sha256('z = 20'), 'q = 30')).toBe('');
    expect(sources()).toEqual(['y = 1', 'q = 30']);
    shared.undo();
    expect(sources()).toEqual(['y = 1', 'z = 20']);
  });

  it.each<[string, () => void, string]>([
    ['was changed', () => shared.getCell(1).setSource('z = 3'), 'the cell was changed meanwhile'],
    ['is gone', () => shared.deleteCell(1), 'the cell is gone'],
    ['may not be edited', () => shared.getCell(1).setMetadata('editable', false), 'the cell is read-only'],
    ['is in a read-only notebook', () => (model.readOnly = true), 'the cell is read-only']
  ])('leaves a cell alone that %s', (_, happens, reason) => {
    happens();
    const before = sources();
    expect(editor.replace('two', sha256('z = 2'), 'new')).toBe(reason);
    expect(sources()).toEqual(before);
  });

  it('finds a cell where it was moved to', () => {
    shared.moveCell(1, 0);
    expect(editor.replace('two', sha256('z = 2'), 'new')).toBe('');
    expect(sources()).toEqual(['new', 'y = 1']);
    expect(indexOf(shared, 'two')).toBe(0);
  });

  it('puts nothing below a cell that is gone, or into a read-only notebook', () => {
    expect(editor.insert('three', [{ kind: 'code', source: 'a' }])).toBe('the cell is gone');
    model.readOnly = true;
    expect(editor.insert('one', [{ kind: 'code', source: 'a' }])).toBe('the notebook is read-only');
    expect(sources()).toEqual(['y = 1', 'z = 2']);
  });
});
