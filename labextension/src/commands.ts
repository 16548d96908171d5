import { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import { indexOf, insertBelow, panelOf } from './edits';
import { isFixable } from './widgets/fixRow';
import { ModelPicker } from './widgets/modelPicker';
import { ILarikKernel, ILarikSession } from './tokens';

export namespace CommandIDs {
  export const pickModel = 'larik-nb:pick-model';
  export const routing = 'larik-nb:routing';
  export const cost = 'larik-nb:cost';
  export const fix = 'larik-nb:fix-cell';
  export const explain = 'larik-nb:explain-cell';
  export const insert = 'larik-nb:insert-cell';
  export const stop = 'larik-nb:stop-turn';
}

/** All commands, in the order of the palette. */
export const COMMANDS: readonly string[] = Object.values(CommandIDs);

/** What a user can do with Larik from menus, buttons and keys. */
export class Commands {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _tracker: INotebookTracker,
    private readonly _larik: ILarikKernel,
    private readonly _trans: TranslationBundle
  ) {}

  register(): void {
    const { _trans: trans } = this;
    const hasSession = (): boolean => this._larik.status !== null;
    this._add(CommandIDs.pickModel, trans.__('Choose Model…'), hasSession, () => this.pickModel());
    this._add(CommandIDs.routing, trans.__('Edit Routing'), hasSession, () => this._runBelow('%larik routing'));
    this._add(CommandIDs.cost, trans.__('Show Cost'), hasSession, () => this._runBelow('%larik cost'));
    const canFix = (): boolean => hasSession() && this._activeCanBeFixed();
    this._add(CommandIDs.fix, trans.__('Fix with Larik'), canFix, () => this._askAbout('fix'));
    const canExplain = (): boolean => hasSession() && this._tracker.activeCell?.model.type === 'code';
    this._add(CommandIDs.explain, trans.__('Explain with Larik'), canExplain, () => this._askAbout('explain'));
    const isOpen = (): boolean => this._tracker.currentWidget !== null;
    this._add(CommandIDs.insert, trans.__('Insert Question Below'), isOpen, () => this._insertQuestion());
    const isRunning = (): boolean => this._larik.status?.running === true;
    this._add(CommandIDs.stop, trans.__('Stop the Turn'), isRunning, () => this._stop());
    const changed = (): void => this._app.commands.notifyCommandChanged();
    this._larik.statusChanged.connect(changed);
    this._tracker.activeCellChanged.connect(changed);
  }

  /** Show the models of a session, that of the notebook in front if none is named, and go on with the one chosen. */
  async pickModel(session: ILarikSession | null = this._larik.current): Promise<void> {
    if (session === null) {
      return;
    }
    const trans = this._trans;
    const picker = new ModelPicker(session.status?.model ?? null, trans, () => dialog.resolve());
    const dialog = new Dialog<string | null>({
      title: trans.__('Choose a model'),
      body: picker,
      buttons: [Dialog.cancelButton(), Dialog.okButton({ label: trans.__('Choose') })],
      defaultButton: 1,
      focusNodeSelector: 'input'
    });
    dialog.addClass('larik-ModelDialog');
    session.models(
      listed => picker.fill(listed),
      reason => picker.fail(reason)
    );
    const { button, value } = await dialog.launch();
    if (button.accept && value) {
      await this._choose(session, value);
    }
  }

  /** Ask about a cell: tell the kernel what stands in it now, and run the command in a cell below. */
  async ask(verb: 'fix' | 'explain', panel: NotebookPanel, cellId: string): Promise<void> {
    const shared = panel.content.model?.sharedModel;
    const at = shared ? indexOf(shared, cellId) : null;
    const session = this._larik.of(panel.sessionContext.session?.kernel?.id);
    if (!shared || at === null || session === null) {
      return;
    }
    session.tell(cellId, shared.getCell(at).getSource());
    await this._run(panel, at, `%larik ${verb} --cell ${cellId}`);
  }

  private _add(id: string, label: string, isEnabled: () => boolean, execute: () => Promise<void> | void): void {
    this._app.commands.addCommand(id, {
      label,
      caption: label,
      isEnabled,
      execute,
      describedBy: { args: { type: 'object', properties: {} } }
    });
  }

  private _activeCanBeFixed(): boolean {
    const cell = this._tracker.activeCell;
    return cell instanceof CodeCell && isFixable(cell);
  }

  private async _choose(session: ILarikSession, spec: string): Promise<void> {
    try {
      const chosen = await session.choose(spec);
      if (!chosen.ok) {
        Notification.error(this._trans.__('Larik: %1', chosen.text));
      }
    } catch (reason) {
      Notification.error(this._trans.__('Larik: %1', reason instanceof Error ? reason.message : String(reason)));
    }
  }

  private async _askAbout(verb: 'fix' | 'explain'): Promise<void> {
    const panel = this._tracker.currentWidget;
    const cell = panel?.content.activeCell;
    if (panel && cell) {
      await this.ask(verb, panel, cell.model.id);
    }
  }

  private async _runBelow(source: string): Promise<void> {
    const panel = this._tracker.currentWidget;
    if (panel) {
      await this._run(panel, panel.content.activeCellIndex, source);
    }
  }

  /** Run a command in the cell below; where it stands there already, in that one. */
  private async _run(panel: NotebookPanel, above: number, source: string): Promise<void> {
    const shared = panel.content.model?.sharedModel;
    if (!shared || panel.content.model?.readOnly) {
      return;
    }
    if (shared.cells[above + 1]?.getSource() !== source) {
      insertBelow(shared, above, [{ kind: 'code', source }]);
    }
    this._app.shell.activateById(panel.id);
    panel.content.deselectAll();
    panel.content.activeCellIndex = above + 1;
    await this._app.commands.execute('notebook:run-cell');
  }

  private async _insertQuestion(): Promise<void> {
    const notebook = this._tracker.currentWidget?.content;
    const shared = notebook?.model?.sharedModel;
    if (!notebook || !shared || notebook.model?.readOnly) {
      return;
    }
    insertBelow(shared, notebook.activeCellIndex, [{ kind: 'code', source: '%%larik\n' }]);
    notebook.deselectAll();
    notebook.activeCellIndex += 1;
    await notebook.activeCell?.ready;
    notebook.mode = 'edit';
    notebook.activeCell?.editor?.setCursorPosition({ line: 1, column: 0 });
  }

  private async _stop(): Promise<void> {
    await this._tracker.currentWidget?.sessionContext.session?.kernel?.interrupt();
  }

  /** The session that wants its picker shown. */
  pickModelOf(kernelId: string): void {
    if (panelOf(this._tracker, kernelId) !== null) {
      void this.pickModel(this._larik.of(kernelId));
    }
  }
}
