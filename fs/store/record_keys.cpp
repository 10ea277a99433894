// SPDX-License-Identifier: Apache-2.0
#include "fs/store/record_keys.h"

#include "fs/store/genuine_check.h"
#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/seal.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

using metadata::KeyTree;

Result<> check_genuine(const FindSystemRow& find, const engine::RecordHeader& header,
                       ByteView record) {
  NACRE_ASSIGN(const auto since, find(metadata::system_key_genuine));
  if (!since) {
    NACRE_TRY(engine::verify_record_crc(record));
    return fail(ErrorCode::tampered,
                "the record is sealed under an older key, and the rows are lost that tell genuine "
                "records of that key from forged ones");
  }
  NACRE_ASSIGN(const std::uint64_t epoch, metadata::decode_u64(*since));
  if (header.epoch >= epoch) return {};
  NACRE_ASSIGN(const auto value, find(metadata::genuine_key_of(header.salt, header.counter)));
  if (value) {
    NACRE_ASSIGN(const auto digest, metadata::decode_genuine(*value));
    if (digest == engine::sha256(record)) return {};
  }
  NACRE_TRY(engine::verify_record_crc(record));
  return fail(ErrorCode::tampered,
              "the record is sealed under an older key, and is none of those that were there when "
              "the rotation of keys began: it was forged with that key");
}

Result<std::shared_ptr<const KeyTree::SessionKey>> RecordKeys::find(
    const engine::RecordHeader& header, ByteView record) const {
  if (const auto known = check_session(header); !known) {
    if (known.error().code == ErrorCode::tampered) NACRE_TRY(engine::verify_record_crc(record));
    return tl::unexpected(known.error());
  }
  if (keys_->is_superseded(header.epoch)) {
    NACRE_TRY(check_digest(header, record));
  } else if (is_surveyed_) {
    NACRE_TRY(check_surveyed(header, record));
  }
  return keys_->session_key(header.epoch, header.salt);
}

Result<> RecordKeys::authenticate(const engine::RecordHeader& header, ByteView record,
                                  Opener& opener) const {
  NACRE_ASSIGN(const auto session, find(header, record));
  if (opener.session != session) {
    NACRE_ASSIGN(opener.key, engine::AeadKey::create(session->suite, session->key.view()));
    opener.session = session;
  }
  // Without room for the plain bytes: it fails behind the tag.
  const auto opened =
      engine::unseal_record(*opener.key, session->suite, volume_id(), {}, record, {});
  if (opened.ok || opened.error != ErrorCode::tampered) return {};
  return fail(opened.error, opened.detail);
}

Result<> RecordKeys::check_digest(const engine::RecordHeader& header, ByteView record) const {
  return check_genuine(
      [&](std::string_view key) { return database_.get(metadata::Table::system, key); }, header,
      record);
}

// Without this check, a record that an attacker changed after the survey had read it would get
// another digest when compaction moves it.
Result<> RecordKeys::check_surveyed(const engine::RecordHeader& header, ByteView record) const {
  NACRE_ASSIGN(const auto value,
               database_.get(metadata::Table::system,
                             metadata::genuine_key_of(header.salt, header.counter)));
  if (!value) return {};
  NACRE_ASSIGN(const auto digest, metadata::decode_genuine(*value));
  if (digest == engine::sha256(record)) return {};
  NACRE_TRY(engine::verify_record_crc(record));
  return fail(ErrorCode::tampered,
              "the record has changed since the survey before this rotation of keys read it: the "
              "change was made with the volume's key");
}

Result<> RecordKeys::check_session(const engine::RecordHeader& header) const {
  const auto judge = [&](std::uint32_t epoch) -> Result<> {
    if (epoch == header.epoch) return {};
    return fail(ErrorCode::tampered, "the record names another key epoch than its write session");
  };
  {
    const LockGuard lock(mutex_);
    if (const auto at = known_.find(header.salt); at != known_.end()) return judge(at->second);
  }
  NACRE_ASSIGN(const auto value,
               database_.get(metadata::Table::system, metadata::session_key_of(header.salt)));
  if (!value) {
    return fail(
        ErrorCode::tampered,
        "the record is of a write session that this volume never had: it comes from another "
        "volume, or from a copy of this one that was written to");
  }
  NACRE_ASSIGN(const auto row, metadata::decode_session_row(*value));
  const LockGuard lock(mutex_);
  known_.emplace(header.salt, row.epoch);
  return judge(row.epoch);
}

void RecordKeys::admit(const engine::SessionSalt& salt, std::uint32_t epoch) {
  const LockGuard lock(mutex_);
  known_.emplace(salt, epoch);
}

}  // namespace nacre::fs
