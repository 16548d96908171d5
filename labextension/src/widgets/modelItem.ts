import { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { ILarikKernel, IStatus } from '../tokens';

/** How near the budget a session is. */
export type Level = 'ok' | 'warning' | 'stop';

export function budgetLevel(status: IStatus): Level {
  const { sessionUsd, budgetUsd, warnUsd } = status;
  if (sessionUsd === null) {
    return 'ok';
  }
  if (budgetUsd !== null && sessionUsd >= budgetUsd) {
    return 'stop';
  }
  return warnUsd !== null && sessionUsd >= warnUsd ? 'warning' : 'ok';
}

/** Write USD with the digits that matter: `0`, `<0.001`, `0.004`, `0.21`, `12.50`. */
export function usd(amount: number): string {
  if (amount === 0) {
    return '0';
  }
  if (amount < 0.001) {
    return '<0.001';
  }
  return amount.toFixed(amount < 0.0995 ? 3 : 2);
}

/** The line in the status bar, `● model · $0.21/2.00`. */
export function itemText(status: IStatus, trans: TranslationBundle): string {
  const parts = [status.model === null ? trans.__('no model') : bareName(status.model)];
  if (status.sessionUsd !== null) {
    parts.push(spent(status.sessionUsd, status.budgetUsd));
  }
  const level = budgetLevel(status);
  if (level !== 'ok') {
    // In words too: colour never carries the meaning alone.
    parts.push(level === 'stop' ? trans.__('budget reached') : trans.__('near the budget'));
  }
  return (status.running ? '● ' : '') + parts.join(' · ');
}

/** What the line leaves out, for the tooltip. */
export function itemTitle(status: IStatus, trans: TranslationBundle): string {
  return [
    status.model === null ? trans.__('Larik: no model is chosen') : trans.__('Larik: %1', status.model),
    status.sessionUsd === null
      ? trans.__('Spent in this session: unknown')
      : trans.__('Spent in this session: $%1', usd(status.sessionUsd)),
    ...(status.budgetUsd === null ? [] : [trans.__('Budget: $%1', usd(status.budgetUsd))]),
    ...(status.running ? [trans.__('A turn is under way')] : [])
  ].join('\n');
}

function spent(sessionUsd: number, budgetUsd: number | null): string {
  return '$' + usd(sessionUsd) + (budgetUsd === null ? '' : '/' + usd(budgetUsd));
}

function bareName(model: string): string {
  return model.slice(model.lastIndexOf('/') + 1);
}

/** Shows the model and the cost of the current notebook's session. */
export class ModelItem extends Widget {
  constructor(
    private readonly _kernel: ILarikKernel,
    private readonly _trans: TranslationBundle
  ) {
    super({ node: document.createElement('span') });
    this.addClass('jp-StatusBar-TextItem'); // JupyterLab's own look and line height
    this.addClass('larik-ModelItem');
    _kernel.statusChanged.connect(this._draw, this);
    this._draw();
  }

  private _draw(): void {
    const status = this._kernel.status;
    this.node.textContent = status ? itemText(status, this._trans) : '';
    this.node.title = status ? itemTitle(status, this._trans) : '';
    this.node.dataset.level = status ? budgetLevel(status) : 'ok';
  }
}
