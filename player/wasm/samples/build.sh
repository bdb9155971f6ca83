#!/bin/sh
# Builds marbles.wasm with clang and lld (Debian's packages of these names); no
# library is needed. The output may be given: build.sh OUT
set -eu
cd "$(dirname "$0")"
${CLANG:-clang} --target=wasm32 -O2 -ffreestanding -nostdlib -mno-bulk-memory \
  -Wl,--no-entry -Wl,-z,stack-size=16384 -Wl,--strip-all -o "${1:-marbles.wasm}" module.c
