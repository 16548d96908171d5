import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import { Cell } from './protocol';
import { sha256 } from './sha256';
import { IEditor } from './tokens';

/** The notebook's shared document, as far as it is changed here. */
type Shared = NonNullable<NotebookPanel['content']['model']>['sharedModel'];

/** Changes the notebook of one kernel, through the document that all its editors share. */
export class NotebookEditor implements IEditor {
  /**
   * @param _tracker The open notebooks.
   * @param _kernelId Whose notebook is changed.
   * @param _trans Words for why nothing was changed, which the kernel shows.
   */
  constructor(
    private readonly _tracker: INotebookTracker,
    private readonly _kernelId: string,
    private readonly _trans: TranslationBundle
  ) {}

  insert(cellId: string | null, cells: readonly Cell[]): string {
    const panel = this._panel();
    const model = panel?.content.model;
    if (!panel || !model) {
      return this._trans.__('the notebook is not open');
    }
    if (model.readOnly) {
      return this._trans.__('the notebook is read-only');
    }
    const above = cellId === null ? panel.content.activeCellIndex : indexOf(model.sharedModel, cellId);
    if (above === null) {
      return this._trans.__('the cell is gone');
    }
    insertBelow(model.sharedModel, above, cells);
    return '';
  }

  replace(cellId: string, digest: string, source: string): string {
    const model = this._panel()?.content.model;
    if (!model) {
      return this._trans.__('the notebook is not open');
    }
    const at = indexOf(model.sharedModel, cellId);
    const cell = at === null ? null : model.sharedModel.getCell(at);
    if (!cell) {
      return this._trans.__('the cell is gone');
    }
    if (model.readOnly || cell.getMetadata('editable') === false) {
      return this._trans.__('the cell is read-only');
    }
    if (sha256(cell.getSource()) !== digest) {
      return this._trans.__('the cell was changed meanwhile');
    }
    const { start, end, text } = change(cell.getSource(), source);
    inOneStep(model.sharedModel.disableDocumentWideUndoRedo ? cell : model.sharedModel, () =>
      cell.updateSource(start, end, text)
    );
    return '';
  }

  private _panel(): NotebookPanel | null {
    return panelOf(this._tracker, this._kernelId);
  }
}

/** The notebook that a kernel runs, the one in front before others. */
export function panelOf(tracker: INotebookTracker, kernelId: string): NotebookPanel | null {
  const runs = (panel: NotebookPanel): boolean => panel.sessionContext.session?.kernel?.id === kernelId;
  return tracker.currentWidget && runs(tracker.currentWidget) ? tracker.currentWidget : (tracker.find(runs) ?? null);
}

/** Put cells below one, undone in one step. */
export function insertBelow(shared: Shared, above: number, cells: readonly Cell[]): void {
  const made = cells.map(cell => ({ cell_type: cell.kind, source: cell.source, metadata: {} }));
  inOneStep(shared, () => shared.insertCells(above + 1, made));
}

/** Change something such that undoing takes back this, and not what was typed just before or after it. */
function inOneStep(changed: object, change: () => void): void {
  const manager = 'undoManager' in changed ? (changed.undoManager as IUndoManager | null) : null;
  manager?.stopCapturing();
  change();
  manager?.stopCapturing();
}

/** Of Yjs: without this it takes edits half a second apart for one. */
interface IUndoManager {
  stopCapturing(): void;
}

/** Where a cell is; null when it is gone. */
export function indexOf(shared: Shared, cellId: string): number | null {
  const at = shared.cells.findIndex(cell => cell.getId() === cellId);
  return at < 0 ? null : at;
}

/** The least that must be replaced to make one text of another, so that cursors elsewhere stay. */
export function change(before: string, after: string): { start: number; end: number; text: string } {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) {
    start += 1;
  }
  let same = 0;
  while (same < shorter - start && before[before.length - 1 - same] === after[after.length - 1 - same]) {
    same += 1;
  }
  return { start, end: before.length - same, text: after.slice(start, after.length - same) };
}
