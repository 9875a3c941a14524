#!/usr/bin/env bash
# The graders that our packages are tried on, in .venv-graders or where HEADWORK_GRADERS says. headwork stays out of it.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${HEADWORK_GRADERS:-.venv-graders}
[ -x "$folder/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet -r tests/graders/requirements.txt
