"""One parser under atheris, which grows its inputs by the code that they reach.

python tests/trust/fuzz_atheris.py PARSER [OPTIONS OF LIBFUZZER]
"""

import sys

import atheris

with atheris.instrument_imports(include=["dltools"]):
    from parsers import PARSERS, attempt


def main() -> None:
    parser = PARSERS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, lambda data: attempt(parser, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
