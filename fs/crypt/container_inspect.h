// SPDX-License-Identifier: Apache-2.0
// Reads what a container shows without a key. Nothing of it is authenticated.
#pragma once

#include "fs/crypt/container_format.h"
#include "fs/crypt/record_sequence.h"
#include "metadata/keys/keyring.h"

namespace nacre::fs {

struct ContainerInspection {
  ContainerHeader header;
  metadata::Keyring
      keyring;  // not authenticated: recipients that it names may be unable to open the container
  std::uint64_t record_count = 0;
  std::uint64_t stored_bytes = 0;  // the size of the whole container
};
// Reads to the end, and checks structure and CRCs. Errors: corrupt, tampered, unsupported, and
// those of read.
Result<ContainerInspection> inspect_container(const ReadContainer& read);

}  // namespace nacre::fs
