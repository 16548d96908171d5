import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ISignal, Signal } from '@lumino/signaling';
import { ILarikSettings } from './tokens';

/** The id of the plugin whose schema holds the settings. */
export const SETTINGS = 'larik-nb:settings';

/** The settings as they are now; all is shown until they are there, and where they cannot be read. */
export class LarikSettings implements ILarikSettings {
  get statusItem(): boolean {
    return this._isOn('statusItem');
  }

  get highlighting(): boolean {
    return this._isOn('highlighting');
  }

  get buttons(): boolean {
    return this._isOn('buttons');
  }

  get changed(): ISignal<ILarikSettings, void> {
    return this._changed;
  }

  /** Follow the user's settings from now on. */
  follow(settings: ISettingRegistry.ISettings): void {
    this._settings = settings;
    settings.changed.connect(() => this._changed.emit(), this);
    this._changed.emit();
  }

  private _isOn(name: string): boolean {
    return this._settings?.composite[name] !== false;
  }

  private readonly _changed = new Signal<ILarikSettings, void>(this);
  private _settings: ISettingRegistry.ISettings | null = null;
}
