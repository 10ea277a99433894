# SPDX-License-Identifier: Apache-2.0
"""A reader of Nacre volumes, written from FORMAT.md alone."""
