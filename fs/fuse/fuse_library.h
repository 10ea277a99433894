// SPDX-License-Identifier: Apache-2.0
// libfuse's low-level interface, in the version that this folder is written against.
#pragma once

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif

#include <fuse3/fuse_lowlevel.h>
