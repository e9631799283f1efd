// What people change, where the console allows it: each in a dialog that says what will happen.
import { send } from '/api.js';
import { field, h, message, number, show, table, tag } from '/dom.js';

let isAllowed = false;
export const allow = given => { isAllowed = given; };

// A button that opens a dialog, or nothing where the console only reads.
export const changeButton = (text, open, kind, label) => isAllowed && h('button', { type: 'button', className: kind, 'aria-label': label, onclick: open }, text);

// fields: [label, control]; `act` gets the dialog's place for messages, and the dialog is closed once it has returned
// something; `confirm`: a name that is typed before anything is done.
function ask(title, { text, fields = [], confirm, done = 'Do it', kind, act, after }) {
  const dialog = h('dialog', { className: 'change', 'aria-label': title });
  const said = h('div', { 'aria-live': 'polite' });
  const typed = confirm && h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: confirm, autofocus: true });
  const go = h('button', { className: kind }, done);
  const check = () => { go.disabled = Boolean(typed) && typed.value !== confirm; };
  if (typed) typed.addEventListener('input', check);
  check();
  const submit = async event => {
    event.preventDefault();
    go.disabled = true;
    show(said);
    try {
      const result = await act({ said, confirm: typed && typed.value });
      if (result !== false) { dialog.close(); after?.(result); }
    } catch (error) { show(said, message(error.message, 'bad')); }
    check();
  };
  add(dialog, h('form', { onsubmit: submit }, h('h2', null, title), text && h('p', { className: 'soft' }, text),
    fields.map(([label, control]) => (label ? field(label, control) : control)),
    typed && field('Type its name: this cannot be undone', typed), said,
    h('div', { className: 'bar after' }, go, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'))));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const add = (element, child) => element.append(child);
const input = (attributes = {}) => h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', ...attributes });
const choice = options => h('select', null, options.map(([value, text]) => h('option', { value }, text)));
const whole = (control, name) => {
  if (!/^-?\d{1,15}$/.test(control.value.trim())) throw new Error(`${name} is a whole number.`);
  return Number(control.value);
};
const lines = (control, sign) => control.value.split('\n').filter(line => line.trim()).map(line => {
  const at = line.indexOf(sign);
  if (at < 1) throw new Error(`“${line}” is not name${sign}value.`);
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
});

export function createTopic(after) {
  const name = input({ required: true, maxlength: 249 });
  const partitions = input({ inputmode: 'numeric', placeholder: 'as the broker has it', size: 8 });
  const replicas = input({ inputmode: 'numeric', placeholder: 'as the broker has it', size: 8 });
  const configs = h('textarea', { rows: 3, placeholder: 'cleanup.policy=compact', spellcheck: 'false' });
  ask('Create a topic', {
    fields: [['Name', name], ['Partitions', partitions], ['Replicas', replicas], ['Options, one in each line', configs]],
    done: 'Create', after,
    act: () => send('topic/new', 'POST', {
      name: name.value.trim(), partitions: partitions.value ? whole(partitions, 'Partitions') : null,
      replicas: replicas.value ? whole(replicas, 'Replicas') : null, configs: Object.fromEntries(lines(configs, '=')),
    }),
  });
}

export function deleteTopic(name, after) {
  ask(`Delete ${name}`, {
    text: 'The topic is deleted with all its records, and the offsets that groups have committed in it.', confirm: name, done: 'Delete', kind: 'danger', after,
    act: ({ confirm }) => send('topic/delete', 'POST', { name, confirm }),
  });
}

export function setOption(topic, option, after) {
  const value = h('textarea', { rows: 2, spellcheck: 'false', value: option.isSensitive ? '' : option.value ?? '' });
  const unset = h('input', { type: 'checkbox' });
  ask(`${option.name} of ${topic}`, {
    text: option.documentation, done: 'Set', after,
    fields: [['Value', value], ['', h('label', { className: 'check' }, unset, 'take it back: as the broker has it')]],
    act: () => send('topic/configs', 'POST', unset.checked ? { name: topic, remove: [option.name] } : { name: topic, set: { [option.name]: value.value } }),
  });
}

export function produce(topic, after) {
  const key = h('textarea', { rows: 1, spellcheck: 'false' });
  const value = h('textarea', { rows: 6, spellcheck: 'false' });
  const hasKey = h('input', { type: 'checkbox' });
  const tombstone = h('input', { type: 'checkbox' });
  const headers = h('textarea', { rows: 2, placeholder: 'name: value', spellcheck: 'false' });
  const partition = h('select', null, h('option', { value: '' }, 'by key, or in turn'), topic.partitions.map(one => h('option', { value: one.partition }, one.partition)));
  key.addEventListener('input', () => { hasKey.checked = key.value !== ''; });
  tombstone.addEventListener('change', () => { value.disabled = tombstone.checked; });
  ask(`Write a record to ${topic.name}`, {
    fields: [['Key', key], ['', h('label', { className: 'check' }, hasKey, 'it has a key')], ['Value', value], ['', h('label', { className: 'check' }, tombstone, 'null: a tombstone')],
      ['Headers, one in each line', headers], ['Partition', partition]],
    done: 'Write', after,
    act: () => send('record/new', 'POST', {
      topic: topic.name, key: hasKey.checked ? key.value : null, value: tombstone.checked ? null : value.value,
      headers: lines(headers, ':'), partition: partition.value === '' ? null : Number(partition.value),
    }),
  });
}

export function endTransaction(name, after) {
  ask(`End the transaction of ${name}`, {
    text: 'What it has open is aborted, and its producer is fenced: it fails at its next request.', confirm: name, done: 'End it', kind: 'danger', after,
    act: ({ confirm }) => send('transaction/end', 'POST', { name, confirm }),
  });
}

export function resetOffsets(group, after) {
  const to = choice([['earliest', 'the oldest record'], ['latest', 'the end'], ['current', 'where it is, inside the log'], ['offset', 'an offset'], ['shift', 'so many records on'], ['time', 'a time']]);
  const value = input({ inputmode: 'numeric', value: '0' });
  const moment = h('input', { type: 'datetime-local', step: '1' });
  const topic = choice([['', 'all that it has committed'], ...[...new Set(group.offsets.map(one => one.topic))].map(name => [name, name])]);
  const valueField = field('Offset, or records (back with -)', value);
  const timeField = field('From', moment);
  const draw = () => { valueField.hidden = !['offset', 'shift'].includes(to.value); timeField.hidden = to.value !== 'time'; };
  to.addEventListener('change', draw);
  draw();
  const asked = () => {
    const reset = { name: group.name, topic: topic.value, to: to.value };
    if (to.value === 'time') {
      reset.value = new Date(moment.value).getTime();
      if (Number.isNaN(reset.value)) throw new Error('Choose a time.');
    } else if (!valueField.hidden) reset.value = whole(value, 'It');
    return reset;
  };
  ask(`Reset the offsets of ${group.name}`, {
    text: 'Only while the group has no members. Nothing is moved before you have seen where to.', fields: [['Topic', topic], ['To', to], ['', valueField], ['', timeField]], done: 'Show where to',
    act: async () => {
      const wanted = asked();
      return { wanted, moves: (await send('group/offsets', 'POST', wanted)).moves };
    },
    after: ({ wanted, moves }) => ask(`Move ${number(moves.length)} offset${moves.length === 1 ? '' : 's'} of ${group.name}`, {
      confirm: group.name, done: 'Move them', kind: 'danger', after,
      fields: [['', table([['Topic', one => one.topic], ['Partition', one => one.partition, 'n'], ['Now', one => number(one.committed), 'n'],
        ['Then', one => [number(one.offset), one.offset === one.wanted ? null : [' ', tag(`not ${one.wanted}`, 'warn')]], 'n']], moves)]],
      act: ({ confirm }) => send('group/offsets', 'POST', { ...wanted, confirm }),
    }),
  });
}
