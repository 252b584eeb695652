"""The generated parts of bash's completions."""

from collections.abc import Iterable

from docs.generate.offers import default_policies, offers
from docs.generate.parsers import Option, Takes, Tool


def parts(tools: Iterable[Tool]) -> dict[str, dict[str, str]]:
    found = {f"dltools/completions/{tool.name}.bash": {"options": _options(tool)} for tool in tools}
    found["dltools/completions/dl-plan.bash"]["parameters"] = "\n".join(
        f"{name}) echo {words} ;;" for name, words in offers().items()
    )
    return found


def _options(tool: Tool) -> str:
    cases: dict[str, list[str]] = {}
    for option in tool.options:
        if option.takes is not Takes.NOTHING:
            cases.setdefault(_action(tool, option), []).extend(option.names)
    lines = [f"    {'|'.join(names)}) {action} ;;" for action, names in cases.items()]
    files = "_dltools_files -f" if tool.argument else "COMPREPLY=()"
    longs = " ".join(option.long for option in tool.options)
    return "\n".join(
        [
            "case $before in",
            *lines,
            "    *)",
            "        if [[ $text == -* ]]; then",
            f"            _dltools_reply {longs}",
            "        else",
            f"            {files}",
            "        fi ;;",
            "esac",
        ]
    )


def _action(tool: Tool, option: Option) -> str:
    return {
        Takes.TEXT: "COMPREPLY=()",
        Takes.CHOICE: f"_dltools_reply {' '.join(option.choices)}",
        Takes.FILE: "_dltools_files -f",
        Takes.DIRECTORY: "_dltools_files -d",
        Takes.PARAMETER: "",
    }[option.takes] or _parameters(tool)


def _parameters(tool: Tool) -> str:
    """Offer the parameters of the policies on the command line; dl-plan takes the last one."""
    default = " ".join(default_policies(tool))
    if tool.name == "dl-plan":
        default = f"${{DLTOOLS_POLICY:-{default}}}"
    last = " | tail -n 1" if tool.name == "dl-plan" else ""
    return f'_dltools_set "{default}" $(_dltools_policies{last})'
