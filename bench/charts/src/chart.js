// Charts of a page, without anything from elsewhere: values under the pointer, lines shown and
// hidden by their names, and a stretch of x drawn out. A page without scripts keeps its drawings.
'use strict';
for (const chart of document.querySelectorAll('.chart')) {
  const svg = chart.querySelector('svg');
  const told = JSON.parse(chart.querySelector('script').textContent);
  const {box, x: whole, marks} = told;
  const make = (name, attributes) => {
    const made = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    svg.append(made);
    return made;
  };
  const groups = [...svg.querySelectorAll('g.line')];
  const lines = told.lines.map((line, at) => ({...line, group: groups[at], shown: true}));
  const ticks = svg.querySelector('g.ticks');
  const drawnTicks = ticks.innerHTML;
  const phase = svg.querySelector('.phase');
  const cursor = make('line', {class: 'cursor', y1: box.top, y2: box.bottom, visibility: 'hidden'});
  const span = make('rect', {class: 'span', y: box.top, height: box.bottom - box.top, width: 0});
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  chart.append(tip);
  let [from, to] = whole;
  let begun = null;
  let place = null;

  const left = (value) => box.left + ((value - from) / (to - from)) * (box.right - box.left);
  const value = (pixels) => from + ((pixels - box.left) / (box.right - box.left)) * (to - from);
  const clamp = (pixels) => Math.min(Math.max(pixels, box.left), box.right);
  const pixels = (event) => {
    const area = svg.getBoundingClientRect();
    return clamp(((event.clientX - area.left) / area.width) * svg.viewBox.baseVal.width);
  };
  const label = (number) => {
    const mark = marks.find(([at]) => Math.abs(at - number) < 1e-6);
    return mark ? mark[1] : String(Number(number.toPrecision(6)));
  };

  // Where a line is at an edge of what is shown, between two of its points.
  const between = (line, edge, at) => {
    const [x1, y1] = [line.x[at - 1], line.y[at - 1]];
    const [x2, y2] = [line.x[at], line.y[at]];
    return [edge, y1 + ((edge - x1) / (x2 - x1)) * (y2 - y1)];
  };

  function draw() {
    const isWhole = from === whole[0] && to === whole[1];
    for (const line of lines) {
      // Each piece between two gaps is a drawing of its own.
      line.group.querySelectorAll('polyline').forEach((drawing, piece) => {
        const points = [];
        const [first, end] = line.pieces[piece];
        for (let at = first; at < end; at++) {
          const x = line.x[at];
          for (const edge of [from, to]) {
            const isInside = at > first && line.x[at - 1] < edge && edge < x;
            if (isInside) points.push(between(line, edge, at));
          }
          if (x >= from && x <= to) points.push([x, line.y[at]]);
        }
        const text = points.map(([x, y]) => `${left(x).toFixed(1)},${y.toFixed(1)}`).join(' ');
        drawing.setAttribute('points', text);
      });
      line.group.querySelectorAll('circle').forEach((circle, at) => {
        const inside = line.x[at] >= from && line.x[at] <= to;
        circle.setAttribute('visibility', inside ? 'inherit' : 'hidden');
        if (inside) circle.setAttribute('cx', left(line.x[at]).toFixed(1));
      });
    }
    if (phase) {
      const begin = clamp(left(told.measured));
      phase.setAttribute('x', begin);
      phase.setAttribute('width', box.right - begin);
    }
    if (isWhole) ticks.innerHTML = drawnTicks;
    else drawTicks();
    chart.classList.toggle('drawn-out', !isWhole);
  }

  function drawTicks() {
    const model = ticks.querySelector('text');
    const at = [];
    if (marks.length) marks.forEach(([x]) => x >= from && x <= to && at.push(x));
    else {
      const rough = (to - from) / 6;
      const decade = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((one) => one * decade).find((one) => one >= rough);
      for (let x = Math.ceil(from / step) * step; x <= to; x += step) at.push(x);
    }
    ticks.replaceChildren(...at.map((x) => {
      const text = model.cloneNode();
      text.setAttribute('x', left(x).toFixed(1));
      text.setAttribute('text-anchor', left(x) > box.right - 1 ? 'end' : 'middle');
      text.textContent = label(x);
      return text;
    }));
  }

  // The values at the point of x that is nearest.
  function show(x) {
    const seen = lines.filter((line) => line.shown);
    let nearest = null;
    for (const line of seen) {
      for (const at of line.x) {
        if (at < from || at > to) continue;
        if (nearest === null || Math.abs(at - x) < Math.abs(nearest - x)) nearest = at;
      }
    }
    if (nearest === null) return hide();
    place = nearest;
    cursor.setAttribute('x1', left(nearest));
    cursor.setAttribute('x2', left(nearest));
    cursor.setAttribute('visibility', 'visible');
    const head = document.createElement('b');
    head.textContent = `${told.title} ${label(nearest)}`.trim();
    const rows = seen.flatMap((line) => {
      const at = line.x.indexOf(nearest);
      if (at < 0) return [];
      const row = document.createElement('div');
      const dot = document.createElement('span');
      dot.style.color = line.colour;
      dot.textContent = '\u25a0';
      row.append(dot, ` ${line.name} `, Object.assign(document.createElement('b'),
        {textContent: line.text[at]}));
      return [row];
    });
    tip.replaceChildren(head, ...rows);
    tip.hidden = false;
    const area = svg.getBoundingClientRect();
    const around = chart.getBoundingClientRect();
    const shift = (left(nearest) / svg.viewBox.baseVal.width) * area.width + area.left - around.left;
    const room = chart.clientWidth - tip.offsetWidth - 4;
    const beside = shift + 12 > room ? shift - tip.offsetWidth - 12 : shift + 12;
    tip.style.left = `${Math.max(0, Math.min(beside, room))}px`;
    tip.style.top = `${area.top - around.top + 14}px`;
  }

  function hide() {
    place = null;
    tip.hidden = true;
    cursor.setAttribute('visibility', 'hidden');
  }

  function stretch(a, b) {
    [from, to] = a < b ? [a, b] : [b, a];
    hide();
    draw();
  }

  svg.addEventListener('pointermove', (event) => {
    const at = pixels(event);
    if (begun !== null) {
      span.setAttribute('x', Math.min(begun, at));
      span.setAttribute('width', Math.abs(at - begun));
    }
    show(value(at));
  });
  svg.addEventListener('pointerleave', (event) => event.pointerType === 'touch' || hide());
  document.addEventListener('pointerdown', (event) => chart.contains(event.target) || hide());
  svg.addEventListener('pointerdown', (event) => {
    show(value(pixels(event)));
    if (event.pointerType === 'touch' || event.button !== 0) return;
    begun = pixels(event);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
    chart.focus({preventScroll: true});
  });
  svg.addEventListener('pointerup', (event) => {
    const start = begun;
    begun = null;
    span.setAttribute('width', 0);
    const end = pixels(event);
    if (start !== null && Math.abs(end - start) > 8) stretch(value(start), value(end));
  });
  svg.addEventListener('pointercancel', () => {
    begun = null;
    span.setAttribute('width', 0);
  });
  svg.addEventListener('dblclick', () => stretch(...whole));
  chart.addEventListener('keydown', (event) => {
    if (event.target !== chart) return;
    if (event.key === 'Escape') stretch(...whole);
    const way = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!way) return;
    event.preventDefault();
    const all = [...new Set(lines.filter((line) => line.shown).flatMap((line) => line.x))]
      .filter((x) => x >= from && x <= to).sort((a, b) => a - b);
    if (!all.length) return;
    const at = place === null ? (way > 0 ? -1 : all.length) : all.indexOf(place);
    show(all[Math.min(Math.max(at + way, 0), all.length - 1)]);
  });
  chart.querySelectorAll('.legend button').forEach((button, at) => {
    button.disabled = false;
    button.addEventListener('click', (event) => {
      const alone = event.shiftKey || event.altKey;
      const line = lines[at];
      const others = lines.some((other) => other !== line && other.shown);
      lines.forEach((other, number) => {
        if (alone) other.shown = !others && line.shown ? true : other === line;
        else if (other === line) other.shown = !other.shown;
        other.group.setAttribute('visibility', other.shown ? 'visible' : 'hidden');
        const name = chart.querySelectorAll('.legend button')[number];
        name.setAttribute('aria-pressed', String(other.shown));
      });
      hide();
    });
  });
  chart.querySelector('.hint').hidden = false;
}
