#!/bin/bash
# Run tests/contract over cgroups of version 2, plain ones and units of systemd, in an emulated machine: tests/contract/run
# bare-v2, make test-engines-v2. Needs what pipe-v2.sh needs; about twelve minutes on two cores.
#
#   contract-v2.sh [ARG...]    arguments for pytest; DLTOOLS_V2 is where the machine is kept, default
#                              ${TMPDIR:-/tmp}/dltools-v2
set -euo pipefail
cd "$(dirname "$0")"
work=${DLTOOLS_V2:-${TMPDIR:-/tmp}/dltools-v2}
./install-site.sh "$work/site-of-tests" pytest pytest-xdist hypothesis
given=$(mktemp -d)
trap 'rm -rf "$given"' EXIT
mkdir -p "$given/checkout/tests"
cp -r ../../dltools ../../pyproject.toml "$given/checkout"
cp -r ../conftest.py ../contract ../helpers "$given/checkout/tests"
find "$given" -name __pycache__ -prune -exec rm -r {} +
printf '%s\n' "${@:-tests/contract}" >"$given/arguments"
./boot-v2.sh -w "$work/machine" -o "$work/contract-$$" -t ${DLTOOLS_V2_SECONDS:-5400} \
    payload-contract.sh "$given/checkout" "$given/arguments" "$work/site-of-tests"
