#!/usr/bin/env bash
# The engine's suite on kernels built otherwise than for use: with the sanitizers for addresses and undefined behaviour,
# with the one for threads, and, without any, with the 64-byte vectors compiled for AVX2 and the products of bfloat16
# pairs and tiles done in C++, so that they are tested on machines without AVX-512 or AMX. Needs a Python that has what the tests need: native/sanitize.sh [python]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { # name, CMake options…
    local name=$1
    shift
    cmake -S . -B "$work/$name" -G Ninja "$@" -DPython_EXECUTABLE="$(command -v "$python")" \
        -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" >/dev/null
    cmake --build "$work/$name" >/dev/null
    mkdir -p "$work/$name/lib"
    cp -r src/headwork "$work/$name/lib/headwork"
    cp "$work/$name"/native/_native*.so "$work/$name/lib/headwork/engine/"
}

suite() { # name, instruction set, runtime library, tests…
    local name=$1 cpu=$2 runtime=$3
    shift 3
    echo "$name, $cpu"
    # The interpreter is not built with the sanitizer, so its runtime is loaded first; its leaks are not ours.
    # A finding ends the process: without capturing, its report is seen.
    LD_PRELOAD="${runtime:+$(gcc -print-file-name="$runtime") $(gcc -print-file-name=libstdc++.so.6)}" \
        ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="suppressions=$PWD/native/tsan.txt report_signal_unsafe=0" \
        UBSAN_OPTIONS=print_stacktrace=1 HEADWORK_CPU="$cpu" PYTHONPATH="$work/$name/lib" \
        "$python" -m pytest -q -x -s -p no:cacheprovider "$@"
}

engine=(tests/engine/test_{arrays,backward,bfloat16,corners,decode,errors,graph,linear,options,packed,partial,short_call,sizes,threads}.py tests/conformance/test_onnx.py)
build wide -DHEADWORK_EMULATE_AVX512=ON
suite wide avx512 "" "${engine[@]}"
brain=(tests/engine/test_{bfloat16,corners,options,sizes,threads}.py tests/conformance/test_onnx.py)
for cpu in avx512_bf16 amx; do suite wide "$cpu" "" "${brain[@]}"; done
build address -DCMAKE_BUILD_TYPE=Debug -DHEADWORK_SANITIZE=address,undefined
for cpu in baseline avx2; do suite address "$cpu" libasan.so "${engine[@]}"; done
build thread -DCMAKE_BUILD_TYPE=Debug -DHEADWORK_SANITIZE=thread
# A child forked from a process with threads is beyond this sanitizer: it ends such a child by itself.
suite thread avx2 libtsan.so -k "not fork" "${engine[@]}"
