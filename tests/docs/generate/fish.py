"""The generated parts of fish's completions."""

from collections.abc import Iterable

from docs.generate.offers import default_policies, offers
from docs.generate.parsers import Option, Takes, Tool


def parts(tools: Iterable[Tool]) -> dict[str, dict[str, str]]:
    found = {
        f"dltools/completions/{tool.name}.fish": {
            "options": "\n".join(_option(tool, option) for option in tool.options)
        }
        for tool in tools
    }
    found["dltools/completions/dl-plan.fish"]["parameters"] = "\n".join(
        f"case {name}\n    string split ' ' '{words}'" for name, words in offers().items()
    )
    return found


def _option(tool: Tool, option: Option) -> str:
    short = f" -s {option.short[1:]}" if option.short else ""
    title = option.title.replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"complete -c {tool.name}{short} -l {option.long[2:]}{_argument(tool, option)} -d '{title}'"
    )


def _argument(tool: Tool, option: Option) -> str:
    if option.takes is Takes.PARAMETER:
        own = " $DLTOOLS_POLICY" if tool.name == "dl-plan" else ""
        return f" -x -a '(__dltools_parameters {' '.join(default_policies(tool))}{own})'"
    return {
        Takes.NOTHING: "",
        Takes.CHOICE: f" -x -a '{' '.join(option.choices)}'",
        Takes.FILE: " -r",
        Takes.DIRECTORY: " -x -a '(__fish_complete_directories)'",
        Takes.TEXT: " -x",
    }[option.takes]
