// SPDX-License-Identifier: Apache-2.0
// The 14 operations of the application in the papers (DES, AES and RSA encryption and decryption, and
// RSA key pairs, on CPU and GPU). Each link opens the form that is set up for it.
import { fill, h } from './dom.js';
import { t } from './i18n.js';
import { engine } from './store.js';
import { named } from './ui.js';

const rows = [['encrypt', 'des'], ['decrypt', 'des'], ['encrypt', 'aes'], ['decrypt', 'aes'], ['encrypt', 'rsa'], ['decrypt', 'rsa'], ['keys', 'rsa']];

export function classicalOperations(operation, method, engineName) {
  const list = h('ul.grid-2.classical');
  const draw = (available) => fill(list, rows.map(([what, how]) => h('li.row.apart.nowrap', h('span', t(`classical.${what}.${how}`)),
    h('span.row.nowrap', ['cpu', 'cuda'].map((name) => {
      const href = what === 'keys' ? `#/keys/${name}` : `#/files/${what}/${how}/${name}`;
      const is = what === operation && how === method && name === engineName;
      return h('a.button.small', { href, 'aria-current': is ? 'true' : null, 'data-classical': `${what}-${how}-${name}`,
        'aria-label': `${t(`classical.${what}.${how}`)}, ${named('engine', name)}`,
        title: available(name) ? null : t('classical.unavailable') }, named('engine', name));
    })))));
  draw(() => true);
  engine().then(({ engines }) => draw((name) => engines.find((one) => one.name === name)?.is_available)).catch(() => {});
  return h('section.card', h('h2', t('classical.title')), h('p.muted', t('classical.text')), list);
}
