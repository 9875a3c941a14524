"""XLA's foreign-function interface from Python: a function on NumPy arrays becomes an operation of a compiled program.

XLA hands a handler one C structure, the frame of the call, in which the arrays lie as pointers. It is read here as its
header declares it, so nothing is compiled and nothing is copied. A handler needs Python's lock and nothing else: it
never asks JAX for anything, so it cannot wait for a program that waits for it, as a callback may.
"""

import ctypes
import json
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from jax import ffi

from headwork.engine.arrays import Array

Work = Callable[[list[Array], list[Array], dict[str, Any]], None]  # inputs, results to fill, options

METADATA = 1  # the extension in which a handler says for which version it was written
MAJOR = 0  # of the interface that is declared below
EXECUTE = 3  # the stage that has arrays
INTERNAL = 13  # the code of an error that is nobody's
TYPES = {1: np.bool_, 4: np.int32, 10: np.float16, 11: np.float32, 12: np.float64, 16: ml_dtypes.bfloat16}


class Version(Structure):
    _fields_ = (("size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int))


class Metadata(Structure):
    _fields_ = (("size", c_size_t), ("version", Version), ("traits", ctypes.c_uint32))


class Extension(Structure):
    _fields_ = (("size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(Metadata)))


class Buffer(Structure):
    _fields_ = (
        *(("size", c_size_t), ("extension", c_void_p)),
        *(("type", c_int), ("data", c_void_p), ("rank", c_int64), ("shape", POINTER(c_int64))),
    )


class Buffers(Structure):
    _fields_ = (
        *(("size", c_size_t), ("extension", c_void_p)),
        *(("number", c_int64), ("types", c_void_p), ("each", POINTER(POINTER(Buffer)))),
    )


class Bytes(Structure):
    _fields_ = (("start", c_void_p), ("length", c_size_t))


class Attributes(Structure):
    _fields_ = (
        *(("size", c_size_t), ("extension", c_void_p), ("number", c_int64), ("types", c_void_p)),
        *(("names", c_void_p), ("each", POINTER(POINTER(Bytes)))),
    )


class Error(Structure):
    _fields_ = (("size", c_size_t), ("extension", c_void_p), ("message", c_char_p), ("code", c_int32))


class Api(Structure):
    _fields_ = (
        *(("size", c_size_t), ("extension", c_void_p), ("version", Version), ("internal", c_void_p)),
        ("error", CFUNCTYPE(c_void_p, POINTER(Error))),
    )


class Frame(Structure):
    _fields_ = (
        *(("size", c_size_t), ("extension", POINTER(Extension)), ("api", POINTER(Api)), ("context", c_void_p)),
        *(("stage", c_int), ("inputs", Buffers), ("results", Buffers), ("attributes", Attributes)),
    )


_kept: list[Any] = []  # XLA holds bare pointers to handlers


def register(name: str, work: Work) -> None:
    """`work` as an operation of this name on the CPU. It fills the results; what it raises is the call's error."""

    def handler(pointer: Any) -> int | None:
        frame = pointer.contents
        try:
            if frame.extension and frame.extension.contents.type == METADATA:
                _introduce(frame)
            elif frame.stage == EXECUTE:
                work(_arrays(frame.inputs), _arrays(frame.results), _options(frame.attributes))
        except BaseException as error:  # nothing may pass through C
            return _failed(frame, error)
        return None

    handed = CFUNCTYPE(c_void_p, POINTER(Frame))(handler)
    _kept.append(handed)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)
    ffi.register_ffi_target(name, new(ctypes.cast(handed, c_void_p), None, None), platform="cpu")


def _introduce(frame: Any) -> None:
    """Structures grow at their ends, so what fits the first version fits every one of the same major number."""
    ours, theirs = frame.extension.contents.metadata.contents, frame.api.contents.version
    if theirs.major != MAJOR:
        raise RuntimeError(f"headwork.jax speaks XLA's foreign-function interface {MAJOR}.x, not {theirs.major}.x")
    ours.version.major, ours.version.minor, ours.traits = theirs.major, theirs.minor, 0


def _arrays(buffers: Any) -> list[Array]:
    """The arrays where they lie, row by row."""
    found: list[Array] = []
    for i in range(buffers.number):
        buffer = buffers.each[i].contents
        shape, dtype = tuple(buffer.shape[: buffer.rank]), np.dtype(TYPES[buffer.type])
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory = (ctypes.c_char * size).from_address(buffer.data) if size else bytearray()
        found.append(np.frombuffer(memory, dtype).reshape(shape))
    return found


def _options(attributes: Any) -> dict[str, Any]:
    """The one attribute that we give: a text of JSON."""
    text = attributes.each[0].contents
    return _read(ctypes.string_at(text.start, text.length))


@lru_cache(maxsize=256)
def _read(text: bytes) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(text)
    return options


def _failed(frame: Any, error: BaseException) -> int | None:
    message = f"{type(error).__name__}: {error}".encode()
    told: int | None = frame.api.contents.error(Error(ctypes.sizeof(Error), None, message, INTERNAL))
    return told
