// SPDX-License-Identifier: Apache-2.0
// What anybody can see of a container: no key is needed, and nothing of it is proven.
#pragma once

#include "fs/crypt/container_format.h"
#include "fs/crypt/record_sequence.h"
#include "metadata/keys/keyring.h"

namespace nacre::fs {

struct ContainerInspection {
  ContainerHeader header;
  metadata::Keyring keyring;  // claims; who is named there may not be able to open anything
  std::uint64_t record_count = 0;
  std::uint64_t stored_bytes = 0;  // all of it
};
// Reads to the end and checks structure and CRCs. corrupt, tampered, unsupported, and the errors of
// read.
Result<ContainerInspection> inspect_container(const ReadContainer& read);

}  // namespace nacre::fs
