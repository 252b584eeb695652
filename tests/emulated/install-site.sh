#!/bin/bash
# Put what dltools needs at run time into a folder, for the emulated machine's Python 3.11.
#
#   install-site.sh FOLDER
set -euo pipefail
mkdir -p "$1"
python3 -m pip install --quiet --disable-pip-version-check --upgrade --target "$1" \
    --python-version 3.11 --only-binary=:all: \
    'typer>=0.26,<0.29' 'rich>=13.7' 'docker>=7.1' 'nvidia-ml-py' 'pyarrow>=18'
rm -rf "$1"/pyarrow/{include,tests,src}
