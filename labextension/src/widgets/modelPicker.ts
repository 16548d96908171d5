import { Dialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { IModelRow } from '../protocol';
import { IModels } from '../tokens';

/** What is known of a model, behind its name: `1M · $2/$10 · vision tools`. */
export function details(row: IModelRow, trans: TranslationBundle): string {
  return [
    row.window,
    row.price,
    row.abilities.join(' '),
    row.ends && trans.__('until %1', row.ends),
    row.ready ? '' : row.state
  ]
    .filter(Boolean)
    .join(' · ');
}

/** Whether all words of a search stand somewhere in what is shown of a model. */
export function matches(shown: string, search: string): boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every(word => shown.includes(word));
}

interface IOption {
  readonly spec: string;
  readonly node: HTMLElement;
  /** What is searched, in small letters. */
  readonly shown: string;
}

let pickers = 0;

/** A list of models with a search box above it: type, go with the arrows, choose with Enter or a click. */
export class ModelPicker extends Widget implements Dialog.IBodyWidget<string | null> {
  /**
   * @param _current The model that is asked now.
   * @param _trans Words.
   * @param _take Called when a row is clicked.
   */
  constructor(
    private readonly _current: string | null,
    private readonly _trans: TranslationBundle,
    private readonly _take: () => void
  ) {
    super();
    this.addClass('larik-ModelPicker');
    pickers += 1;
    this._id = `larik-models-${pickers}`;
    this._makeInput();
    this._list.id = this._id;
    this._list.className = 'larik-ModelPicker-list';
    this._list.setAttribute('role', 'listbox');
    this._list.setAttribute('aria-label', _trans.__('Models'));
    this._note.className = 'larik-ModelPicker-note';
    this._note.setAttribute('role', 'status');
    this._note.textContent = _trans.__('Asking the providers for their models…');
    this.node.append(this._input, this._list, this._note);
  }

  /** Show the models that are known; said again, the search and the place in the list stay. */
  fill(listed: IModels): void {
    if (this.isDisposed) {
      return;
    }
    const before = this._active?.spec ?? this._current;
    this._active = null;
    this._rest = [listed.problem, listed.asking ? this._trans.__('asking the providers for more…') : ''].filter(Boolean);
    this._options = listed.models.map((row, at) => this._option(row, at));
    this._list.replaceChildren(...this._options.map(option => option.node));
    this._search();
    this._activate(this._shown().find(option => option.spec === before) ?? this._shown()[0] ?? null);
  }

  /** Say why there are no models. */
  fail(reason: string): void {
    this._note.textContent = reason;
  }

  /** The model to go on with; null when there is none to choose. */
  getValue(): string | null {
    return this._active?.spec ?? null;
  }

  private _makeInput(): void {
    const input = this._input;
    input.type = 'text';
    input.className = 'jp-mod-styled';
    input.placeholder = this._trans.__('Search by name, provider or ability');
    input.autocomplete = 'off';
    input.spellcheck = false;
    const attributes = {
      role: 'combobox',
      'aria-label': this._trans.__('Search models'),
      'aria-controls': this._id,
      'aria-expanded': 'true',
      'aria-autocomplete': 'list'
    };
    Object.entries(attributes).forEach(([name, value]) => input.setAttribute(name, value));
    input.addEventListener('input', () => this._search());
    input.addEventListener('keydown', event => this._onKey(event));
  }

  private _option(row: IModelRow, at: number): IOption {
    const node = document.createElement('div');
    node.id = `${this._id}-${at}`;
    node.className = 'larik-ModelPicker-option';
    node.setAttribute('role', 'option');
    node.dataset.ready = String(row.ready);
    const mark = row.spec === this._current ? [part('larik-ModelPicker-current', this._trans.__('current'))] : [];
    const known = part('larik-ModelPicker-details', details(row, this._trans));
    node.append(part('larik-ModelPicker-spec', row.spec), ...mark, known);
    const option = { spec: row.spec, node, shown: (node.textContent ?? '').toLowerCase() };
    node.addEventListener('click', () => {
      this._activate(option);
      this._take();
    });
    return option;
  }

  private _search(): void {
    for (const option of this._options) {
      option.node.hidden = !matches(option.shown, this._input.value);
    }
    if (this._active?.node.hidden !== false) {
      this._activate(this._shown()[0] ?? null);
    }
    const count = this._shown().length;
    const found =
      count === 0 ? this._trans.__('No model matches') : this._trans._n('%1 model', '%1 models', count, count);
    this._note.textContent = [found, ...this._rest].join(' · ');
  }

  private _onKey(event: KeyboardEvent): void {
    const shown = this._shown();
    const at = this._active ? shown.indexOf(this._active) : -1;
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: Math.min(at + 10, shown.length - 1),
      PageUp: Math.max(at - 10, 0)
    };
    const to = steps[event.key];
    if (to !== undefined && shown.length > 0) {
      event.preventDefault();
      this._activate(shown[(to + shown.length) % shown.length] ?? null);
    }
  }

  private _activate(option: IOption | null): void {
    this._active?.node.setAttribute('aria-selected', 'false');
    this._active = option;
    if (option === null) {
      this._input.removeAttribute('aria-activedescendant');
      return;
    }
    option.node.setAttribute('aria-selected', 'true');
    this._input.setAttribute('aria-activedescendant', option.node.id);
    option.node.scrollIntoView({ block: 'nearest' });
  }

  private _shown(): IOption[] {
    return this._options.filter(option => !option.node.hidden);
  }

  private _active: IOption | null = null;
  private readonly _id: string;
  private readonly _input = document.createElement('input');
  private readonly _list = document.createElement('div');
  private readonly _note = document.createElement('div');
  private _options: IOption[] = [];
  private _rest: string[] = [];
}

function part(className: string, text: string): HTMLElement {
  const node = document.createElement('span');
  node.className = className;
  node.textContent = text;
  return node;
}
