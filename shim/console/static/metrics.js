import { get } from '/api.js';
import { bytes, duration, h, message, number, show } from '/dom.js';

const EVERY_MS = 2000;
const MOST = 150;
const per = (text = number) => value => `${text(Math.round(value))}/s`;
const rate = (name, text) => ({ value: (now, before, s) => (now[name] - before[name]) / s, needs: name, text: text || per() });
const level = (name, text) => ({ value: now => now[name], needs: name, text: text || (value => number(Math.round(value))) });
const mean = (name, text) => ({ value: (now, before) => { const n = now[`${name}_count`] - before[`${name}_count`]; return n > 0 ? (now[`${name}_sum`] - before[`${name}_sum`]) / n : 0; }, needs: `${name}_count`, text });
const ms = value => (value >= 1 ? duration(value * 1000) : `${(value * 1000).toFixed(2)} ms`);
const PLOTS = [
  ['Bytes in', rate('kafka_server_brokertopicmetrics_bytesin_total', per(bytes))], ['Bytes out', rate('kafka_server_brokertopicmetrics_bytesout_total', per(bytes))],
  ['Records in', rate('kafka_server_brokertopicmetrics_messagesin_total')], ['Requests', rate('kafka_network_requestmetrics_requests_total')],
  ['Mean time of a request, with waiting', mean('kafka_shim_request_seconds', ms)], ['Mean lag of the event loop', mean('kafka_shim_loop_lag_seconds', ms)],
  ['Connections', level('kafka_shim_connections')], ['Requests that wait', level('kafka_server_delayedoperationpurgatory_numdelayedoperations')],
  ['Held back by transactions', level('kafka_shim_last_stable_offset_lag')], ['Oldest transaction', level('kafka_shim_oldest_transaction_seconds', value => duration(value * 1000))],
  ['Lag of groups', level('kafka_shim_group_lag')], ['Stored', level('kafka_shim_log_bytes', bytes)],
  ['CPU', { ...rate('process_cpu_seconds_total'), text: value => `${(100 * value).toFixed(0)} %` }], ['Memory', level('process_resident_memory_bytes', bytes)],
];
// Kept while the page is open, so that coming back shows what was.
const history = [];

export async function metricsPage({ content, signal }) {
  const grid = h('div', { className: 'plots' });
  const note = h('div');
  const read = async () => {
    const { sums } = await get('metrics', {}, signal);
    history.push({ at: performance.now(), sums });
    if (history.length > MOST) history.shift();
    show(note);
    show(grid, PLOTS.filter(([, one]) => one.needs in sums).map(([title, one]) => plot(title, one)));
  };
  const step = async () => {
    if (signal.aborted) return;
    if (!document.hidden) {
      try { await read(); } catch (error) { if (error.name === 'AbortError') return; show(note, message(error.message, 'bad')); }
    }
    setTimeout(step, EVERY_MS);
  };
  show(content, h('h1', null, 'Metrics'), h('p', { className: 'soft' }, 'Every two seconds, while this page is open.'), note, grid);
  await step();
}

function plot(title, { value, needs, text }) {
  const points = [];
  for (let at = 1; at < history.length; at += 1) {
    const [before, now] = [history[at - 1], history[at]];
    if (needs in before.sums && needs in now.sums) points.push([now.at, Math.max(0, value(now.sums, before.sums, (now.at - before.at) / 1000))]);
  }
  const last = points.length ? text(points[points.length - 1][1]) : '…';
  const most = Math.max(...points.map(([, y]) => y), 1e-9);
  const end = history[history.length - 1].at;
  const x = at => 300 - (end - at) / EVERY_MS * (300 / (MOST - 1));
  const line = points.map(([at, y], number_) => `${number_ ? 'L' : 'M'}${x(at).toFixed(1)} ${(68 - 64 * y / most).toFixed(1)}`).join('');
  return h('figure', null, h('figcaption', null, title, h('b', null, last)),
    h('svg', { className: 'plot', viewBox: '0 0 300 70', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: ${last}` },
      points.length > 1 ? h('path', { className: 'area', d: `${line}L300 70L${x(points[0][0]).toFixed(1)} 70Z` }) : null, points.length ? h('path', { d: line }) : null),
    points.length ? h('div', { className: 'soft small' }, `up to ${text(most < 1e-8 ? 0 : most)}`) : null);
}
