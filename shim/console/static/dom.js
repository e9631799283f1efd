// Elements are made here alone. What is shown is always text: no string becomes HTML.

export function h(name, attributes, ...children) {
  const svg = name === 'svg' || name === 'path';
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'value') element.value = value;
    else element.setAttribute(key === 'className' ? 'class' : key, value === true ? '' : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

export function show(place, ...children) {
  place.replaceChildren();
  add(place, children);
}

export const link = (href, text, attributes) => h('a', { href, ...attributes }, text);
export const tag = (text, kind) => h('span', { className: `tag ${kind || ''}` }, text);
export const message = (text, kind) => h('div', { className: `message ${kind || ''}`, role: kind === 'bad' ? 'alert' : 'status' }, text);
export const field = (label, control) => h('label', { className: 'field' }, label, control);

// columns: [title, cell of a row, class]
export function table(columns, rows, empty) {
  if (!rows.length) return h('p', { className: 'soft' }, empty || 'There are none.');
  return h('div', { className: 'scroll', tabindex: '0' }, h('table', null,
    h('thead', null, h('tr', null, columns.map(([title, , kind]) => h('th', { className: kind, scope: 'col' }, title)))),
    h('tbody', null, rows.map(row => h('tr', null, columns.map(([, cell, kind]) => h('td', { className: kind }, cell(row))))))));
}

export const facts = pairs => h('dl', { className: 'facts' },
  pairs.filter(Boolean).map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))));

const whole = new Intl.NumberFormat('en-US');
export const number = value => (value === null || value === undefined ? '–' : whole.format(value));

// "1 record", "2 records".
export const counted = (value, noun) => `${number(value)} ${noun}${value === 1 ? '' : 's'}`;

export function bytes(value) {
  if (value === null || value === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${at ? value.toFixed(value < 10 ? 1 : 0) : value} ${units[at]}`;
}

const two = value => String(value).padStart(2, '0');

export function time(ms) {
  if (ms === null || ms === undefined || ms < 0) return '–';
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return String(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined || ms < 0) return '–';
  const seconds = Math.floor(ms / 1000);
  if (seconds < 1) return `${ms} ms`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor(seconds / 3600) % 24} h`;
}

export function later(action, ms) {
  let timer;
  return (...values) => { clearTimeout(timer); timer = setTimeout(() => action(...values), ms); };
}
