# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the user's systemd, the keyring's tool and a program that asks in a window: a test has
no desktop. Each notes how it was called. What systemd would keep is in files that a test may change.
"""
import json
import os
import stat

SYSTEMCTL = r"""
if os.path.exists(folder + "/no_bus"):
    sys.stderr.write("\x1b[0;1;31mFailed to connect to bus: No medium found\x1b[0m\r\r\n")  # as on a terminal
    sys.exit(1)
unit = arguments[2]
enabled = folder + "/enabled." + unit
if arguments[1] == "show":
    known = "not-found" if os.path.exists(folder + "/no_unit") else "loaded"
    state = "enabled" if os.path.exists(enabled) else "disabled"
    print(f"Result=success\nLoadState={known}\nActiveState=inactive\nSubState=dead\nUnitFileState={state}")
elif arguments[1] == "enable":
    open(enabled, "w").close()
elif arguments[1] == "disable":
    os.remove(enabled)
"""
SECRET_TOOL = """
kept = folder + "/kept." + arguments[-1]
if arguments[0] == "store":
    with open(kept, "w") as file:
        file.write(sys.stdin.read())
elif arguments[0] == "lookup":
    print(open(kept).read(), end="")
elif arguments[0] == "clear":
    os.remove(kept)
"""
ASKER = """
print("asked for it")
"""


class FakeDesktop:
    def __init__(self, folder):
        self.folder = folder
        self.bin = os.path.join(folder, "bin")
        os.makedirs(self.bin)
        for name, body in (("systemctl", SYSTEMCTL), ("secret-tool", SECRET_TOOL), ("zenity", ASKER)):
            path = os.path.join(self.bin, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"""#!/usr/bin/env python3
import json, os, sys
folder = {folder!r}
arguments = sys.argv[1:]
with open(folder + "/calls", "a") as calls:
    calls.write(json.dumps([{name!r}, *arguments]) + "\\n")
{body}""")
            os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def path(self, name):
        return os.path.join(self.folder, name)

    def set(self, name, is_there=True):
        if is_there:
            with open(self.path(name), "w", encoding="utf-8"):
                pass
        elif os.path.exists(self.path(name)):
            os.remove(self.path(name))

    def calls(self, program, action):
        """The arguments of the calls so far, of one program and its action."""
        if not os.path.exists(self.path("calls")):
            return []
        with open(self.path("calls"), encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
        return [words[1:] for words in found if words[0] == program and action in words]
