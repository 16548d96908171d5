import { Token } from '@lumino/coreutils';
import { ISignal } from '@lumino/signaling';
import { Chosen, Cell, IModelRow, Level } from './protocol';

/** What a kernel says about its Larik session. */
export interface IStatus {
  /** `provider/model` that the next turn asks; null while none is chosen. */
  readonly model: string | null;
  /** USD spent so far, as far as it is known. */
  readonly sessionUsd: number;
  /** A part of what was spent is unknown: `sessionUsd` is the least it can be. */
  readonly atLeast: boolean;
  /** USD the session may spend; null when there is no limit. */
  readonly budgetUsd: number | null;
  /** How near the budget it is. */
  readonly level: Level;
  /** A turn is under way. */
  readonly running: boolean;
}

/** The models there are to choose from, and what is wrong with the rest. */
export interface IModels {
  readonly models: readonly IModelRow[];
  /** Which provider did not tell, and why; empty when all did. */
  readonly problem: string;
  /** Providers are being asked: a fuller list follows. */
  readonly asking: boolean;
}

/** Changes a notebook for its kernel. Resolves to the empty text, or to why nothing was changed. */
export interface IEditor {
  insert(cellId: string | null, cells: readonly Cell[]): string;
  replace(cellId: string, digest: string, source: string): string;
}

/** The Larik session of one kernel. */
export interface ILarikSession {
  /** Null while the kernel has said nothing. */
  readonly status: IStatus | null;
  /** Emitted when `status` may have changed. */
  readonly changed: ISignal<ILarikSession, void>;
  /** Emitted when the kernel wants the list of models shown. */
  readonly pickerAsked: ISignal<ILarikSession, void>;
  /** Tell what stands in a cell now, ahead of running a command about it. */
  tell(cellId: string, source: string): void;
  /**
   * Ask for the models.
   *
   * @param tell Called with what is known at once, and again when the providers have told.
   * @param fail Called instead when nobody is there to tell.
   */
  models(tell: (listed: IModels) => void, fail: (reason: string) => void): void;
  /** Go on with a model. */
  choose(spec: string): Promise<Chosen>;
}

/** The Larik sessions of all notebooks; `status` is that of the notebook in front. */
export interface ILarikKernel {
  /** Null while that notebook's kernel has said nothing. */
  readonly status: IStatus | null;
  /** Emitted when `status` may have changed, also when another notebook comes to the front. */
  readonly statusChanged: ISignal<ILarikKernel, void>;
  /** The session of the notebook in front; null where its kernel has none. */
  readonly current: ILarikSession | null;
  /** The session of a kernel by its id; null where it has none. */
  of(kernelId: string | undefined): ILarikSession | null;
  /** Emitted with the kernel's id when that kernel wants the list of models shown. */
  readonly pickerAsked: ISignal<ILarikKernel, string>;
}

export const ILarikKernel = new Token<ILarikKernel>(
  'larik-nb:ILarikKernel',
  'The Larik sessions of the open notebooks: model, cost, and the line to their kernels.'
);

/** What the user wants to see. */
export interface ILarikSettings {
  readonly statusItem: boolean;
  readonly highlighting: boolean;
  readonly buttons: boolean;
  /** Emitted when one of them changed. */
  readonly changed: ISignal<ILarikSettings, void>;
}

export const ILarikSettings = new Token<ILarikSettings>(
  'larik-nb:ILarikSettings',
  'Which parts of Larik are shown.'
);
