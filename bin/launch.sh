# Sourced by the launchers, with the checkout in $here: runs the tool that $0 names, with the
# checkout's .venv where that works.
python="$here/.venv/bin/python"
[ -x "$python" ] || python=python3
PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}" exec "$python" -c '
import importlib, sys

tool = sys.argv[0] = sys.argv.pop(1)
try:
    main = importlib.import_module("dltools.cli." + tool.removeprefix("dl-")).main
except ModuleNotFoundError as error:  # no .venv, or one made for another Python
    print(f"{tool}: {sys.executable} has no module {error.name}: "
          "set the checkout up with `make clean demo`, or install dltools", file=sys.stderr)
    sys.exit(78)
main()
' "${0##*/}" "$@"
