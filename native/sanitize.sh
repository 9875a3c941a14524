#!/usr/bin/env bash
# The engine's suite on a kernel built with sanitizers: address and undefined behaviour, on every vector width there is
# (the 64-byte one compiled for AVX2), then threads. Needs a Python with what the tests need: native/sanitize.sh [python]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { # name, sanitizers
    cmake -S . -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DHEADWORK_SANITIZE="$2" -DHEADWORK_EMULATE_AVX512=ON \
        -DPython_EXECUTABLE="$(command -v "$python")" -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" >/dev/null
    cmake --build "$work/$1" >/dev/null
    mkdir -p "$work/$1/lib"
    cp -r src/headwork "$work/$1/lib/headwork"
    cp "$work/$1"/native/_native*.so "$work/$1/lib/headwork/engine/"
}

suite() { # name, instruction set, runtime library, tests…
    local name=$1 cpu=$2 runtime=$3
    shift 3
    echo "$name, $cpu"
    # The interpreter is not built with the sanitizer, so its runtime is loaded first; its own leaks are not ours.
    LD_PRELOAD="$(gcc -print-file-name="$runtime") $(gcc -print-file-name=libstdc++.so.6)" \
        ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="suppressions=$PWD/native/tsan.txt report_signal_unsafe=0" \
        UBSAN_OPTIONS=print_stacktrace=1 HEADWORK_CPU="$cpu" PYTHONPATH="$work/$name/lib" \
        "$python" -m pytest -q -x -p no:cacheprovider "$@"
}

engine=(tests/engine --ignore=tests/engine/test_every_cpu.py)
build address address,undefined
for cpu in baseline avx2 avx512; do suite address "$cpu" libasan.so "${engine[@]}"; done
build thread thread
suite thread avx2 libtsan.so tests/engine/test_threads.py tests/engine/test_packed.py tests/engine/test_options.py
