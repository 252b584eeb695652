#!/bin/bash
# Put what dltools needs at run time into a folder, for the emulated machine's Python 3.11.
#
#   install-site.sh FOLDER [PACKAGE...]    these packages too
set -euo pipefail
site=$(realpath -m "$1")
shift
cd "$(dirname "$0")/../.."
mapfile -t needed < <(python3 -c '
import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")')
mkdir -p "$site"
python3 -m pip install --quiet --disable-pip-version-check --upgrade --target "$site" \
    --python-version 3.11 --only-binary=:all: "${needed[@]}" "$@"
rm -rf "$site"/pyarrow/{include,tests,src}
