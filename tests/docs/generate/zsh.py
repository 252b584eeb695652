"""The generated parts of zsh's completion."""

import re
from collections.abc import Iterable

from docs.generate.offers import default_policies, offers
from docs.generate.parsers import Option, Takes, Tool


def parts(tools: Iterable[Tool]) -> dict[str, dict[str, str]]:
    tools = list(tools)
    policies = {
        tool.name: " ".join(default_policies(tool))
        for tool in tools
        if any(option.takes is Takes.PARAMETER for option in tool.options)
    }
    defaults = [
        f"dl-plan) policies=(${{policies[-1]:-${{DLTOOLS_POLICY:-{policies['dl-plan']}}}}}) ;;",
        f"dl-sim) (( $#policies )) || policies=({policies['dl-sim']}) ;;",
    ]
    words = [f"{name}) all+=({offered}) ;;" for name, offered in offers().items()]
    return {
        "dltools/completions/_dltools": {
            "default policies": "\n".join(defaults),
            "parameters": "\n".join(words),
            "options": "\n".join(line for tool in tools for line in _tool(tool)),
        }
    }


def _tool(tool: Tool) -> list[str]:
    lines = [_option(option) for option in tool.options]
    if tool.argument:
        lines.append("'*:file:_files'")
    return [
        f"{tool.name})",
        "    _arguments -s \\",
        *(f"        {line} \\" for line in lines[:-1]),
        f"        {lines[-1]}",
        "    ;;",
    ]


def _option(option: Option) -> str:
    title = re.sub(r"([\[\]\\])", r"\\\1", option.title).replace("'", "'\\''")
    rest = f"'[{title}]{_action(option)}'"
    takes_value = option.takes is not Takes.NOTHING
    long = f"{option.long}=" if takes_value else option.long
    many = "*" if option.is_repeatable else ""
    if option.short:
        short = f"{option.short}+" if takes_value else option.short
        before = many or f"({option.short} {option.long})"
        return f"'{before}'{{{short},{long}}}{rest}"
    return f"'{many}{long}{rest[1:]}"


def _action(option: Option) -> str:
    if option.takes is Takes.NOTHING:
        return ""
    message = " ".join(re.findall(r"[a-z]+", option.metavar.lower()))
    words = " ".join(word.replace(":", "\\:") for word in option.choices)
    action = {
        Takes.CHOICE: f"({words})",
        Takes.FILE: "_files",
        Takes.DIRECTORY: "_files -/",
        Takes.PARAMETER: "_dltools_set",
        Takes.TEXT: "",
    }[option.takes]
    return f":{message}:{action}"
