// SPDX-License-Identifier: Apache-2.0
// What every page uses: dialogs, messages, errors, commands to copy, empty states.
import { fill, freshId, h } from './dom.js';
import { sentence } from './format.js';
import { icon } from './icons.js';
import { t, tOr } from './i18n.js';

let polite = null;
let toasts = null;

const toastCountMax = 3;

export function makeLiveRegions() {
  polite = h('div.visually-hidden', { 'aria-live': 'polite', role: 'status' });
  toasts = h('div.toasts', { 'aria-live': 'polite', role: 'log', 'aria-label': t('ui.messages') });
  return [polite, toasts];
}

export function announce(text) {
  if (polite) polite.textContent = text;
}

export function toast(text, kind = 'info') {
  const close = h('button.button.icon-only.small', { type: 'button', 'aria-label': t('ui.close') }, icon('close'));
  const node = h('div.toast', icon(kind === 'bad' ? 'warning' : kind === 'ok' ? 'check' : 'info'),
    h('div.grow', text), close);
  close.addEventListener('click', () => node.remove());
  host().append(node);
  while (toasts.children.length > toastCountMax) toasts.firstChild.remove();
  setTimeout(() => node.remove(), kind === 'bad' ? 12000 : 6000);
}

// Messages must lie above an open dialog, which is in the browser's top layer.
function host() {
  const open = [...document.querySelectorAll('dialog[open]')].pop();
  if (open && toasts.parentNode !== open) {
    open.append(toasts);
    open.addEventListener('close', () => document.body.append(toasts), { once: true });
  }
  return toasts;
}

export function button(label, onclick, { kind = '', name, ...attributes } = {}) {
  return h(`button.button${kind ? `.${kind}` : ''}`, { type: 'button', onclick, ...attributes },
    name ? icon(name) : null, h('span', label));
}

export function iconButton(label, name, onclick, small = false) {
  return h(`button.button.icon-only${small ? '.small' : ''}`,
    { type: 'button', onclick, 'aria-label': label, title: label }, icon(name));
}

export const pill = (text, kind = '') => h(`span.pill${kind ? `.${kind}` : ''}`, text);

export function note(kind, ...content) {
  const name = kind === 'ok' ? 'check' : kind === 'warn' || kind === 'bad' ? 'warning' : 'info';
  return h(`div.note${kind ? `.${kind}` : ''}`, icon(name), h('div', ...content));
}

// What happened, where, what next, and the command that would do the same.
export function errorNote(error) {
  const next = error.code === 'away' ? t('error.away.next') : tOr(`hint.${error.hint || error.code}`, error.next);
  const what = error.code === 'away' ? t('error.away') : error.what || error.message;
  const node = note('bad', h('strong', sentence(what)),
    error.where && !what.includes(error.where) ? h('div.small.mono', error.where) : null,
    next ? h('div.small', h('b', t('error.next')), ' ', sentence(next)) : null,
    error.command ? h('details', h('summary', t('ui.command')), commandBox(error.command)) : null);
  node.setAttribute('role', 'alert');
  return node;
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(t('ui.copied'), 'ok');
  } catch {
    toast(t('ui.copy_failed'), 'bad');
  }
}

export function commandBox(command) {
  const box = h('div.command');
  const lines = [command].flat().filter(Boolean).join('\n');
  box.append(h('pre', { tabindex: '0', 'aria-label': t('ui.command') }, lines), h('div.row.apart',
    h('span.muted.small', t('ui.command_hint')),
    button(t('ui.copy'), () => copyText(lines), { kind: 'quiet.small', name: 'copy' })));
  return box;
}

// "Show as command": made anew each time it opens, from what the form holds then.
export function commandDetails(commandNow) {
  const body = h('div');
  const details = h('details', { class: 'show-command' }, h('summary', t('ui.show_command')), body);
  const renew = () => {
    if (details.open) body.replaceChildren(commandBox(commandNow()));
  };
  details.addEventListener('toggle', renew);
  details.renew = renew;
  return details;
}

export function empty(name, title, text, action) {
  return h('div.empty', icon(name), h('h2', title), text ? h('p', text) : null, action);
}

// The page of an address that names nothing.
export function unknownPage(name) {
  return { node: h('div.page', pageHead(t('unknown.title')), h('section.card', empty('info', t('unknown.heading', { name }), t('unknown.text'),
    h('a.button.primary', { href: '#/volumes' }, t('volume.all'))))) };
}

export function skeleton(lines = 3) {
  return h('div', { 'aria-hidden': 'true' }, Array.from({ length: lines }, () => h('div.skeleton')));
}

export function pageHead(title, text, ...actions) {
  return h('header.page-head', h('div', h('h1', { tabindex: '-1' }, title), text ? h('p', text) : null), actions);
}

// What a person chose in a dialog whose job then failed, by the dialog's name. Secrets are left out.
const drafts = new Map();
export const forgetDraft = (name) => drafts.delete(name);
const controlsOf = (node) => [...node.querySelectorAll('input:not([data-secret]), select')];
const isTicked = (control) => control.type === 'checkbox' || control.type === 'radio';

function keepDraft(name, node) {
  drafts.set(name, controlsOf(node).map((control) => (isTicked(control) ? control.checked : control.value)));
}

function restoreDraft(name, node) {
  const values = drafts.get(name);
  const controls = controlsOf(node);
  if (values?.length !== controls.length) return false;
  controls.forEach((control, index) => {
    const key = isTicked(control) ? 'checked' : 'value';
    if (control[key] === values[index]) return;
    control[key] = values[index];
    if (control.type === 'radio' && !control.checked) return;
    control.dispatchEvent(new Event('input', { bubbles: true }));
    control.dispatchEvent(new Event('change', { bubbles: true }));
  });
  return true;
}

// After a failure: the secrets were sent, and nothing keeps them.
function askForSecrets(node) {
  const empty = [...node.querySelectorAll('input[data-secret]')].find((control) => control.checkVisibility() && control.value === '');
  empty?.focus();
  return empty ? h('p.muted.small', t('form.type_again')) : null;
}

// A dialog in the browser's own top layer, which keeps the focus inside and gives it back.
// actions: [{label, kind, run}]; run may return a promise, and false keeps the dialog open.
// Resolves with the value of the action that closed it, or null.
// stays: only its actions close it, not Escape. draft: a name under which its choices are kept when
// the last action is taken, until forgetDraft().
export function dialog({ title, body, actions = [], wide = false, onopen, form = false, stays = false, draft = '' }) {
  return new Promise((resolve) => {
    const heading = freshId('dialog');
    const fault = h('div');
    const node = h(`dialog${wide ? '.wide' : ''}`, { 'aria-labelledby': heading });
    let value = null;
    const close = (result) => {
      value = result;
      node.close();
    };
    const act = async (action, control) => {
      fault.replaceChildren();
      control.disabled = true;
      try {
        if (draft && action === actions[actions.length - 1]) keepDraft(draft, content);
        const result = action.run ? await action.run() : true;
        if (result !== false) close(result);
      } catch (error) {
        fill(fault, errorNote(error), askForSecrets(content));
        fault.scrollIntoView({ block: 'nearest' });
      } finally {
        control.disabled = false;
      }
    };
    const buttons = actions.map((action) => {
      const control = button(action.label, () => act(action, control), { kind: action.kind ?? '' });
      return control;
    });
    const content = h(form ? 'form.dialog-body' : 'div.dialog-body', body, fault);
    if (form) {
      content.addEventListener('submit', (event) => {
        event.preventDefault();
        buttons[buttons.length - 1].click();
      });
      content.append(h('button.visually-hidden', { type: 'submit', tabindex: '-1', 'aria-hidden': 'true' }));
    }
    node.append(h('div.dialog-head', h('h2', { id: heading }, title),
      stays ? null : iconButton(t('ui.close'), 'close', () => close(null))), content);
    if (stays) {
      // A second Escape would close it even though the first 'cancel' was refused.
      node.addEventListener('keydown', (event) => event.key === 'Escape' && event.preventDefault());
      node.addEventListener('cancel', (event) => event.preventDefault());
    }
    if (buttons.length) node.append(h('div.dialog-foot', buttons));
    node.addEventListener('close', () => {
      node.remove();
      resolve(value);
    });
    node.closeWith = close;
    document.body.append(node);
    node.showModal();
    if (draft && restoreDraft(draft, content)) content.prepend(h('p.muted.small', t('form.kept')));
    const first = node.querySelector('[data-first]') ?? content.querySelector('input, select, button, [tabindex="0"]');
    first?.focus();
    onopen?.(node);
  });
}

export function confirm(title, text, label, { danger = false, extra = null } = {}) {
  return dialog({ title, body: [h('p', text), extra], actions: [
    { label: t('ui.cancel'), run: () => null },
    { label, kind: danger ? 'danger.primary' : 'primary', run: () => true },
  ] });
}

// Tabs: [{id, label, make}]. The content of a tab is made when it is first shown.
export function tabs(label, entries, chosen, onchange) {
  const list = h('div.tabs', { role: 'tablist', 'aria-label': label });
  const panel = h('div', { role: 'tabpanel', tabindex: '-1' });
  panel.id = freshId('panel');
  const show = (id, focus) => {
    for (const tab of list.children) {
      const is = tab.dataset.id === id;
      tab.setAttribute('aria-selected', String(is));
      tab.tabIndex = is ? 0 : -1;
      if (is && focus) tab.focus();
      if (is) panel.setAttribute('aria-labelledby', tab.id);
    }
    panel.replaceChildren(entries.find((entry) => entry.id === id).make());
    onchange?.(id);
  };
  for (const entry of entries) {
    list.append(h('button', { type: 'button', role: 'tab', id: freshId('tab'), 'data-id': entry.id,
      'aria-controls': panel.id, onclick: () => show(entry.id) }, entry.label));
  }
  list.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const index = entries.findIndex((entry) => entry.id === document.activeElement.dataset.id);
    show(entries[(index + step + entries.length) % entries.length].id, true);
    event.preventDefault();
  });
  show(entries.some((entry) => entry.id === chosen) ? chosen : entries[0].id);
  return { node: h('div.stack', list, panel), show };
}

export const named = (prefix, name) => tOr(`${prefix}.${name}`, name);
