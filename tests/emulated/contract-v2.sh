#!/bin/bash
# Run tests/contract over engines on cgroup version 2 in an emulated machine: tests/contract/run bare-v2 and docker-v2,
# make test-engines-v2. Needs what pipe-v2.sh needs; about twelve minutes each on two cores.
#
#   contract-v2.sh ENGINES [ARG...]    ENGINES: bare-v2,systemd (plain cgroups and units of systemd), or docker; then
#                                      arguments for pytest. DLTOOLS_V2 is where the machine is kept, default
#                                      ${TMPDIR:-/tmp}/dltools-v2
set -euo pipefail
cd "$(dirname "$0")"
engines=$1
shift
work=${DLTOOLS_V2:-${TMPDIR:-/tmp}/dltools-v2}
./install-site.sh "$work/site-of-tests" pytest pytest-xdist hypothesis
given=$(mktemp -d)
trap 'rm -rf "$given"' EXIT
mkdir -p "$given/checkout/tests"
cp -r ../../dltools ../../pyproject.toml "$given/checkout"
cp -r ../conftest.py ../contract ../helpers "$given/checkout/tests"
find "$given" -name __pycache__ -prune -exec rm -r {} +
printf '%s\n' "${@:-tests/contract}" >"$given/arguments"
echo "$engines" >"$given/engines"
./boot-v2.sh -w "$work/machine" -o "$work/contract-$$" -t ${DLTOOLS_V2_SECONDS:-5400} \
    payload-contract.sh "$given/checkout" "$given/arguments" "$given/engines" "$work/site-of-tests"
