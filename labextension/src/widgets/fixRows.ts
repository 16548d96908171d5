import { Cell, CodeCell } from '@jupyterlab/cells';
import { INotebookTracker, Notebook, NotebookPanel } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import { ILarikKernel, ILarikSettings } from '../tokens';
import { FixRow } from './fixRow';

/** Gives every code cell of every notebook its button, which shows where the cell failed. */
export class FixRows {
  constructor(
    tracker: INotebookTracker,
    private readonly _kernel: ILarikKernel,
    private readonly _settings: ILarikSettings,
    private readonly _trans: TranslationBundle,
    private readonly _fix: (panel: NotebookPanel, cell: CodeCell) => void
  ) {
    tracker.forEach(panel => this._follow(panel));
    tracker.widgetAdded.connect((_, panel) => this._follow(panel), this);
    _kernel.statusChanged.connect(this._draw, this);
    _settings.changed.connect(this._draw, this);
  }

  private _follow(panel: NotebookPanel): void {
    const notebook: Notebook = panel.content;
    const visit = (): void => notebook.widgets.forEach(cell => this._give(panel, cell));
    const follow = (): void => {
      notebook.model?.cells.changed.connect(visit, this);
      visit();
    };
    notebook.modelChanged.connect(follow, this);
    follow();
  }

  private _give(panel: NotebookPanel, cell: Cell): void {
    if (!isCode(cell) || this._rows.has(cell)) {
      return;
    }
    const isOn = (): boolean => this._settings.buttons && this._isThere(panel);
    const row = new FixRow(cell, isOn, this._trans, () => this._fix(panel, cell));
    this._rows.set(cell, row);
    row.disposed.connect(() => this._rows.delete(cell), this);
  }

  private _isThere(panel: NotebookPanel): boolean {
    return Boolean(this._kernel.of(panel.sessionContext.session?.kernel?.id)?.status);
  }

  private _draw(): void {
    this._rows.forEach(row => row.draw());
  }

  private readonly _rows = new Map<CodeCell, FixRow>();
}

function isCode(cell: Cell): cell is CodeCell {
  return cell.model.type === 'code';
}
