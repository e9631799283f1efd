import { get } from '/api.js';
import { h, link, message, show, table, tag } from '/dom.js';
import { paged } from '/paged.js';

const TABS = {
  acls: ['ACLs', 'acls', [['Principal', one => one.principal], ['', one => tag(one.permission.toLowerCase(), one.permission === 'DENY' ? 'bad' : 'good')], ['Operation', one => one.operation],
    ['On', one => [one.kind, ' ', h('span', { className: 'mono' }, one.kind === 'cluster' ? '' : one.resource), one.pattern === 'prefixed' ? [' ', tag('prefix', 'note')] : null]], ['From', one => (one.host === '*' ? 'anywhere' : one.host), 'hide-narrow']], 'There are no ACLs.'],
  users: ['Users', 'users', [['User', one => one.name], ['SCRAM credentials', one => one.credentials.join('; ')]], 'No user has SCRAM credentials.'],
  quotas: ['Quotas', 'quotas', [['Of', one => one.entity], ['Quotas', one => one.quotas.map(each => h('div', { className: 'mono' }, each))]], 'There are no quotas.'],
  own: ['Yours', 'own', [['Topic', one => one.topic], ['You may', one => one.operations.map(each => each.toLowerCase().replaceAll('_', ' ')).join(', ') || 'describe']], 'There is no topic that you may see.'],
};

export async function accessPage({ content, parts, signal }) {
  const tab = parts[0] in TABS ? parts[0] : 'acls';
  const [, resource, columns, empty] = TABS[tab];
  const body = h('div');
  const note = h('div');
  let isRefused = false;
  await paged(body, {
    size: 1000, empty,
    read: async how => {
      const found = await get(resource, { filter: how.filter }, signal);
      isRefused = Boolean(found.refused);
      show(note, found.note ? message(found.note, isRefused ? 'warn' : '') : null, found.count > 1000 ? message(`The first 1000 of ${found.count} are shown: filter them.`, 'warn') : null);
      return { total: 0, rows: found[resource] };
    },
    draw: rows => table(columns, rows),
  });
  show(content, h('h1', null, 'Access'), h('div', { className: 'tabs' }, Object.entries(TABS).map(([key, [title]]) => link(`#/access/${key}`, title, key === tab ? { 'aria-current': 'page' } : {}))), note, isRefused ? h('p', null, link('#/access/own', 'What you may do')) : body);
}
