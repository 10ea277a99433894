// SPDX-License-Identifier: Apache-2.0
#include "fs/store/write_session.h"

#include <chrono>

#include "gpu_engine/kdf/kdf.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

using metadata::Table;

Result<std::shared_ptr<WriteSession>> begin_write_session(metadata::Database& database,
                                                          const metadata::KeyTree& keys) {
  NACRE_ASSIGN(const auto value, database.get(Table::system, metadata::system_key_next_session));
  if (!value) return fail(ErrorCode::corrupt, "the database has no row 'next_session'");
  auto session = std::make_shared<WriteSession>();
  NACRE_ASSIGN(session->ordinal, metadata::decode_u64(*value));
  if (session->ordinal >= 1ull << (64 - metadata::record_version_session_shift)) {
    return fail(ErrorCode::unsupported,
                "this volume has had 16,777,215 write sessions (one a mount, and with DES or 3DES "
                "one a GiB), the most that its format allows; copy it to a new volume");
  }
  engine::random_bytes(session->salt);
  session->epoch = keys.current_epoch_number();
  NACRE_ASSIGN(session->key, keys.session_key(session->epoch, session->salt));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const metadata::SessionRow row{
      .ordinal = session->ordinal,
      .epoch = session->epoch,
      .opened_seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
  NACRE_TRY(database.put_now(Table::system,
                             {{metadata::session_key_of(session->salt), metadata::encode(row)},
                              {std::string(metadata::system_key_next_session),
                               metadata::encode_u64(session->ordinal + 1)}}));
  return session;
}

}  // namespace nacre::fs
