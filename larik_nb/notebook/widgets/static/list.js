// A long list to choose from: a search field over options of which only those in sight are in the page, so that
// thousands filter as fast as ten. Shared by the picker and the wizard.

const OVERSCAN = 4;

/** Return whether a line, in lower case, has every word that was typed, in any order. */
function matches(line, words) {
  return words.every(word => line.includes(word));
}

/** Return the texts of a row that is shown and searched. */
function partsOf(row) {
  return {
    spec: row.spec,
    facts: [row.window, row.price, (row.abilities ?? []).join(' '), row.ends ? `until ${row.ends}` : '']
      .filter(Boolean)
      .join(' · '),
    state: row.state ?? '',
    why: row.why ?? ''
  };
}

/** Make a list.
 *
 *  `id` is unique in the page; `label` names the field; `pick(spec)` is told what was chosen, `leave()` that Escape was
 *  pressed. `rowHeight` in pixels. Returns `{ node, set(rows), focus(), clear() }`. */
function makeList({ h, signal, say, id, label, pick, leave, rowHeight }) {
  let rows = [];
  let found = [];
  let at = 0;

  const field = h('input', {
    type: 'text',
    class: 'larik-list-field',
    role: 'combobox',
    'aria-label': label,
    'aria-expanded': 'true',
    'aria-autocomplete': 'list',
    'aria-controls': `${id}-list`,
    placeholder: 'type to filter',
    autocomplete: 'off',
    spellcheck: 'false',
    on: { input: () => filter(), keydown: key }
  });
  const count = h('span', { class: 'larik-quiet larik-list-count' });
  const room = h('div', { role: 'presentation', class: 'larik-list-room' });
  const box = h('div', {
    class: 'larik-list-box',
    role: 'listbox',
    id: `${id}-list`,
    'aria-label': label,
    tabindex: '-1',
    on: { scroll: () => draw() }
  });
  box.append(room);
  const none = h('div', { class: 'larik-quiet larik-list-none', hidden: true });
  const node = h('div', { class: 'larik-list' }, h('div', { class: 'larik-row' }, field, count), box, none);

  function typed() {
    return field.value.trim();
  }

  function filter() {
    const words = typed().toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? rows.filter(row => matches(row.line, words)) : rows.slice();
    const own = typed();
    if (/^[^\s/]+\/\S+$/.test(own) && !rows.some(row => row.spec === own)) {
      found.push({ spec: own, parts: { spec: own, facts: '', state: '', why: 'as you typed it; no list names it' } });
    }
    at = 0;
    box.scrollTop = 0;
    count.textContent = words.length ? `${found.length} of ${rows.length}` : `${rows.length} models`;
    say(found.length ? `${found.length} models, ${found[0].spec}` : 'no model matches');
    draw();
  }

  function option(row, place) {
    const { spec, facts, state, why } = row.parts;
    const cut = spec.indexOf('/') + 1;
    const element = h(
      'div',
      {
        role: 'option',
        id: `${id}-${place}`,
        class: 'larik-list-option',
        'aria-selected': String(place === at),
        'aria-setsize': found.length,
        'aria-posinset': place + 1,
        'aria-label': [spec, facts, state, row.suggested ? 'suggested' : '', why].filter(Boolean).join(', '),
        on: {
          click: () => pick(row.spec),
          pointermove: () => {
            if (place !== at) move(place, false);
          }
        }
      },
      h(
        'div',
        { class: 'larik-list-line', 'aria-hidden': 'true' },
        h('span', { class: 'larik-list-spec' }, h('span', { class: 'larik-quiet' }, spec.slice(0, cut)), spec.slice(cut)),
        h('span', { class: 'larik-list-facts' }, facts),
        h('span', { class: `larik-list-state${state && state !== 'ok' ? ' larik-is-bad' : ''}` }, state)
      ),
      why &&
        h(
          'div',
          { class: 'larik-list-why larik-quiet', 'aria-hidden': 'true' },
          row.suggested && h('span', { class: 'larik-list-mark' }, '✓ suggested'),
          row.suggested ? ` ${why}` : why
        )
    );
    element.style.top = `${place * rowHeight}px`;
    element.style.height = `${rowHeight}px`;
    return element;
  }

  function draw() {
    none.hidden = found.length > 0;
    box.hidden = found.length === 0;
    none.textContent = rows.length ? 'No model matches. A name with a / in it is taken as you type it.' : 'No provider has told its models yet. A name with a / in it is taken as you type it.';
    room.style.height = `${found.length * rowHeight}px`;
    const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - OVERSCAN);
    const seen = Math.ceil((box.clientHeight || 320) / rowHeight) + 2 * OVERSCAN;
    room.replaceChildren(...found.slice(first, first + seen).map((row, offset) => option(row, first + offset)));
    if (found.length) field.setAttribute('aria-activedescendant', `${id}-${at}`);
    else field.removeAttribute('aria-activedescendant');
  }

  function move(to, scroll = true) {
    if (!found.length) return;
    at = Math.min(Math.max(to, 0), found.length - 1);
    if (scroll) {
      const top = at * rowHeight;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
    }
    draw();
  }

  function key(event) {
    const page = Math.max(1, Math.floor(box.clientHeight / rowHeight) - 1);
    const go = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page };
    if (event.key in go) move(go[event.key]);
    else if (event.key === 'Enter') {
      if (found[at]) pick(found[at].spec);
    } else if (event.key === 'Escape') {
      if (field.value) {
        field.value = '';
        filter();
      } else leave();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return {
    node,
    set(given) {
      const chosen = found[at]?.spec;
      rows = given.map(row => {
        const parts = partsOf(row);
        return { ...row, parts, line: Object.values(parts).join(' ').toLowerCase() };
      });
      filter();
      const again = typed() ? found.findIndex(row => row.spec === chosen) : -1;
      if (again > 0) move(again);
    },
    focus() {
      field.focus({ preventScroll: true });
      draw();
    },
    clear() {
      field.value = '';
      filter();
    }
  };
}

/** Give a widget the focus when it is drawn for the first time, unless somebody is typing elsewhere. The empty cell that
 *  Shift+Enter makes below the last one has the cursor, but nobody has typed there. */
function focusWhenFresh(model, el, focus) {
  if (model.get('live')) return;
  requestAnimationFrame(() => {
    const active = document.activeElement;
    const types = active?.matches?.('input, textarea, select, [contenteditable="true"], [contenteditable="true"] *');
    const untouched = active?.matches?.('.jp-Cell .cm-content') && !active.textContent;
    if (el.isConnected && (!types || untouched)) focus();
  });
}
