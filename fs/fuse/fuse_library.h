// SPDX-License-Identifier: Apache-2.0
// The low-level interface of libfuse, in the version for which this folder is written.
#pragma once

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif

#include <fuse3/fuse_lowlevel.h>
