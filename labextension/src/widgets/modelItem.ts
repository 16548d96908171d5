import { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { ILarikKernel, IStatus } from '../tokens';

/** Write USD as the kernel does (`display.usd`): to the cent, and to two figures where it is less. */
export function usd(amount: number): string {
  if (amount === 0) {
    return '$0.00';
  }
  if (amount < 0.00001) {
    return '< $0.00001';
  }
  const digits = Math.max(2, 1 - Math.floor(Math.log10(amount)));
  const text = amount.toFixed(Math.min(digits, 7));
  return '$' + (digits > 2 ? text.replace(/0$/, '') : text);
}

/** What was spent, `$0.21`; `≥ $0.21` where a part is unknown. */
export function spent(status: IStatus): string {
  return (status.atLeast ? '≥ ' : '') + usd(status.sessionUsd);
}

/** The line in the status bar, `model · $0.21/2.00`. */
export function itemText(status: IStatus, trans: TranslationBundle): string {
  const budget = status.budgetUsd === null ? '' : '/' + usd(status.budgetUsd).replace('$', '');
  const parts = [status.model === null ? trans.__('no model') : bareName(status.model), spent(status) + budget];
  if (status.level !== 'ok') {
    // In words too: colour never carries the meaning alone.
    parts.push(status.level === 'stop' ? trans.__('budget reached') : trans.__('near the budget'));
  }
  return parts.join(' · ');
}

/** What the line leaves out, for the tooltip and for those who hear it. */
export function itemTitle(status: IStatus, trans: TranslationBundle): string {
  return [
    status.model === null ? trans.__('Larik: no model is chosen') : trans.__('Larik: %1', status.model),
    status.atLeast
      ? trans.__('Spent in this session: %1, and a part whose price is unknown', usd(status.sessionUsd))
      : trans.__('Spent in this session: %1', usd(status.sessionUsd)),
    status.budgetUsd === null
      ? trans.__('No budget is set')
      : trans.__('Budget: %1', usd(status.budgetUsd)),
    ...(status.level === 'stop' ? [trans.__('The budget is reached: nothing more is sent')] : []),
    ...(status.running ? [trans.__('A turn is under way')] : []),
    trans.__('Click to choose a model')
  ].join('\n');
}

function bareName(model: string): string {
  return model.slice(model.lastIndexOf('/') + 1);
}

/** Shows the model and the cost of the current notebook's session; a click on it chooses another model. */
export class ModelItem extends Widget {
  constructor(
    private readonly _kernel: ILarikKernel,
    private readonly _trans: TranslationBundle,
    pick: () => void
  ) {
    super();
    this.addClass('larik-ModelItem');
    this._button.type = 'button';
    this._button.className = 'jp-StatusBar-TextItem'; // JupyterLab's own look and line height
    this._button.addEventListener('click', pick);
    this._dot.className = 'larik-ModelItem-dot';
    this._dot.setAttribute('aria-hidden', 'true');
    this._button.append(this._dot, this._text);
    this.node.append(this._button);
    _kernel.statusChanged.connect(this._draw, this);
    this._draw();
  }

  private _draw(): void {
    const status = this._kernel.status;
    const text = status ? itemText(status, this._trans) : '';
    const title = status ? itemTitle(status, this._trans) : '';
    this._text.textContent = text;
    this._button.title = title;
    this._button.disabled = status === null;
    this._button.setAttribute('aria-label', title.split('\n').join('. '));
    this.node.dataset.level = status?.level ?? 'ok';
    this.node.dataset.running = String(status?.running ?? false);
  }

  private readonly _button = document.createElement('button');
  private readonly _dot = document.createElement('span');
  private readonly _text = document.createElement('span');
}
