# SPDX-License-Identifier: Apache-2.0
"""A reader of Nacre volumes that was written from docs/FORMAT.md."""
