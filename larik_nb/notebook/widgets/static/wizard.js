// The routing wizard: a table of roles, a list to choose a model from, a budget, and what saving would change.
// Python has the settings; the page has the place one is at.

const HINTS = [
  ['w', 'worktree'],
  ['c', 'minimal'],
  ['+ −', 'turns'],
  ['f', 'fallback'],
  ['?', 'keys']
];

export default panel(({ model, el, h, on, send, heard, say, signal }) => {
  const id = `larik-wizard-${model.get('view').id}`;
  let view = model.get('view');
  let at = { role: 'main', then: -1 };
  let listing = null;
  let leaving = false;
  let told = '';
  let late = 0;
  signal.addEventListener('abort', () => clearTimeout(late));

  // -- what is there ----------------------------------------------------------------------------------------
  const providers = h('ul', { class: 'larik-wizard-providers', 'aria-label': 'Providers' });
  const presets = h('div', { class: 'larik-row', role: 'radiogroup', 'aria-label': 'Preset' });
  const changes = h('div', { class: 'larik-quiet larik-wizard-changes' });
  const body = h('tbody');
  const table = h(
    'table',
    { class: 'larik-wizard-table' },
    h('caption', { class: 'larik-hidden' }, 'Roles and their models'),
    h('thead', {}, h('tr', {}, ['role', 'model', 'price in/out', 'leash', 'state'].map(name => h('th', { scope: 'col' }, name)))),
    body
  );
  const reason = h('div', { class: 'larik-wizard-reason' });
  const tools = h('div', { class: 'larik-row larik-wizard-tools', role: 'group', 'aria-label': 'The chosen role' });
  const usd = field('Budget, USD a session', '$', 'none', text => act('budget', { text }));
  const warn = field('Warn at percent', '', '80', text => act('warn', { text }));
  const typical = h('div', { class: 'larik-quiet' });
  const lines = (name, style) => h('div', { class: `larik-wizard-diff ${style}`, role: 'group', 'aria-label': name, tabindex: '0', hidden: true });
  const diff = lines('What saving changes', '');
  const theirs = lines('What was saved elsewhere meanwhile', 'larik-wizard-theirs');
  const note = h('div', { class: 'larik-wizard-note', hidden: true });
  const help = h('dl', { class: 'larik-wizard-help', hidden: true });
  const save = h('button', { class: 'larik-main', on: { click: () => post({ type: 'save' }) } }, 'Save ', mark('s'));
  const leave = h('button', { on: { click: () => goodbye(true) } });
  const hints = h('div', { class: 'larik-quiet larik-wizard-hints', 'aria-hidden': 'true' },
    HINTS.map(([key, does]) => h('span', {}, mark(key), ` ${does}`)));
  const list = makeList({
    h,
    signal,
    say,
    id,
    label: 'Model',
    rowHeight: 44,
    pick: chosen,
    leave: () => close()
  });
  const title = h('b');
  const about = h('span', { class: 'larik-quiet' });
  const choice = h('div', { hidden: true }, h('div', { class: 'larik-row larik-wizard-choosing' }, title, about), list.node);
  const rest = h('div', {}, table, reason, tools);
  const card = h(
    'section',
    { class: 'larik-card larik-wizard', 'aria-label': 'Routing', on: { keydown: key } },
    h('div', { class: 'larik-row larik-wizard-head' }, h('div', { class: 'larik-wizard-title', role: 'heading', 'aria-level': '3' }, 'Routing'), providers),
    h('div', { class: 'larik-row larik-wizard-presets' }, h('span', { class: 'larik-quiet', 'aria-hidden': 'true' }, 'Preset'), presets, changes),
    rest,
    choice,
    h('div', { class: 'larik-row larik-wizard-budget' }, 'Budget', usd.node, 'a session, warn at', warn.node, '%', typical),
    theirs,
    diff,
    note,
    h('div', { class: 'larik-row larik-wizard-foot' }, save, leave, hints),
    help
  );
  el.append(card);

  function mark(key) {
    return h('kbd', { 'aria-hidden': 'true' }, key);
  }

  function field(label, before, empty, take) {
    const input = h('input', {
      type: 'text',
      inputmode: 'decimal',
      'aria-label': label,
      placeholder: empty,
      class: 'larik-wizard-number',
      on: {
        change: () => take(input.value),
        keydown: event => {
          if (event.key === 'Escape') {
            input.value = input.dataset.was ?? '';
            input.blur();
            focusRow();
          } else if (event.key === 'Enter') {
            input.blur();
            focusRow();
          } else return;
          event.preventDefault();
          event.stopPropagation();
        }
      }
    });
    return { input, node: h('span', { class: 'larik-wizard-field' }, before, input) };
  }

  // -- talking to Python ------------------------------------------------------------------------------------
  function post(message) {
    leaving = false;
    clearTimeout(late);
    late = setTimeout(() => tell('waiting for the kernel'), 800);
    send(message);
  }

  function act(command, values) {
    post({ type: 'do', command, values });
  }

  function tell(text) {
    note.textContent = text;
    note.hidden = !text;
    if (text && text !== told) say(text);
    told = text;
  }

  function goodbye(meant) {
    if (view.changes && !leaving && !meant) {
      leaving = true;
      tell(`Esc again drops what you changed (${view.changes}); s saves it`);
      return;
    }
    post({ type: 'leave' });
  }

  // -- where one is -----------------------------------------------------------------------------------------
  function places() {
    return view.rows.flatMap(row => [
      { role: row.role, then: -1 },
      ...row.then.map((_, index) => ({ role: row.role, then: index }))
    ]);
  }

  function here() {
    return view.rows.find(row => row.role === at.role) ?? view.rows[0];
  }

  function go(by) {
    const all = places();
    const now = all.findIndex(place => place.role === at.role && place.then === at.then);
    at = all[Math.min(Math.max(now + by, 0), all.length - 1)];
    drawRows();
    focusRow();
  }

  function focusRow() {
    body.querySelector('button[tabindex="0"]')?.focus({ preventScroll: false });
  }

  // -- the list ---------------------------------------------------------------------------------------------
  function choose(what) {
    listing = { role: at.role, what };
    title.textContent = what === 'fallback' ? `A fallback for ${at.role}` : `A model for ${at.role}`;
    about.textContent = 'asking for the models';
    list.set([]);
    list.clear();
    rest.hidden = true;
    card.classList.add('larik-is-choosing');
    choice.hidden = false;
    post({ type: 'list', role: at.role });
    list.focus();
  }

  function close() {
    listing = null;
    choice.hidden = true;
    rest.hidden = false;
    card.classList.remove('larik-is-choosing');
    focusRow();
  }

  function chosen(spec) {
    const { role, what } = listing;
    close();
    act(what, { role, spec });
  }

  heard(message => {
    if (message.type !== 'choices') return;
    clearTimeout(late);
    if (listing && message.role === listing.role) {
      if (told === 'waiting for the kernel') tell('');
      about.textContent = message.about;
      list.set(message.rows);
    }
  });

  // -- keys -------------------------------------------------------------------------------------------------
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || choice.contains(event.target)) return;
    if (event.target.matches('input[type="text"]')) return;
    const inRows = body.contains(event.target);
    const row = here();
    const actions = {
      ArrowDown: () => inRows && (event.shiftKey ? shift(1) : go(1)),
      ArrowUp: () => inRows && (event.shiftKey ? shift(-1) : go(-1)),
      f: () => choose('fallback'),
      w: () => act('worktree', { role: row.role }),
      c: () => act('minimal', { role: row.role }),
      '+': () => act('turns', { role: row.role, by: 1 }),
      '=': () => act('turns', { role: row.role, by: 1 }),
      '-': () => act('turns', { role: row.role, by: -1 }),
      Delete: () => remove(),
      Backspace: () => remove(),
      p: () => act('next_preset', {}),
      $: () => usd.input.focus(),
      s: () => post({ type: 'save' }),
      '?': () => showHelp(help.hidden),
      Escape: () => (help.hidden ? goodbye(false) : showHelp(false))
    };
    const run = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (!run || run() === false) return;
    event.preventDefault();
    event.stopPropagation();
  }

  function shift(by) {
    const row = here();
    if (!row.then.length) return;
    const from = Math.max(at.then, 0);
    const to = Math.min(Math.max(from + by, 0), row.then.length - 1);
    if (to === from) return;
    at = { role: row.role, then: to };
    act('move', { role: row.role, at: from, by: to - from });
  }

  function remove() {
    if (at.then < 0) {
      act('choose', { role: at.role, spec: '' });
      return;
    }
    const { role, then } = at;
    at = { role, then: Math.min(then, here().then.length - 2) };
    act('drop', { role, at: then });
  }

  function showHelp(shown) {
    help.hidden = !shown;
    if (shown) say(view.keys.map(([name, does]) => `${name}: ${does}`).join('. '));
  }

  // -- drawing ----------------------------------------------------------------------------------------------
  function drawProviders() {
    const signs = { ok: '✓', asking: '…', failed: '✗' };
    const shown = view.providers.map(({ name, state, text }) =>
      h('li', { title: text, class: `larik-is-${state}` }, name, ' ', h('span', { 'aria-hidden': 'true' }, signs[state]), h('span', { class: 'larik-hidden' }, ` ${text}`))
    );
    const lacking = view.lacking.length
      ? [h('li', { class: 'larik-quiet', title: `no key: ${view.lacking.join(', ')}` }, `${view.lacking.length} more take a key: `, h('code', {}, '%larik keys add NAME'))]
      : [];
    providers.replaceChildren(...shown, ...lacking);
  }

  function drawPresets() {
    const held = presets.contains(document.activeElement) ? document.activeElement.value : null;
    presets.replaceChildren(
      ...view.presets.map(({ name, label, does, on: chosenNow }) => {
        const input = h('input', { type: 'radio', name: `${id}-preset`, value: name, on: { change: () => act('preset', { name }) } });
        input.checked = chosenNow;
        return h('label', { title: does }, input, ' ', label);
      })
    );
    if (held) presets.querySelector(`input[value="${CSS.escape(held)}"]`)?.focus();
    changes.textContent = view.changes ? `what changes: ${view.changes}` : 'nothing changed';
  }

  function cells(price, leash, state) {
    return [
      h('td', {}, price),
      h('td', { class: 'larik-quiet' }, leash),
      h('td', { class: state && state !== 'ok' ? 'larik-is-bad' : 'larik-quiet' }, state)
    ];
  }

  function drawRow(place, name, shown, label, rest, changed, drag) {
    const isHere = place.role === at.role && place.then === at.then;
    const button = h(
      'button',
      {
        class: 'larik-wizard-model',
        tabindex: isHere ? '0' : '-1',
        'aria-label': label,
        'aria-current': isHere ? 'true' : null,
        on: {
          click: () => {
            at = place;
            drawRows();
            choose('choose');
          },
          focus: () => {
            if (place.role === at.role && place.then === at.then) return;
            at = place;
            drawRows();
            focusRow();
          }
        }
      },
      shown
    );
    if (place.then >= 0) button.setAttribute('title', 'drag, or Shift with the arrows, to order');
    return h(
      'tr',
      { class: [isHere && 'larik-is-here', changed && 'larik-is-changed', place.then >= 0 && 'larik-is-then'].filter(Boolean).join(' '), ...drag },
      h('th', { scope: 'row' }, name, changed && h('span', { class: 'larik-wizard-dot', title: 'changed' }, ' •')),
      h('td', {}, button),
      rest
    );
  }

  function dragging(role, index) {
    return {
      draggable: 'true',
      on: {
        dragstart: event => event.dataTransfer.setData('text/plain', `${id} ${role} ${index}`),
        dragover: event => event.preventDefault(),
        drop: event => {
          event.preventDefault();
          const [whose, from, place] = event.dataTransfer.getData('text/plain').split(' ');
          if (whose !== id || from !== role || Number(place) === index) return;
          at = { role, then: index };
          act('move', { role, at: Number(place), by: index - Number(place) });
        }
      }
    };
  }

  function drawRows() {
    const held = body.contains(document.activeElement);
    const rows = view.rows.flatMap(row => [
      drawRow({ role: row.role, then: -1 }, row.role, row.model, `${row.role}: ${[row.model, row.price, row.leash, row.state].filter(Boolean).join(', ')}`, cells(row.price, row.leash, row.state), row.changed, {}),
      ...row.then.map((then, index) =>
        drawRow({ role: row.role, then: index }, 'then', then.spec, `then ${then.spec}, ${then.price}, ${then.state}`, cells(then.price, '', then.state), false, dragging(row.role, index))
      )
    ]);
    body.replaceChildren(...rows);
    const row = here();
    reason.replaceChildren(h('b', {}, row.role), ` → ${row.reason}`);
    drawTools(row);
    if (held) focusRow();
  }

  function drawTools(row) {
    const pressed = tools.contains(document.activeElement) ? document.activeElement.dataset.name : null;
    const tool = (name, label, does, properties = {}) =>
      h('button', { 'data-name': name, ...properties, on: { click: does } }, label);
    const leash = row.leashed
      ? [
          tool('w', ['worktree ', mark('w')], () => act('worktree', { role: row.role }), { 'aria-pressed': String(row.leash.includes('worktree')) }),
          tool('c', ['minimal ', mark('c')], () => act('minimal', { role: row.role }), { 'aria-pressed': String(row.leash.includes('minimal')) }),
          tool('-', ['fewer turns ', mark('−')], () => act('turns', { role: row.role, by: -1 })),
          tool('+', ['more turns ', mark('+')], () => act('turns', { role: row.role, by: 1 }))
        ]
      : [];
    const isFallback = at.then >= 0;
    const fallback = [
      tool('f', ['add a fallback ', mark('f')], () => choose('fallback')),
      isFallback && at.then > 0 && tool('up', 'up', () => shift(-1)),
      isFallback && at.then < row.then.length - 1 && tool('down', 'down', () => shift(1)),
      isFallback && tool('x', ['take away ', mark('Del')], remove),
      !isFallback && row.model !== 'main' && row.role !== 'main' && tool('x', ['as main ', mark('Del')], remove)
    ];
    tools.replaceChildren(...[...leash, ...fallback].filter(Boolean));
    if (pressed) tools.querySelector(`[data-name="${pressed}"]`)?.focus();
  }

  function drawBudget() {
    for (const [part, value] of [[usd, view.budget.usd], [warn, view.budget.warn]]) {
      part.input.dataset.was = value;
      if (part.input !== document.activeElement) part.input.value = value;
    }
    typical.textContent = view.typical;
  }

  function drawDiff(node, head, lines) {
    node.hidden = !lines.length;
    node.replaceChildren(h('div', { class: 'larik-quiet' }, head), ...lines.map(line => h('code', {}, line)));
  }

  on('view', () => {
    view = model.get('view');
    clearTimeout(late);
    if (!places().some(place => place.role === at.role && place.then === at.then)) at = { role: here().role, then: -1 };
    drawProviders();
    drawPresets();
    drawRows();
    drawBudget();
    drawDiff(theirs, 'saved elsewhere meanwhile', view.theirs);
    drawDiff(diff, [`saving writes to ${view.file}; as text `, h('code', {}, view.words)], view.diff);
    save.disabled = !view.changes;
    leave.replaceChildren(view.changes ? 'Discard ' : 'Close ', mark('Esc'));
    help.replaceChildren(...view.keys.flatMap(([name, does]) => [h('dt', {}, mark(name)), h('dd', {}, does)]));
    leaving = false;
    tell(view.note);
  });
  focusWhenFresh(model, el, focusRow);
});
