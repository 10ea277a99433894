#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# RSA recipients of every size and form: 2048 to 8192 bits; public keys as SubjectPublicKeyInfo and
# PKCS#1; private keys as PKCS#8 and PKCS#1, plain and encrypted, under a file: URI, and in a PKCS#11
# token behind an OpenSSL engine.
. "$(dirname "$0")/command_harness.sh"
command -v openssl >/dev/null || { echo "skipped: $test_name: there is no openssl(1)"; exit 77; }

vectors=$(cd "$(dirname "$0")/../vectors/rsa" && pwd)
v=$work/volume
make_volume "$v"
opens() { expect 0 'generation' nacre key list "$v" --identity "$@"; }

declare -A source=([2048]=$vectors/test_key_pkcs8.pem)
for bits in 3072 4096 8192; do source[$bits]=$vectors/test_key_$bits.pem; done
for bits in 2048 3072 4096 8192; do
  key=$work/$bits
  openssl pkey -in "${source[$bits]}" -out "$key.pkcs8"
  openssl rsa -in "$key.pkcs8" -traditional -out "$key.pkcs1" 2>/dev/null
  openssl pkcs8 -topk8 -v2 aes256 -in "$key.pkcs8" -passout "file:$work/passphrase" -out "$key.pkcs8.locked"
  openssl rsa -in "$key.pkcs8" -traditional -aes256 -passout "file:$work/passphrase" \
    -out "$key.pkcs1.locked" 2>/dev/null
  openssl pkey -in "$key.pkcs8" -pubout -out "$key.spki"
  openssl rsa -in "$key.pkcs8" -RSAPublicKey_out -out "$key.public1" 2>/dev/null
  digits=$(openssl pkey -in "$key.pkcs8" -pubout -outform DER | sha256sum | cut -c 1-64)

  # Both forms are the same key: what one adds, the other finds there.
  expect 0 "Added RSA key ${digits:0:16} .$bits.spki.*fingerprint +$digits" \
    nacre key add "$v" --recipient "$key.spki" "${secret[@]}"
  expect 2 "${digits:0:16} is given twice" nacre key add "$v" --recipient "$key.public1" "${secret[@]}"
  expect 0 "rsa $bits +${digits:0:16}" nacre key list "$v"
  opens "$key.pkcs8"
  opens "$key.pkcs1"
  opens "$key.pkcs8.locked" "${secret[@]}"
  opens "$key.pkcs1.locked" "${secret[@]}"
  for locked in "$key.pkcs8.locked" "$key.pkcs1.locked"; do
    expect 16 'passphrase does not open the private key' \
      nacre key list "$v" --identity "$locked" --passphrase-file "$work/wrong"
    expect 2 'no terminal' nacre key list "$v" --identity "$locked"
  done
done
expect 2 'bits, not 2048 to 8192' nacre key add "$v" \
  --recipient "$vectors/refused_1024_bits.pem" "${secret[@]}"
expect 2 'not a plain RSA key' nacre key add "$v" \
  --recipient "$vectors/refused_elliptic_curve.pem" "${secret[@]}"

# --- A name that is a URI.
opens "file:$work/3072.pkcs8"
opens "file:$work/3072.pkcs8.locked" "${secret[@]}"
expect 16 'does not open it' nacre key list "$v" --identity "file:$work/3072.pkcs8.locked" \
  --passphrase-file "$work/wrong"
expect 2 'no terminal' nacre key list "$v" --identity "file:$work/3072.pkcs8.locked"
expect 8 'no store for this|no private key' nacre key list "$v" --identity "file:$work/nowhere"
expect 8 'no store for this.*provider' nacre key list "$v" --identity 'pkcs12345:object=x'
expect 8 "no engine 'nonsense'" nacre key list "$v" --identity 'engine:nonsense:key'
# A file's own name may look like one.
cp "$work/2048.pkcs8" "$work/my:key"
(cd "$work" && opens my:key)

# --- A token. The key cannot leave it; what it does for us must do.
module=
for place in /usr/lib/softhsm/libsofthsm2.so /usr/lib/*/softhsm/libsofthsm2.so; do
  [ ! -e "$place" ] || module=$place
done
engines=$(openssl version -e | cut -d'"' -f2)
if [ -z "$module" ] || ! command -v softhsm2-util >/dev/null || [ ! -e "$engines/pkcs11.so" ]; then
  skip_part "a PKCS#11 token" "softhsm2 and libengine-pkcs11-openssl are not installed"
  verdict
fi
export SOFTHSM2_CONF=$work/softhsm.conf PKCS11_MODULE_PATH=$module
mkdir "$work/tokens"
printf 'directories.tokendir = %s\nobjectstore.backend = file\nlog.level = ERROR\n' \
  "$work/tokens" >"$SOFTHSM2_CONF"
printf 4711 >"$work/pin"
softhsm2-util --init-token --free --label nacre --pin 4711 --so-pin 0815 >/dev/null 2>&1 &&
  softhsm2-util --import "$work/4096.pkcs8" --token nacre --label mine --id 01 --pin 4711 \
    >/dev/null 2>&1 || failed "softhsm2-util"
token='engine:pkcs11:pkcs11:token=nacre;object=mine;type=private'
opens "$token" --passphrase-file "$work/pin"
opens "$token" --passphrase-command 'printf 4711'
expect 16 'PIN' nacre key list "$v" --identity "$token" --passphrase-file "$work/wrong"
expect 2 'no terminal' nacre key list "$v" --identity "$token"
expect 16 'no private key has this name' nacre key list "$v" \
  --identity 'engine:pkcs11:pkcs11:token=nacre;object=other;type=private' --passphrase-file "$work/pin"
# Another key than any recipient's.
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$work/other.pem" 2>/dev/null
softhsm2-util --import "$work/other.pem" --token nacre --label other --id 02 --pin 4711 >/dev/null 2>&1
expect 16 'not among' nacre key list "$v" \
  --identity 'engine:pkcs11:pkcs11:token=nacre;object=other;type=private' --passphrase-file "$work/pin"
# It changes the keyring, too, and checks a volume.
expect 0 'Removed' nacre key remove "$v" 8192.spki --identity "$token" --passphrase-file "$work/pin"
expect 0 clean fsck.nacre --identity "$token" --passphrase-file "$work/pin" "$v"

verdict
