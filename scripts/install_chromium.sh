#!/usr/bin/env bash
# Chromium and its driver for the browser tests, from Debian or Ubuntu's own packages; nothing if both are there.
set -euo pipefail
if command -v chromedriver >/dev/null && { command -v chromium || command -v google-chrome; } >/dev/null; then
  exit 0
fi
command -v apt-get >/dev/null || { echo "no apt-get here: install chromium and chromedriver by hand" >&2; exit 1; }
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver
