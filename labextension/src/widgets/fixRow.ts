import { CodeCell } from '@jupyterlab/cells';
import { TranslationBundle } from '@jupyterlab/translation';
import { PanelLayout, Widget } from '@lumino/widgets';

/** A magic of ours ahead of a cell. */
const OURS = /^\s*%%?(?:larik|model|routing|effort|model_settings)(?=\s|$)/;

/** Whether a cell failed in a way that a model can help with. */
export function isFixable(cell: CodeCell): boolean {
  const [first = ''] = cell.model.sharedModel.getSource().trimStart().split('\n', 1);
  // What failed in a magic of ours is told by its own line what to do.
  return !OURS.test(first) && hasFailed(cell);
}

function hasFailed(cell: CodeCell): boolean {
  const outputs = cell.outputArea.model;
  for (let at = outputs.length - 1; at >= 0; at -= 1) {
    if (outputs.get(at).type === 'error') {
      return true;
    }
  }
  return false;
}

/** The small button below the error of a cell. */
export class FixRow extends Widget {
  /**
   * @param cell Whose errors it is for.
   * @param _isOn Whether help can be had now.
   * @param trans Words.
   * @param fix Asks for help with the cell.
   */
  constructor(
    private readonly _cell: CodeCell,
    private readonly _isOn: () => boolean,
    trans: TranslationBundle,
    fix: () => void
  ) {
    super();
    this.addClass('larik-FixRow');
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'larik-FixRow-button';
    button.textContent = trans.__('Fix with Larik');
    button.title = trans.__('Ask the model what went wrong and for a corrected cell, shown before it is applied');
    button.addEventListener('click', fix);
    this.node.append(button);
    _cell.outputArea.model.changed.connect(this.draw, this);
    _cell.outputArea.model.stateChanged.connect(this.draw, this);
    _cell.disposed.connect(this.dispose, this);
    this.draw();
  }

  /** Show the button where it is of use. */
  draw(): void {
    const wanted = this._isOn() && !this._cell.outputHidden && isFixable(this._cell);
    this.setHidden(!wanted);
    if (wanted && !this._isPlaced) {
      this._isPlaced = true;
      void this._cell.ready.then(() => this._place());
    }
  }

  /** Come behind the outputs; only when first needed, since most cells never fail. */
  private _place(): void {
    const layout = this._cell.layout;
    if (!this.isDisposed && layout instanceof PanelLayout) {
      layout.insertWidget(layout.widgets.length - 1, this); // the cell's footer is last
    }
  }

  private _isPlaced = false;
}
