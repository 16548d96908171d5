// What a conversation has cost: the sum beside its budget, the spend as steps, and by model, role and cell.

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 120;
const LEFT = 52;
const RIGHT = 10;
const TOP = 12;
const BOTTOM = 18;

function drawn(name, properties, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(properties)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

/** Return round amounts for the axis, three or fewer above nought, the last no less than `most`. */
function marksUpTo(most) {
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(by => by * power).find(by => by >= rough);
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count }, (_, index) => step * (index + 1));
}

function money(usd) {
  if (usd >= 0.1) return `$${usd.toFixed(2)}`;
  return `$${Number(usd.toPrecision(2))}`;
}

export default panel(({ model, el, h, on, send, say, signal }) => {
  const sum = h('div', { class: 'larik-meter-sum' });
  const bar = h('div', { class: 'larik-meter-budget', hidden: true });
  const lines = h('div', { class: 'larik-meter-lines' });
  const plot = h('figure', { class: 'larik-meter-plot' });
  const tables = h('div', { class: 'larik-meter-tables' });
  const close = h('button', { on: { click: () => send({ type: 'leave' }) } }, 'Close ', h('kbd', { 'aria-hidden': 'true' }, 'Esc'));
  el.append(
    h(
      'section',
      {
        class: 'larik-card larik-meter',
        'aria-label': 'Cost',
        on: {
          keydown: event => {
            if (event.key !== 'Escape') return;
            event.preventDefault();
            event.stopPropagation();
            send({ type: 'leave' });
          }
        }
      },
      h('div', { class: 'larik-row larik-meter-head' }, sum, close),
      bar,
      lines,
      plot,
      tables
    )
  );

  function drawBudget({ usd, share, warn, level, words }) {
    const filled = h('span', { class: 'larik-meter-fill' });
    filled.style.width = `${Math.min(share, 1) * 100}%`;
    const tick = h('span', { class: 'larik-meter-tick', title: `warning at ${Math.round(warn * 100)} %` });
    tick.style.left = `${warn * 100}%`;
    return [
      h(
        'div',
        {
          class: `larik-meter-track larik-is-${level}`,
          role: 'meter',
          'aria-label': 'Budget',
          'aria-valuemin': 0,
          'aria-valuemax': usd,
          'aria-valuenow': Math.min(share, 1) * usd,
          'aria-valuetext': words
        },
        filled,
        tick
      ),
      h('div', {}, words)
    ];
  }

  function drawPlot(view) {
    const { steps, budget } = view;
    const most = Math.max(...steps.map(step => step.usd), 0);
    plot.hidden = steps.length < 2 || most === 0;
    if (plot.hidden) return;
    const width = Math.max(plot.clientWidth || el.clientWidth || 600, 240);
    const limit = budget && budget.usd <= most * 2 ? budget.usd : null;
    const marks = marksUpTo(Math.max(most, limit ?? 0));
    const top = marks.at(-1);
    const x = place => LEFT + ((width - LEFT - RIGHT) * place) / steps.length;
    const y = usd => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * usd) / top;
    let path = `M${x(0)} ${y(0)}`;
    steps.forEach((step, index) => {
      path += `V${y(step.usd)}H${x(index + 1)}`;
    });
    const words = `Spend over ${steps.length} turns, up to ${view.total}`;
    const svg = drawn('svg', { width, height: HEIGHT, role: 'img', 'aria-label': words });
    for (const mark of marks) {
      svg.append(
        drawn('line', { class: 'larik-meter-grid', x1: LEFT, x2: width - RIGHT, y1: y(mark), y2: y(mark) }),
        drawn('text', { class: 'larik-meter-label', x: LEFT - 6, y: y(mark) + 4, 'text-anchor': 'end' }, money(mark))
      );
    }
    svg.append(
      drawn('line', { class: 'larik-meter-axis', x1: LEFT, x2: width - RIGHT, y1: y(0), y2: y(0) }),
      drawn('path', { class: 'larik-meter-area', d: `${path}V${y(0)}Z` }),
      drawn('path', { class: 'larik-meter-line', d: path })
    );
    if (limit !== null) {
      svg.append(
        drawn('line', { class: 'larik-meter-limit', x1: LEFT, x2: width - RIGHT, y1: y(limit), y2: y(limit) }),
        drawn('text', { class: 'larik-meter-label', x: width - RIGHT, y: y(limit) - 4, 'text-anchor': 'end' }, 'budget')
      );
    }
    const every = Math.ceil(steps.length / Math.max(1, Math.floor((width - LEFT) / 44)));
    steps.forEach((step, index) => {
      const middle = (x(index) + x(index + 1)) / 2;
      if (index % every === 0) {
        svg.append(drawn('text', { class: 'larik-meter-label', x: middle, y: HEIGHT - 4, 'text-anchor': 'middle' }, step.cell));
      }
      const about = [`turn ${index + 1} ${step.cell}: ${step.cost}, ${step.spec}`, ...step.notices].join('\n');
      const hit = drawn('rect', { class: 'larik-meter-hit', x: x(index), y: TOP, width: x(index + 1) - x(index), height: HEIGHT - TOP - BOTTOM });
      hit.append(drawn('title', {}, about));
      svg.append(hit);
      if (step.notices.length) {
        const flag = drawn('path', { class: 'larik-meter-flag', d: `M${middle} ${y(step.usd) - 2}l-4 -8h8z` });
        flag.append(drawn('title', {}, about));
        svg.append(flag);
      }
    });
    const flags = steps.flatMap((step, index) => step.notices.map(text => h('li', {}, `turn ${index + 1}: ${text}`)));
    const notices = flags.length
      ? h('details', {}, h('summary', {}, `${flags.length} notice${flags.length === 1 ? '' : 's'} on the way`), h('ul', {}, flags))
      : null;
    const wasOpen = plot.querySelector('details')?.open;
    plot.replaceChildren(svg, ...(notices ? [notices] : []));
    if (notices && wasOpen) notices.open = true;
  }

  function find(cell) {
    return [...document.querySelectorAll('.jp-InputArea-prompt')].find(node => node.textContent.trim() === `${cell}:`);
  }

  function drawTable(head, rows, whole, isCells) {
    return h(
      'table',
      { class: 'larik-meter-table' },
      h('caption', { class: 'larik-hidden' }, `Cost by ${head}`),
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, head), h('th', { scope: 'col' }, 'cost'), h('th', { scope: 'col' }, 'share'), h('th', { scope: 'col' }, 'turns and tokens'))),
      h(
        'tbody',
        {},
        rows.map(row => {
          const share = h('span', { class: 'larik-meter-bar' });
          share.style.width = `${whole ? Math.max((100 * row.usd) / whole, row.usd ? 2 : 0) : 0}%`;
          const name =
            isCells && document.querySelector('.jp-InputArea-prompt')
              ? h('button', { class: 'larik-meter-cell', 'aria-label': `go to cell ${row.name}`, on: { click: () => find(row.name)?.scrollIntoView({ block: 'center' }) } }, row.name)
              : row.name;
          return h(
            'tr',
            {},
            h('th', { scope: 'row' }, name),
            h('td', { class: 'larik-meter-cost' }, row.cost),
            h('td', { class: 'larik-meter-share' }, h('span', { class: 'larik-hidden' }, whole ? `${Math.round((100 * row.usd) / whole)} %` : 'none'), share),
            h('td', { class: 'larik-quiet' }, `${row.turns} turn${row.turns === 1 ? '' : 's'} · ${row.tokens}`)
          );
        })
      )
    );
  }

  function draw() {
    const view = model.get('view');
    const whole = view.models.reduce((all, row) => all + row.usd, 0);
    sum.replaceChildren(
      h('span', { class: 'larik-meter-figure' }, view.total),
      ' ',
      h('span', { class: 'larik-quiet' }, `in ${view.steps.length} turn${view.steps.length === 1 ? '' : 's'}${view.running ? ' · ● a turn is under way' : ''}`)
    );
    bar.hidden = !view.budget;
    if (view.budget) bar.replaceChildren(...drawBudget(view.budget));
    const said = Object.entries(view.lines).filter(([name]) => name !== 'budget');
    lines.replaceChildren(...said.map(([name, text]) => h('div', {}, h('span', { class: 'larik-quiet' }, `${name} `), text)));
    tables.replaceChildren(
      ...(view.models.length ? [drawTable('model', view.models, whole)] : []),
      ...(view.roles.length > 1 ? [drawTable('role', view.roles, whole)] : []),
      ...(view.cells.length > 1 ? [drawTable('dearest cells', view.cells, whole, true)] : [])
    );
    drawPlot(view);
    if (!view.running && view.steps.length) say(`${view.total} in ${view.steps.length} turns`);
  }

  on('view', draw);
  const watcher = new ResizeObserver(() => drawPlot(model.get('view')));
  watcher.observe(el);
  signal.addEventListener('abort', () => watcher.disconnect());
});
