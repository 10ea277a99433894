#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes completions for bash, zsh and fish from what the programs' --help-all says.

    write_completions.py --bin DIR --out DIR PROGRAM…
"""
import argparse
import os

import help_tree

HEAD = "# SPDX-License-Identifier: Apache-2.0\n# Written from --help-all by write_completions.py.\n"


def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def identifier(program):
    return "_" + program.replace(".", "_")


def bash(program, tree):
    """One function: which command the words are, then what may stand where the cursor is."""
    name = identifier(program)
    valued, cases = {}, []
    for command in tree.every():
        flags, values = [], []
        for option in command.options:
            flags += option.flags
            if option.value:
                values.append((option.flags, option.kind))
        valued[command.name()] = values
        words = [c.words[-1] for c in command.commands]
        kinds = {p.kind for p in command.positionals}
        files = "file" if "file" in kinds else "folder" if "folder" in kinds else ""
        fixed = " ".join(p.kind for p in command.positionals if p.kind not in ("file", "folder"))
        cases.append(f'    "{command.name()}") flags="{" ".join(flags)}" '
                     f'words="{" ".join(words + fixed.split())}" files="{files}" ;;')
    arguments = []
    for command_name, values in valued.items():
        for flags, kind in values:
            for flag in flags:
                arguments.append(f'    "{command_name} {flag}") kind="{kind or "any"}" ;;')
    commands = " ".join(f'"{c.name()}"' for c in tree.every() if len(c.words) > 1) or '""'
    return f"""{HEAD}# bash completion for {program}.
{name}() {{
  local word previous at="{program}" index flags="" words="" files="" kind="" known
  local commands=({commands})
  # By hand, since COMP_WORDBREAKS must not split what completes; = stays a separator.
  word=${{COMP_WORDS[COMP_CWORD]}} previous=""
  ((COMP_CWORD > 0)) && previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  for ((index = 1; index < COMP_CWORD; index++)); do
    for known in "${{commands[@]}}"; do
      [[ "$at ${{COMP_WORDS[index]}}" == "$known" ]] && at=$known && break
    done
  done
  if [[ $word == "=" ]]; then
    word=""
  elif [[ $previous == "=" ]] && ((COMP_CWORD > 1)); then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case "$at $previous" in
{os.linesep.join(arguments) or '    "") ;;'}
  esac
  case "$at" in
{os.linesep.join(cases)}
  esac
  COMPREPLY=()
  case "$kind" in
    any) return ;;
    file) files=file flags="" words="" ;;
    folder) files=folder flags="" words="" ;;
    "") [[ $word == -* ]] && words=$flags files="" ;;
    *) words=$kind files="" ;;
  esac
  [[ -n $words ]] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    if [[ $files == folder ]]; then
      mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -d -- "$word")
    else
      mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$word")
    fi
  fi
}}
complete -F {name} {program}
"""


def zsh_text(text):
    text = text.split(". ")[0]
    for sign in ("\\", "[", "]", ":", "'"):
        text = text.replace(sign, "'\\''" if sign == "'" else "\\" + sign)
    return text


def zsh_action(kind):
    return {"": " ", "file": "_files", "folder": "_files -/"}.get(kind, f"({kind})")


def zsh_function(command):
    name = "_" + "_".join(command.words).replace(".", "_")
    lines = [f"{name}() {{", "  local context state state_descr line", "  typeset -A opt_args",
             "  _arguments -s -S \\"]
    for option in command.options:
        argument = f":{option.value}:{zsh_action(option.kind)}" if option.value else ""
        others = " ".join(option.flags)
        for flag in option.flags:
            front = "'*'" if option.repeats else f"'({others})'" if len(option.flags) > 1 else ""
            lines.append(f"    {front}{flag}'[{zsh_text(option.text)}]{argument}' \\")
    if command.commands:
        lines += ["    '1: :->command' \\", "    '*:: :->rest'", "  case $state in", "  command)",
                  "    local -a commands=("]
        for one in command.commands:
            lines.append(f"      '{one.words[-1]}:{zsh_text(one.text)}'")
        lines += ["    )", "    _describe command commands ;;", "  rest)", "    case $words[1] in"]
        for one in command.commands:
            lines.append(f"    {one.words[-1]}) _{'_'.join(one.words).replace('.', '_')} ;;")
        lines += ["    esac ;;", "  esac"]
    else:
        for place, one in enumerate(command.positionals, 1):
            lines.append(f"    '{place}:{one.flags[0]}:{zsh_action(one.kind)}' \\")
        lines[-1] = lines[-1].removesuffix(" \\")
    return "\n".join(lines + ["}"]) + "\n"


def zsh(program, tree):
    functions = "\n".join(zsh_function(command) for command in tree.every())
    return f"#compdef {program}\n{HEAD}{functions}\n{identifier(program)} \"$@\"\n"


def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(program, tree):
    """Conditions by hand: __fish_seen_subcommand_from cannot tell 'key backup' from 'backup'."""
    name = f"__fish{identifier(program)}_at"
    commands = " ".join(fish_quote(c.name()) for c in tree.every())
    lines = [f"""{HEAD}# fish completion for {program}.
function {name}
  set -l at {program}
  for word in (commandline -opc)[2..-1]
    if contains -- "$at $word" {commands}
      set at "$at $word"
    end
  end
  test "$at" = "$argv"
end
complete -c {program} -f"""]
    for command in tree.every():
        front = f"complete -c {program} -n {fish_quote(name + ' ' + command.name())}"
        for one in command.commands:
            lines.append(f"{front} -a {one.words[-1]} -d {fish_quote(one.text)}")
        for one in command.positionals:
            if one.kind == "file":
                lines.append(f"{front} -F")
            elif one.kind == "folder":
                lines.append(f"{front} -a '(__fish_complete_directories)'")
            elif one.kind:
                lines.append(f"{front} -a {fish_quote(one.kind)}")
        for option in command.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                             for flag in option.flags)
            line = f"{front} {flags} -d {fish_quote(option.text.split('. ')[0])}"
            if option.value:
                actions = {"file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'",
                           "": " -x"}
                line += actions.get(option.kind, f" -x -a {fish_quote(option.kind)}")
            lines.append(line)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    for program in arguments.programs:
        tree = help_tree.read_tree(arguments.bin, program)
        write(os.path.join(arguments.out, "bash"), program, bash(program, tree))
        write(os.path.join(arguments.out, "zsh"), identifier(program), zsh(program, tree))
        write(os.path.join(arguments.out, "fish"), program + ".fish", fish(program, tree))


if __name__ == "__main__":
    main()
