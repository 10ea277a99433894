#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_table.py: medians, ratios and spreads are right for values whose results are known."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "peer_table.py")
ABOUT = {
    "date": "2026-01-01", "checkout": "abc", "processor": "one", "kernel": "6", "load": "0", "disk": "ext4",
    "io_uring": "N", "user": "nobody", "rounds": "3", "cold": "yes", "big_bytes": "1", "inc_bytes": "1",
    "file_count": "1", "tree_bytes": "1", "peers": "gocryptfs securefs", "controls": "native",
    "reference": "gocryptfs", "version nacre": "0.1", "version gocryptfs": "2.3-1+b4",
}
VALUES = [  # file system, step, a value a round
    ("native", "big_write", (1, 1, 1)),
    ("gocryptfs", "big_write", (4, 8, 6)),
    ("securefs", "big_write", (5, 5, 5)),
    ("nacre", "big_write", (2, 2, 4)),
    ("gocryptfs", "random_read", (100, 100, 100)),
    ("securefs", "random_read", (200, 400, 300)),
    ("nacre", "random_read", (600, 450, 500)),
    ("nacre", "stored_tree", (0.5, 0.5, 0.5)),
]


def table(values, *words):
    with tempfile.TemporaryDirectory() as folder:
        values_path, about_path = os.path.join(folder, "values"), os.path.join(folder, "about")
        with open(values_path, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in values)
        with open(about_path, "w", encoding="utf-8") as file:
            file.writelines(f"{name}\t{text}\n" for name, text in ABOUT.items())
        done = subprocess.run([sys.executable, TOOL, values_path, about_path, *words], check=False,
                              capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def lines(values=None):
    found = [f"{number}\t{name}\t{step}\t{value}" for name, step, rounds in values or VALUES
             for number, value in enumerate(rounds, 1)]
    return found + ["1\tnacre\tcompared\t0"]


class PeerTable(unittest.TestCase):
    def test_json_has_every_figure(self):
        status, out, said = table(lines(), "--json", "-")
        self.assertEqual((status, said), (0, ""))
        document = json.loads(out)
        self.assertEqual((document["schema"], document["compared"], document["differed"]), ("nacre peerbench 1", 1, 0))
        write, read, stored = document["rows"]
        self.assertEqual(write["best_peer"], "securefs")
        nacre = write["systems"]["nacre"]
        self.assertEqual((nacre["rounds"], nacre["median"], nacre["spread"]), ([2, 2, 4], 2, 1))
        self.assertEqual(nacre["times_as_good_as_best_peer"], 2.5)
        self.assertEqual(nacre["cost_beside_reference"], 0.5)  # of 2/4, 2/8 and 4/6
        self.assertEqual((read["best_peer"], read["unit"]), ("securefs", "1/s"))
        self.assertAlmostEqual(read["systems"]["nacre"]["times_as_good_as_best_peer"], 500 / 300)
        self.assertEqual(read["systems"]["nacre"]["cost_beside_reference"], 0.2)  # of 1/6, 1/4.5 and 1/5
        self.assertEqual((stored["best_peer"], stored["systems"]["nacre"]["cost_beside_reference"]), (None, None))

    def test_text_has_a_table_of_each(self):
        status, out, _ = table(lines())
        self.assertEqual(status, 0)
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("|")]
        self.assertIn(["step", "ext4", "gocryptfs 2.3", "securefs", "nacre 0.1"], cells)
        self.assertIn(["big_write", "1.00", "6.00", "5.00", "2.00"], cells)
        self.assertIn(["random_read", "–", "100", "300", "500"], cells)
        self.assertIn(["big_write", "securefs", "2.50", "0.500"], cells)
        self.assertIn(["big_write", "0 %", "67 %", "0 %", "100 %"], cells)
        self.assertIn("Read back and compared: 1 times, 0 differed.", out)

    def test_a_step_that_failed_is_no_figure(self):
        status, out, _ = table(lines() + ["2\tnacre\tuntar\tfailed"])
        self.assertEqual(status, 1)
        self.assertIn("FAILED: nacre, untar", out)
        self.assertNotIn("| untar", out)

    def test_bytes_that_differ_fail(self):
        status, out, _ = table(lines() + ["1\tgocryptfs\tcompared\t1"])
        self.assertEqual(status, 1)
        self.assertIn("Read back and compared: 2 times, 1 differed.", out)


if __name__ == "__main__":
    unittest.main()
