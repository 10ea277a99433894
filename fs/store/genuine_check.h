// SPDX-License-Identifier: Apache-2.0
// Tells whether a record of an older key epoch existed when the rotation of keys began
// (genuine_records.h). docs/FORMAT.md, "Records of older epochs".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gpu_engine/base/result.h"
#include "gpu_engine/record/record.h"

namespace nacre::fs {

// Returns the row of the table system with this key, or none.
using FindSystemRow = std::function<Result<std::optional<std::string>>(std::string_view key)>;

// Checks a record of an epoch that is superseded (KeyTree::is_superseded()) against the digest that
// was made of it. The record's tag proves nothing, since an attacker who had the older key can make
// one for any bytes. Errors: tampered if the record has no digest or another one, also if the rows
// that say so are lost; corrupt if its CRC is wrong; those of find.
Result<> check_genuine(const FindSystemRow& find, const engine::RecordHeader& header,
                       ByteView record);

}  // namespace nacre::fs
