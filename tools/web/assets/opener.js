// SPDX-License-Identifier: Apache-2.0
// The fields for what opens a volume or a file: a passphrase, or a private key and its passphrase.
import { giveSecret } from './api.js';
import { pathField } from './chooser.js';
import { h } from './dom.js';
import { passphrase, segmented } from './fields.js';
import { t } from './i18n.js';

// addTo(body) sets what a command shows; giveTo(body) also hands the secrets over.
export function openerFields({ optional = false, onchange, first = false } = {}) {
  const secret = passphrase(t('opener.passphrase'), { first });
  const identity = pathField(t('opener.identity'), { mode: 'files', hint: t('opener.identity.hint'), onchange });
  const keySecret = passphrase(t('opener.key_passphrase'), { hint: t('opener.key_passphrase.hint') });
  const key = h('div.stack.tight', { hidden: true }, identity, keySecret.node);
  const kind = segmented(t('opener.label'), [...(optional ? ['nothing'] : []), 'passphrase', 'identity'].map((value) => ({ value, label: t(`opener.kind.${value}`) })),
    optional ? 'nothing' : 'passphrase', () => {
      show();
      onchange?.();
    });
  const show = () => {
    secret.node.hidden = kind.value !== 'passphrase';
    key.hidden = kind.value !== 'identity';
  };
  show();
  return {
    node: h('div.stack', kind, secret.node, key),
    fail: (text) => secret.fail(text),
    clear: () => [secret, keySecret].forEach((one) => one.clear()),
    isValid: () => {
      if (kind.value === 'passphrase') return secret.isValid();
      if (kind.value === 'identity' && !identity.path()) {
        identity.fail(t('field.needed'));
        return false;
      }
      return true;
    },
    addTo: (body) => {
      if (kind.value === 'identity') body.identity = identity.path();
    },
    giveTo: async (body) => {
      if (kind.value === 'identity') body.identity = identity.path();
      const used = kind.value === 'passphrase' ? secret : kind.value === 'identity' && !keySecret.isEmpty() ? keySecret : null;
      if (used) body.secret = await giveSecret(used.take());
    },
  };
}
