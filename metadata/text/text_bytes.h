// SPDX-License-Identifier: Apache-2.0
// Bytes as text: base64 (RFC 4648, section 4, with padding) and lower-case hexadecimal. Each byte
// string has one text; all other texts are refused.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"

namespace nacre::metadata {

std::string to_base64(ByteView bytes);
std::optional<Bytes> from_base64(std::string_view text);

std::string to_hex(ByteView bytes);
// Returns true if text is the hexadecimal form of exactly out.size() bytes. Otherwise out is
// undefined.
bool from_hex(std::string_view text, MutableByteView out);

}  // namespace nacre::metadata
