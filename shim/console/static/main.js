import { get, send } from '/api.js';
import { field, h, link, message, show, tag } from '/dom.js';
import { accessPage } from '/access.js';
import { allow } from '/changes.js';
import { clusterPage } from '/cluster.js';
import { groupPage, groupsPage } from '/groups.js';
import { metricsPage } from '/metrics.js';
import { topicPage, topicsPage } from '/topics.js';
import { transactionPage, transactionsPage } from '/transactions.js';

// name, title, key after "g", page
const ALL = [
  ['topics', 'Topics', 't', parts => (parts.length ? topicPage : topicsPage)],
  ['groups', 'Groups', 'o', parts => (parts.length ? groupPage : groupsPage)],
  ['transactions', 'Transactions', 'x', parts => (parts.length ? transactionPage : transactionsPage)],
  ['access', 'Access', 'a', () => accessPage],
  ['cluster', 'Cluster', 'c', () => clusterPage],
  ['metrics', 'Metrics', 'm', () => metricsPage],
];
let SECTIONS = ALL;

const content = document.getElementById('content');
const nav = document.getElementById('nav');
const who = document.getElementById('who');
const help = document.getElementById('help');
let leave = null;
let drawn = 0;

// #/topics/NAME/tab?from=... -> its parts, decoded, and its parameters
export function place() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(part => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { parts, query: new URLSearchParams(query || '') };
}

async function draw() {
  const mine = ++drawn;
  if (leave) leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const { parts, query } = place();
  const [name, , , choose] = SECTIONS.find(([one]) => one === parts[0]) || SECTIONS[0];
  for (const one of nav.children) {
    if (one.dataset.name === name) one.setAttribute('aria-current', 'page'); else one.removeAttribute('aria-current');
  }
  try {
    await choose(parts.slice(1))({ content, parts: parts.slice(1), query, signal });
  } catch (error) {
    if (error.name === 'AbortError' || mine !== drawn) return;
    if (error.status === 401) { await start(); return; }
    show(content, message(error.message, 'bad'), h('button', { onclick: draw }, 'Try again'));
  }
}

function drawLogin(session, problem, name) {
  const user = h('input', { type: 'text', name: 'user', autocomplete: 'username', required: true, value: name ?? '' });
  const password = h('input', { type: 'password', name: 'password', autocomplete: 'current-password', required: true });
  const submit = async event => {
    event.preventDefault();
    try {
      await send('session', 'POST', { user: user.value, password: password.value });
      await start();
    } catch (error) { drawLogin(session, error.message, user.value); }
  };
  show(content, h('form', { className: 'login', onsubmit: submit },
    h('h1', null, 'Log in'), h('p', { className: 'soft' }, `To ${session.bootstrap}, as a user of the broker (SASL). You see what this user's ACLs allow.`),
    problem && message(problem, 'bad'), field('User', user), field('Password', password), h('button', null, 'Log in')));
  (name ? password : user).focus();
}

async function start() {
  let session;
  try { session = await get('session'); } catch (error) { show(content, message(error.message, 'bad')); return; }
  allow(session.mayChange && session.isIn);
  show(who, session.mayChange && tag('changes allowed', 'warn'), h('span', { className: 'mono', title: 'the broker' }, session.bootstrap),
    session.user && h('span', null, session.user),
    session.user && h('button', { onclick: async () => { await send('session', 'DELETE'); await start(); } }, 'Log out'));
  SECTIONS = ALL.filter(([name]) => name !== 'metrics' || session.hasMetrics);
  if (!session.isIn) { show(nav); drawLogin(session); return; }
  show(nav, SECTIONS.map(([name, title]) => link(`#/${name}`, title, { 'data-name': name })));
  await draw();
}

// --- keys

const keys = () => [
  ['/', 'to the first field'], ['j  k', 'next and previous row'], ['Enter', 'open the row'],
  ['n  p', 'next and previous page'], ['r', 'read again'], ['g then a letter', SECTIONS.map(([, title, key]) => `${key} ${title}`).join(', ')],
  ['?', 'this help'],
];

function move(step) {
  const rows = [...content.querySelectorAll('tbody tr[tabindex], tbody tr td:first-child a, tbody tr td:first-child button')];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step))].focus();
}

let isGoing = false;
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape' && document.activeElement) { document.activeElement.blur(); return; }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.target.closest?.('dialog')) return;
  if (isGoing) {
    isGoing = false;
    const section = SECTIONS.find(([, , key]) => key === event.key);
    if (section) { location.hash = `#/${section[0]}`; event.preventDefault(); }
    return;
  }
  const acts = {
    g: () => { isGoing = true; setTimeout(() => { isGoing = false; }, 1500); },
    '/': () => { const first = content.querySelector('input, select'); if (first) first.focus(); },
    j: () => move(1), k: () => move(-1), r: () => draw(),
    n: () => content.querySelector('[data-key=n]:not(:disabled)')?.click(),
    p: () => content.querySelector('[data-key=p]:not(:disabled)')?.click(),
    '?': () => {
      show(help, h('h2', null, 'Keys'), h('table', null, h('tbody', null, keys().map(([key, what]) => h('tr', null, h('td', null, h('kbd', null, key)), h('td', null, what))))),
        h('form', { method: 'dialog' }, h('button', null, 'Close')));
      help.showModal();
    },
  };
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
});

// The address after # says which page is shown: following this link there would show another one.
document.querySelector('.skip').addEventListener('click', event => { event.preventDefault(); content.focus(); });
window.addEventListener('hashchange', draw);
start();
