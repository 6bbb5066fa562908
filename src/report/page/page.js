'use strict';
// The page from top to bottom: the answer, how the campaign went, all findings, each one, and what proves little.

const report = JSON.parse(document.getElementById('data').textContent);
const findings = report.findings;
const main = document.getElementById('main');
const parts = findings.map((f, i) => findingPart(f, i + 1));

function openPart(number) {
  const part = parts[number - 1];
  part.hidden = false;
  part.open = true;
  fillPart(part, findings[number - 1]);
  return part;
}

function linkTo(number, words) { return el('a', {href: '#f' + number}, words); }

const mostAtTheTop = 6;

// Findings of one class in one output, whatever the dtype and the experiment.
function grouped(numbered) {
  const groups = new Map();
  for (const [f, number] of numbered) {
    const key = JSON.stringify([f['class'], f.op, f.output]);
    groups.set(key, [...(groups.get(key) || []), [f, number]]);
  }
  return [...groups.values()];
}

function topLine(group) {
  const [f, number] = group[0];
  const all = (of) => [...new Set(group.map(([one]) => of(one)))].filter((v) => v).join(', ');
  const replays = group.map(([one]) => one.replay).filter((r) => r);
  const same = replays.reduce((sum, r) => sum + r.same, 0), runs = replays.reduce((sum, r) => sum + r.runs, 0);
  const seen = group.reduce((sum, [one]) => sum + one.seen, 0);
  const certain = [seen ? 'in ' + counted(seen, 'check', 'checks') : '', runs ? 'replayed ' + same + ' of ' + runs : '', replays.length < group.length ? (group.length === 1 ? '' : group.length - replays.length + ' ') + 'not replayed' : ''].filter((v) => v).join('; ');
  return el('li', {}, badge(f['class']),
      el('span', {}, linkTo(number, f.op + (f.output ? ', ' + f.output : '')), f.blame ? ' at ' + all((one) => one.blame) : '', ' \u00b7 ' + all((one) => one.dtype) + ' \u00b7 ' + all((one) => one.experiment),
          group.length > 1 ? ' \u00b7 ' + counted(group.length, 'signature', 'signatures') : '', el('br', {}), el('span', {class: 'soft'}, f.meaning)),
      el('span', {class: 'soft'}, certain));
}

function answer() {
  const fresh = findings.map((f, i) => [f, i + 1]).filter(([f]) => f.standing !== 'known');
  const open = fresh.length + Object.keys(report.without_bundle).filter((key) => !report.known_without_bundle.includes(key)).length + report.waiting;
  const words = report.answer.charAt(0).toUpperCase() + report.answer.slice(1);
  const sides = [report.target, report.against].filter((name) => name);
  const facts = [];
  if (sides.length) facts.push(sides.join(' against '));
  facts.push(report.seconds === null ? 'no counts: the campaign wrote neither summary.json nor stats.json'
      : counted(report.checks, 'check', 'checks') + ' in ' + duration(report.seconds) + ' by ' + counted(report.jobs, 'worker', 'workers'));
  facts.push(report.ledger ? 'known is what ' + report.ledger + ' lists' : 'no list of known findings was given (--ledger): all count as new');
  if (report.restarts) facts.push('workers restarted ' + counted(report.restarts, 'time', 'times'));
  const section = el('section', {class: 'answer ' + (open ? 'bad' : 'fine')}, el('h1', {}, words), el('p', {class: 'soft'}, facts.join(' · ')));
  if (report.seconds !== null && !report.ended) section.append(el('p', {class: 'note'}, 'Still running, or killed: the counts are those of its last second.'));
  if (report.problems.length) section.append(el('p', {class: 'note'}, counted(report.problems.length, 'file', 'files') + ' could not be read: see ', el('a', {href: '#negative'}, 'what proves little'), '.'));
  const bare = Object.keys(report.without_bundle).length;
  if (findings.length || bare) {
    section.append(el('p', {}, 'A finding is one way in which two runs that should agree do not, or in which one breaks a rule: one signature of operator, paths, dtype, output and class, however often it was seen. ',
        findings.length ? 'Its bundle is a folder with the smallest case that shows it. ' : '',
        bare ? [whole(bare) + (bare === 1 ? ' more was' : ' more were') + ' seen and not bundled; a smaller case may have turned into one of those that are: ', el('a', {href: '#unbundled'}, 'see which'), '.'] : ''));
  }
  if (fresh.length) {
    const groups = grouped(fresh);
    section.append(el('ul', {class: 'top'}, groups.slice(0, mostAtTheTop).map(topLine)));
    if (groups.length > mostAtTheTop) section.append(el('p', {}, el('a', {href: '#findings'}, 'and ' + whole(groups.length - mostAtTheTop) + ' more'), ' like these, less grave by class.'));
    section.append(el('p', {class: 'soft'}, 'See the first one again:'), command('replay', fresh[0][0].command));
  } else if (!open) {
    section.append(el('p', {}, report.checks === 0 ? 'Nothing was checked.' : 'Nothing to do. What was not looked at stands under ', report.checks === 0 ? '' : el('a', {href: '#negative'}, 'what proves little or nothing'), '.'));
  }
  return section;
}

function tile(value, words) { return el('div', {class: 'tile'}, el('b', {}, value), el('span', {class: 'soft'}, words)); }

function tiles() {
  const bare = Object.keys(report.without_bundle).length;
  const made = [tile(whole(findings.length), findings.length === 1 ? 'finding with a bundle' : 'findings with a bundle')];
  if (bare) made.push(tile(whole(bare), 'seen, not bundled'));
  if (report.seconds !== null) {
    const verdicts = report.checks_by_verdict;
    const proved = (verdicts.pass || 0) + (verdicts.finding || 0);
    const all = Object.values(verdicts).reduce((sum, n) => sum + n, 0);
    made.push(tile(whole(report.checks), 'checks'), tile(report.seconds > 0 ? whole(report.checks / report.seconds) : '0', 'checks a second'),
        tile(duration(report.seconds), report.ended ? 'of search' : 'so far'), tile(whole(Object.keys(report.checks_by_operator).length), 'operators'),
        tile(whole(report.corpus), 'cases in the corpus'), tile(percent(proved, all) || '0 %', 'of checks proved something'));
  }
  return el('div', {class: 'tiles'}, made);
}

function overTime() {
  if (report.series.length < 2) return el('p', {class: 'soft'}, 'No series.jsonl with two points: how it went over time is not known.');
  const series = report.series;
  const classes = classOrder.filter((cls) => series.some((m) => m.findings[cls]));
  const sum = (m) => Object.values(m.findings).reduce((all, n) => all + n, 0);
  const charts = [
    timeChart('Checks a second', 'checks / s', [['checks a second', 'accent', rateOf]]),
    timeChart('Checks', 'checks of a run', [['checks', 'accent', (p) => p.moment.checks]]),
    timeChart('Coverage', 'count', [['cases in the corpus', 'accent', (p) => p.moment.corpus],
      ...(series.some((m) => m.features) ? [['features', 'second', (p) => p.moment.features || null, {borderDash: [6, 3]}]] : [])]),
    timeChart('Findings seen, with a bundle or without', 'signatures', [['signatures', 'accent', (p) => sum(p.moment), {stepped: true}]]),
  ];
  const runs = new Set(series.map((m) => m.run)).size;
  const notes = [];
  if (runs > 1) notes.push(counted(runs, 'run', 'runs') + ' into this folder, one behind the other; the counts above are of the last.');
  if (report.series_lines > series.length) notes.push('Drawn from ' + whole(series.length) + ' of ' + whole(report.series_lines) + ' points.');
  if (classes.length) notes.push('At the end: ' + classes.filter((c) => series[series.length - 1].findings[c]).map((c) => series[series.length - 1].findings[c] + ' ' + c).join(', ') + '.');
  return el('div', {}, el('div', {class: 'columns pairs'}, charts), el('p', {class: 'soft'}, notes.join(' ')));
}

function bars(title, tally, order, labelOf) {
  const names = Object.keys(tally).sort(order || ((a, b) => tally[b] - tally[a] || (a < b ? -1 : 1)));
  const most = Math.max(1, ...Object.values(tally));
  const shown = names.slice(0, 25);
  const list = el('div', {class: 'bars'}, shown.map((name) => {
    const bar = el('span', {class: 'bar'});
    bar.style.width = 100 * tally[name] / most + '%';
    return [el('span', {class: 'label'}, labelOf ? labelOf(name) : name), bar, el('span', {class: 'count'}, whole(tally[name]))];
  }));
  return el('figure', {}, el('h3', {}, title), list, names.length > 25 ? el('figcaption', {}, (names.length - 25) + ' more with fewer') : null);
}

function findingsBy() {
  const stages = {};
  for (const f of findings) {
    const name = f.op + ', ' + (f.blame || 'no stage');
    stages[name] = (stages[name] || 0) + 1;
  }
  return el('div', {class: 'columns'}, bars('By class', report.findings_by_class, (a, b) => classOrder.indexOf(a) - classOrder.indexOf(b), badge),
      bars('By operator', report.findings_by_operator), bars('By stage to blame', stages));
}

function checksTable() {
  const verdicts = ['pass', 'finding', 'skip', 'vacuous', 'harness_error', 'died'].filter((v) => v !== 'died' || report.checks_by_verdict.died);
  const row = (name, tally) => [name, ...verdicts.map((v) => whole(tally[v] || 0))];
  const rows = Object.entries(report.checks_by_operator).map(([op, tally]) => row(op, tally));
  rows.push(row('all', report.checks_by_verdict));
  return table(['operator', ...verdicts], rows, verdicts.map((_, i) => i + 1));
}

function reasons(title, tally, what) {
  const entries = Object.entries(tally).sort((a, b) => b[1] - a[1]);
  if (entries.length === 0) return [];
  const sum = entries.reduce((all, [, n]) => all + n, 0);
  return [el('h3', {id: what === false ? 'unbundled' : null}, title + (what === false ? '' : ': ' + whole(sum))), el('ul', {class: 'reasons'}, entries.map(([reason, n]) => el('li', {}, el('b', {}, whole(n)), reason)))];
}

function sentences(title, lines) {
  return lines.length ? [el('h3', {}, title), el('ul', {}, lines.map((line) => el('li', {}, line)))] : [];
}

function negativeSpace() {
  const time = Object.entries(report.seconds_by_experiment);
  const allTime = time.reduce((sum, [, s]) => sum + s, 0);
  const cannot = Object.entries(report.experiments_by_operator).flatMap(([op, tally]) => Object.entries(tally)
      .filter(([, counts]) => !counts.pass && counts.checks).map(([name, counts]) => op + ', ' + name + ': ' + counted(counts.checks, 'check', 'checks') + ', none passed'));
  const never = Object.entries(report.experiments_by_operator).map(([op, tally]) => {
    const missing = ['pair', 'repeat', 'threads', 'relation', 'gradient', 'history'].filter((name) => !tally[name]);
    return missing.length ? op + ': never ' + missing.join(', ') : '';
  }).filter((line) => line);
  return [
    report.seconds === null ? null : el('h3', {}, 'Checks by operator and verdict'), report.seconds === null ? null : checksTable(),
    allTime > 0 ? [el('h3', {}, 'Where the time went'), table(['experiment', 'seconds', 'share'], time.sort((a, b) => b[1] - a[1]).map(([name, s]) => [name, s.toFixed(1), percent(s, allTime)]), [1, 2])] : null,
    reasons('Skipped', report.skipped), reasons('Vacuous: equal, but proves little', report.vacuous), reasons('Not judged', report.not_judged), reasons('Not checked', report.not_checked),
    sentences('Experiments that could not show anything', cannot), sentences('Experiments that never ran', never),
    sentences('Not asked, because the record leaves it out, and what to add', Object.keys(report.unasked)),
    reasons('Seen without a bundle of its own (a bundle may show it under the signature that its smallest case has)', report.without_bundle, false),
    report.waiting ? el('p', {}, 'Not bundled yet: ' + counted(report.waiting, 'file', 'files') + ' in found/; the next fusediff fuzz into this folder goes on with it.') : null,
    sentences('In the ledger and no longer seen', report.vanished.map((entry) => entry.signature + (entry.issue ? ' (' + entry.issue + ')' : ''))),
    sentences('Damaged files', report.problems),
  ].flat(2).filter((part) => part);
}

startTheme(document.getElementById('theme'));
document.getElementById('folder').textContent = report.folder;
document.title = report.answer + ' \u2013 fusediff ' + report.folder;
main.append(answer(), tiles(), el('h2', {}, 'Over time'), overTime());
if (findings.length) {
  main.append(el('h2', {}, 'Findings by class, operator and stage'), findingsBy(),
      el('h2', {id: 'findings'}, 'All findings'), findingsTable(findings, parts),
      el('h2', {}, 'Each finding'), openAll(parts), el('div', {}, parts));
} else {
  main.append(el('h2', {id: 'findings'}, 'Findings'), el('p', {}, 'None with a bundle.'));
}
main.append(el('h2', {id: 'negative'}, 'What proves little or nothing'), ...negativeSpace());

function follow() {
  const target = /^#f(\d+)$/.exec(location.hash);
  if (!target || !parts[target[1] - 1]) return;
  const part = openPart(Number(target[1]));
  part.scrollIntoView();
  part.querySelector('summary').focus({preventScroll: true});
}
addEventListener('hashchange', follow);
document.addEventListener('click', (event) => {  // the same address again says nothing to hashchange
  const link = event.target.closest && event.target.closest('a[href^="#f"]');
  if (link && link.hash === location.hash) follow();
});
follow();
