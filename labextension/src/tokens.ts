import { Token } from '@lumino/coreutils';
import { ISignal } from '@lumino/signaling';

/** What a kernel says about its Larik session. */
export interface IStatus {
  /** `provider/model` that the next turn asks; null while none is chosen. */
  readonly model: string | null;
  /** USD spent so far; null when a price is unknown. */
  readonly sessionUsd: number | null;
  /** USD the session may spend; null when there is no limit. */
  readonly budgetUsd: number | null;
  /** USD at which the session warns; null when it does not. */
  readonly warnUsd: number | null;
  /** A turn is under way. */
  readonly running: boolean;
}

/** The Larik session of the notebook in front. */
export interface ILarikKernel {
  /** Null while that notebook's kernel has said nothing. */
  readonly status: IStatus | null;
  /** Emitted when `status` may have changed, also when another notebook comes to the front. */
  readonly statusChanged: ISignal<ILarikKernel, void>;
}

export const ILarikKernel = new Token<ILarikKernel>(
  'larik-nb:ILarikKernel',
  'The model and the cost of the Larik session in the current notebook.'
);
