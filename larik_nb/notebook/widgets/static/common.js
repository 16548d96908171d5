// What all widgets share. A widget's own file follows this text in one module and ends with
//
//   export default panel(({ model, el, signal, h, on, send }) => { … });
//
// Strings from models and providers are hostile: they become text nodes and attribute values, never markup.

/** Make an element. Properties: `class`, `on` (an object of listeners), `dataset`, ARIA and other attributes by name;
 *  true sets an empty attribute, false, null and undefined leave it out. Children: nodes, strings, numbers, arrays. */
function makeElement(signal, name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (key === 'on') {
      for (const [event, act] of Object.entries(value)) node.addEventListener(event, act, { signal });
    } else if (key === 'dataset') {
      Object.assign(node.dataset, value);
    } else if (value === true) {
      node.setAttribute(key, '');
    } else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(key, String(value));
    }
  }
  if (name === 'button' && !node.hasAttribute('type')) node.type = 'button';
  node.append(
    ...children
      .flat(Infinity)
      .filter(child => child !== null && child !== undefined && child !== false)
      .map(child => (child instanceof Node ? child : document.createTextNode(String(child))))
  );
  return node;
}

/** Say a text to screen readers, politely and at most once in two seconds: the last text of a burst is the one said. */
function makeAnnouncer(el, signal) {
  const region = document.createElement('div');
  region.className = 'larik-hidden';
  region.setAttribute('aria-live', 'polite');
  region.setAttribute('role', 'status');
  el.append(region);
  let timer = 0;
  let last = -Infinity;
  signal.addEventListener('abort', () => clearTimeout(timer));
  return text => {
    clearTimeout(timer);
    const speak = () => {
      last = performance.now();
      region.textContent = text;
    };
    timer = setTimeout(speak, Math.max(0, last + 2000 - performance.now()));
  };
}

/** Keep the keyboard's place in the notebook. When the widget goes while it has the focus, the focus returns to the cell
 *  it came from: after Shift+Enter that is the next one, where work goes on. Shift+Enter in the widget goes back there
 *  as well, and the widget stays. Without this the focus falls to the page, and every key of the notebook is dead. */
function keepPlace(el, signal) {
  let from = null;
  let has = false;
  el.addEventListener('focusin', event => {
    has = true;
    const before = event.relatedTarget;
    if (before && !el.contains(before)) from = before;
  });
  el.addEventListener('focusout', event => {
    // Without a next element the window lost the focus, or what had it was redrawn: the place stays ours.
    if (event.relatedTarget && !el.contains(event.relatedTarget)) has = false;
  });
  const own = () => el.closest('.jp-Cell');
  const back = cell => {
    const notebook = cell?.closest('.jp-Notebook');
    const place = from?.isConnected && notebook?.contains(from) ? from : cell;
    place?.focus();
  };
  el.addEventListener(
    'keydown',
    event => {
      if (event.key !== 'Enter' || !event.shiftKey || event.isComposing || !own()) return;
      event.preventDefault();
      event.stopPropagation();
      back(own());
    },
    { capture: true, signal }
  );
  let cell = null;
  requestAnimationFrame(() => (cell = own()));
  signal.addEventListener('abort', () => {
    requestAnimationFrame(() => {
      const active = document.activeElement;
      if (has && cell?.isConnected && (!active || active === document.body)) back(cell);
    });
  });
}

/** Return anywidget's export for `draw`, which is called for each view with
 *  - `h(name, properties, ...children)`: an element whose listeners end with the view,
 *  - `on(names, act)`: call `act` now and whenever one of the space-separated traits changes,
 *  - `send(message)`: to Python's `Panel.heard`, `{type, …}`,
 *  - `heard(act)`: call `act(message)` for each message from Python,
 *  - `say(text)`: tell screen readers,
 *  - `signal`: aborted when the view is gone.
 *  Stopped here: keys that JupyterLab would take for commands of the notebook (`a` adds a cell, `d d` deletes one). */
function panel(draw) {
  return {
    render({ model, el }) {
      const gone = new AbortController();
      const { signal } = gone;
      const listen = (event, act) => {
        model.on(event, act);
        signal.addEventListener('abort', () => model.off(event, act));
      };
      el.classList.add('larik');
      // JupyterLab leaves alone the keys pressed inside an element of this class.
      el.dataset.lmSuppressShortcuts = 'true';
      keepPlace(el, signal);
      const on = (names, act) => {
        for (const name of names.split(' ')) listen(`change:${name}`, act);
        act();
      };
      draw({
        model,
        el,
        signal,
        on,
        h: (...parts) => makeElement(signal, ...parts),
        send: message => model.send(message),
        heard: act => listen('msg:custom', act),
        say: makeAnnouncer(el, signal)
      });
      model.send({ type: 'ready' });
      return () => gone.abort();
    }
  };
}
