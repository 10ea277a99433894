// SPDX-License-Identifier: Apache-2.0
// Fields of forms: each has a label, a hint and a place for its fault, tied together for screen
// readers. Secrets are read once and cleared.
import { freshId, h, setPart } from './dom.js';
import { t } from './i18n.js';
import { iconButton } from './ui.js';
import { strength } from './strength.js';

export function field(label, control, { hint, group } = {}) {
  const input = group ?? control;
  const id = control.id || freshId('field');
  control.id = id;
  const hintNode = hint ? h('div.hint', { id: `${id}-hint` }, hint) : null;
  const fault = h('div.fault', { id: `${id}-fault`, hidden: true });
  control.setAttribute('aria-describedby', `${hint ? `${id}-hint ` : ''}${id}-fault`);
  const node = h('div.field', h('label', { htmlFor: id }, label), input, hintNode, fault);
  // fail(text) shows what is wrong and gives the field the focus; fail('') clears it.
  node.fail = (text) => {
    fault.textContent = text;
    fault.hidden = !text;
    control.setAttribute('aria-invalid', String(Boolean(text)));
    if (text) control.focus();
  };
  control.addEventListener('input', () => node.fail(''));
  node.control = control;
  return node;
}

export function textInput(value = '', attributes = {}) {
  return h('input.input', { type: 'text', value, autocomplete: 'off', spellcheck: 'false', ...attributes });
}

export function select(options, value, onchange) {
  const control = h('select.select', options.map((option) => h('option',
    { value: option.value, selected: option.value === value, disabled: option.disabled }, option.label)));
  if (onchange) control.addEventListener('change', () => onchange(control.value));
  return control;
}

// One choice of a few, each seen at once. Radio buttons underneath, so arrow keys work.
export function segmented(label, options, value, onchange) {
  const name = freshId('choice');
  const node = h('fieldset.field', h('legend', label), h('div.segmented', options.map((option) => h('label',
    { title: option.title }, h('input', { type: 'radio', name, value: option.value, checked: option.value === value,
      disabled: option.disabled, onchange: () => onchange?.(option.value) }), h('span', option.label)))));
  Object.defineProperty(node, 'value', {
    get: () => node.querySelector('input:checked')?.value,
    set: (wanted) => {
      for (const input of node.querySelectorAll('input')) input.checked = input.value === wanted;
    },
  });
  return node;
}

// Choices that need a sentence each.
export function choices(label, options, value, onchange) {
  const name = freshId('choice');
  const node = h('fieldset.stack.tight', h('legend', label), options.map((option) => h('label.choice',
    h('input', { type: 'radio', name, value: option.value, checked: option.value === value,
      onchange: () => onchange?.(option.value) }),
    h('div', h('strong', option.label), h('span.muted.small', option.text)))));
  Object.defineProperty(node, 'value', { get: () => node.querySelector('input:checked')?.value });
  return node;
}

export function check(label, checked = false, onchange, hint) {
  const input = h('input', { type: 'checkbox', checked, onchange: () => onchange?.(input.checked) });
  const node = h('label.check', input, h('span', label, hint ? h('span.muted.small', h('br'), hint) : null));
  node.input = input;
  return node;
}

// A passphrase that can be shown. `isNew`: with an estimate and a second field.
export function passphrase(label, { isNew = false, hint, first = false } = {}) {
  const make = () => h('input.input', { type: 'password', autocomplete: isNew ? 'new-password' : 'off',
    spellcheck: 'false', autocapitalize: 'off', 'data-first': first, 'data-secret': true });
  const input = make();
  const repeat = isNew ? make() : null;
  if (repeat) repeat.removeAttribute('data-first');
  const eye = iconButton(t('field.show_passphrase'), 'eye', () => {
    const shown = input.type === 'password';
    for (const control of [input, repeat]) if (control) control.type = shown ? 'text' : 'password';
    eye.setAttribute('aria-pressed', String(shown));
  });
  eye.setAttribute('aria-pressed', 'false');
  const main = field(label, input, { hint, group: h('div.input-group', input, eye) });
  if (!isNew) {
    return { node: main, input, isEmpty: () => input.value === '', fail: main.fail, clear: () => { input.value = ''; },
      take: () => take(input), isValid: () => valid(input, main) };
  }
  const bar = h('span');
  const meter = h('div.meter', { 'aria-hidden': 'true' }, bar);
  const words = h('div.small.muted', { 'aria-live': 'polite' }, t('strength.none'));
  const again = field(t('field.repeat'), repeat);
  input.addEventListener('input', () => {
    const found = strength(input.value);
    setPart(bar, found.share);
    bar.className = ['bad', 'bad', 'warn', 'ok', 'ok'][found.level];
    words.textContent = input.value === '' ? t('strength.none') : t(`strength.${found.level}`, { time: t(found.time.key, found.time) });
  });
  const node = h('div.stack.tight', main, meter, words, again);
  return { node, input, isEmpty: () => input.value === '' && repeat.value === '', fail: main.fail,
    clear: () => { input.value = repeat.value = ''; input.dispatchEvent(new Event('input')); },
    take: () => { repeat.value = ''; return take(input); },
    isValid: () => {
      if (!valid(input, main)) return false;
      if (input.value === repeat.value) return true;
      again.fail(t('field.differs'));
      return false;
    } };
}

function valid(input, node) {
  if (input.value !== '') return true;
  node.fail(t('field.needed'));
  return false;
}

// Reads and clears a field. A script cannot overwrite the characters of a string, but nothing keeps it.
function take(input) {
  const value = input.value;
  input.value = '';
  input.dispatchEvent(new Event('input'));
  return value;
}
