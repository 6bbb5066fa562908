'use strict';
// Charts by Chart.js, drawn again when the theme changes. Counts start at zero on every axis.

const drawn = new Map();  // canvas -> how it is made

function chart(title, height, make) {
  const canvas = el('canvas', {role: 'img', 'aria-label': title});
  const box = el('div', {class: 'plot' + (height ? ' ' + height : '')}, canvas);
  if (typeof Chart === 'undefined') return el('p', {class: 'note'}, 'built without Chart.js: no charts');
  return lazily(box, () => {
    Chart.defaults.animation = false;
    drawn.set(canvas, make);
    draw(canvas);
  });
}

function draw(canvas) {
  Chart.defaults.color = color('text');
  Chart.defaults.borderColor = color('grid');
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  const old = Chart.getChart(canvas);
  if (old) old.destroy();
  const config = drawn.get(canvas)();
  config.options = {responsive: true, maintainAspectRatio: false, ...config.options};
  new Chart(canvas, config);
}

onTheme(() => { for (const canvas of drawn.keys()) draw(canvas); });
addEventListener('beforeprint', () => { for (const canvas of drawn.keys()) Chart.getChart(canvas).resize(); });

function line(label, name, points, more) {
  return {label, data: points, borderColor: color(name), backgroundColor: color(name), borderWidth: 2, pointRadius: points.length < 40 ? 2.5 : 0,
          pointHitRadius: 6, ...more};
}

// Series of several runs, one behind the other; a gap between two.
function timeline(series) {
  const points = [];
  let offset = 0;
  series.forEach((moment, i) => {
    const last = series[i - 1];
    if (last && last.run !== moment.run) {
      offset += last.seconds;
      points.push({t: offset, gap: true});
    }
    const sameRun = last && last.run === moment.run;
    points.push({t: offset + moment.seconds, moment, earlier: sameRun ? points[points.length - 1] : null});
  });
  return points;
}

function timeUnit(points) {
  const end = points.length ? points[points.length - 1].t : 0;
  return end > 7200 ? [3600, 'hours'] : end > 180 ? [60, 'minutes'] : [1, 'seconds'];
}

function timeChart(title, yTitle, lines) {
  const points = timeline(report.series);
  const [unit, unitName] = timeUnit(points);
  const along = (value) => points.map((p) => ({x: p.t / unit, y: p.gap ? null : value(p, points)}));
  return el('figure', {}, el('h3', {}, title), chart(title, '', () => ({
    type: 'line',
    data: {datasets: lines.map(([label, name, value, more]) => line(label, name, along(value), more))},
    options: {
      parsing: false, normalized: true, spanGaps: false,
      scales: {
        x: {type: 'linear', min: 0, title: {display: true, text: unitName}},
        y: {beginAtZero: true, title: {display: true, text: yTitle}, ticks: {precision: 0, callback: whole}},
      },
      plugins: {legend: {display: lines.length > 1, labels: {boxWidth: 26, boxHeight: 1}}, tooltip: {callbacks: {title: (items) => items[0].parsed.x.toFixed(2) + ' ' + unitName}}},
    },
  })));
}

// Over a fiftieth of all the time at least: two moments that are close together would make a spike.
function rateOf(point, points) {
  const m = point.moment;
  let from = point.earlier;
  while (from && m.seconds - from.moment.seconds < points[points.length - 1].t / 50) from = from.earlier;
  const before = from ? from.moment : {seconds: 0, checks: 0};
  const time = m.seconds - before.seconds;
  return time > 0 ? Math.max(0, m.checks - before.checks) / time : null;
}

// A distance in ULP on an axis that shows zero: 0, then one step for each doubling from 1 on.
function ulpHeight(ulp) { return ulp <= 0 ? 0 : 1 + Math.log2(ulp); }
function ulpTick(height) {
  if (height === 0) return '0';
  const power = height - 1;
  return Number.isInteger(height) ? power < 14 ? String(2 ** power) : '2^' + power : '';
}

function ulpChart(plot, sides) {
  const integer = /^(i|u|bool)/.test(plot.dtype);
  const apart = (ulp) => integer && ulp >= 0 ? whole(ulp) : steps(ulp);
  if (plot.differing === 0) {
    return el('p', {}, 'No distances of ' + plot.output + ' are drawn: in the recorded run ' + sides[0] + ' and ' + sides[1] + ' agree in ' + (plot.elements === 1 ? 'its one element' : 'all ' + whole(plot.elements) + ' elements') +
        (plot.told === undefined ? '.' : '. The finding tells of ' + whole(plot.told) + ', seen in another run.'));
  }
  const most = Math.max(1, ...plot.ulp.map(ulpHeight));
  const hasNan = plot.ulp.includes(-1);
  const nanHeight = Math.ceil(most) + 2;
  const heights = plot.ulp.map((ulp) => ulp === -1 ? nanHeight : ulpHeight(ulp));
  const lastOf = (i) => Math.min(i * plot.bucket + plot.bucket, plot.elements) - 1;
  const title = (integer ? 'Difference' : 'ULP distance') + ' by element of ' + plot.output;
  const sameValue = plot.ulp.includes(-2);
  const what = plot.bucket === 1 ? 'Every element is shown.'
      : 'Each bar is ' + counted(plot.bucket, 'element', 'neighbouring elements') + ' and as high as the largest distance among them.';
  const told = plot.told === undefined ? '' :
      ' The finding tells of ' + whole(plot.told) + ' (after what the record allows, or in another run).';
  const box = chart(title, '', () => ({
    type: 'bar',
    data: {labels: plot.at.map((_, i) => i * plot.bucket), datasets: [{
      data: heights, minBarLength: sameValue ? 4 : 2, maxBarThickness: 26, categoryPercentage: 1, barPercentage: plot.at.length > 60 ? 1 : 0.8,
      backgroundColor: plot.ulp.map((ulp) => color(ulp === 0 ? 'grey' : ulp === -1 ? 'severe' : ulp === -2 ? 'second' : 'accent')),
    }]},
    options: {
      scales: {
        x: {grid: {display: false}, title: {display: true, text: 'element (row-major index)'}, ticks: {autoSkip: true, autoSkipPadding: 14, maxRotation: 0}},
        y: {min: 0, max: hasNan ? nanHeight : Math.ceil(most) + 1, title: {display: true, text: integer ? 'difference, doubling' : 'ULP, doubling'},
            ticks: {stepSize: most > 16 ? 4 : 1, callback: (h) => hasNan && h === nanHeight ? 'NaN' : h > most + 1 ? '' : ulpTick(h)}},
      },
      plugins: {legend: {display: false}, tooltip: {callbacks: {
        title: (items) => { const i = items[0].dataIndex; return plot.bucket === 1 ? 'element ' + plot.at[i] : 'elements ' + i * plot.bucket + ' to ' + lastOf(i); },
        label: (item) => { const i = item.dataIndex; return plot.ulp[i] === 0 ? 'equal' : (plot.ulp[i] === -2 ? 'equal in value, other bits' : apart(plot.ulp[i])) + (plot.bucket === 1 ? '' : ' at element ' + plot.at[i]); },
      }}},
    },
  }));
  return el('figure', {}, el('h3', {}, title), box, el('figcaption', {},
      sides[0] + ' against ' + sides[1] + ', ' + plot.dtype + ': ' + whole(plot.differing) + ' of ' + counted(plot.elements, 'element', 'elements') +
      (plot.elements === 1 ? ' differs' : ' differ') + ', at most ' + apart(plot.max_ulp) + '. ' + what + ' Grey at the base: equal.' + (sameValue ? ' Orange at the base: other bits of the same value, as of -0 and +0.' : '') + ' From 1 on, equal steps of height are doublings.' + told));
}

function tiny(v) { return v < 0.0001 ? v.toExponential(0).replace('-', '\u2212') : Number(v.toPrecision(2)).toString(); }

function sweepChart(sweep, sides) {
  const place = sweep.index < 0 ? ' along a seeded direction' : '[' + sweep.index + ']';
  const title = 'derivative at ' + sweep.output + place;
  const own = sweep.own.filter(([eps, value]) => eps !== null && value !== null && eps > 0);
  const values = [[sides[0], sweep.path[0], 'accent'], [sides[1], sweep.path[1], 'fourth'], ['f64 backward', sweep.truth, 'third']]
      .filter(([, value]) => value !== null);
  const rows = [['central difference in f64', short(sweep.quotient), 'error at most ' + (sweep.quotient_error === null ? 'unknown' : sweep.quotient_error.toExponential(1))],
    ...values.map(([who, value]) => [who, short(value), sweep.quotient === null ? '' : 'off by ' + Math.abs(value - sweep.quotient).toExponential(2) +
      (value * sweep.quotient < 0 && Math.abs(sweep.quotient) > sweep.quotient_error ? ', opposite sign' : '')])];
  const facts = table(['', 'value', ''], rows, [1]);
  if (own.length === 0) return el('figure', {}, el('h3', {}, title), facts);
  const low = Math.min(...own.map((p) => p[0])), high = Math.max(...own.map((p) => p[0]));
  const from = low === high ? low / 2 : low, to = low === high ? high * 2 : high;
  const level = (label, name, value, dash) => line(label, name, [{x: from, y: value}, {x: to, y: value}], {pointRadius: 0, borderDash: dash});
  // The lines lie close together where the quotient of a small eps is noise: a closer look says what it leaves out.
  const levels = [sweep.quotient, ...values.map(([, value]) => value)].filter((value) => value !== null);
  const middle = (Math.max(...levels) + Math.min(...levels)) / 2;
  const reach = Math.max(Math.max(...levels) - Math.min(...levels), sweep.quotient_error || 0, Math.abs(middle) * 1e-12) * 2;
  const outside = own.filter(([, y]) => Math.abs(y - middle) > reach).length;
  // Where the whole would draw the lines as one, the closer look comes first.
  const all = [...levels, ...own.map((p) => p[1])];
  let close = outside > 0 && Math.max(...levels) - Math.min(...levels) < (Math.max(...all) - Math.min(...all)) / 20;
  const box = chart(title, 'tall', () => ({
    type: 'line',
    data: {datasets: [
      line('quotient through the target\'s forward', 'second', own.map(([x, y]) => ({x, y})), {pointRadius: 4, showLine: true, borderWidth: 1.5, clip: {left: 6, right: 6, top: 0, bottom: 0}}),
      level('central difference in f64', 'text', sweep.quotient, [2, 3]),
      ...values.map(([who, value, name], i) => level(who, name, value, i === 1 ? [10, 5] : i === 2 ? [4, 4] : [])),
    ].filter((set) => set.data.every((p) => p.y !== null))},
    options: {
      parsing: false,
      scales: {x: {type: 'logarithmic', min: from, max: to, title: {display: true, text: 'eps'},
                   ticks: {autoSkip: false, maxRotation: 0, callback(v) { return (this.chart.width < 600 ? /^1e/ : /^[125]e/).test(v.toExponential(0)) ? tiny(v) : ''; }}},
               y: {title: {display: true, text: 'derivative'}, ...(close ? {min: middle - reach, max: middle + reach} : {}), ticks: {includeBounds: false, callback: (v) => Number(v.toPrecision(6)).toString()}}},
      plugins: {legend: {labels: {boxWidth: 26, boxHeight: 1}}},
    },
  }));
  const caption = el('figcaption', {});
  const say = () => {
    caption.textContent = close ? (outside ? counted(outside, 'quotient lies', 'quotients lie') + ' outside of this closer look.' : 'The closer look holds every point.')
        : 'The vertical axis spans what is drawn and need not begin at zero.';
    button.textContent = close ? 'all points' : 'closer to the lines';
  };
  const button = el('button', {type: 'button', class: 'zoom', onclick: () => { close = !close; say(); draw(box.querySelector('canvas')); }});
  say();
  return el('figure', {}, el('h3', {}, title), box, caption, button, facts);
}
