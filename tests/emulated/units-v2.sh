#!/bin/bash
# Run the units of samples/systemd under the systemd of an emulated machine, confined as they are
# shipped: make test-units. Needs what pipe-v2.sh needs; about ten minutes on two cores.
#
#   units-v2.sh [WORKDIR]    where the machine is kept; default ${TMPDIR:-/tmp}/dltools-v2
set -euo pipefail
cd "$(dirname "$0")"
work=${1:-${TMPDIR:-/tmp}/dltools-v2}
./install-site.sh "$work/site"
./boot-v2.sh -w "$work/machine" -o "$work/units-$$" -t 3600 \
    payload-units.sh ../../samples/systemd ../../dltools "$work/site"
